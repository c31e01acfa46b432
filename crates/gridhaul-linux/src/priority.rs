//! Scheduling of threads.

use rustix::thread::{CpuSet, sched_setaffinity};

/// Requests real-time scheduling (`SCHED_RR`) and exact timers for the calling thread. Where that
/// is not permitted, the thread keeps ordinary scheduling, and the lateness in the answer shows the
/// effect.
#[expect(unsafe_code, reason = "no crate in use wraps the scheduler")]
pub fn request_realtime_priority() {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: the kernel reads `parameters`; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// Keeps the calling thread on a processor. Where there is no processor of this number, the thread
/// stays where the kernel puts it.
pub fn pin_to_processor(number: usize) {
    let mut set = CpuSet::new();
    set.set(number);
    let _ = sched_setaffinity(None, &set);
}
