//! Threads that must not wait for others.

/// Asks the kernel to let the calling thread go before ordinary ones. Where that is not allowed, the
/// thread stays ordinary, and the lateness in the answer shows what came of it.
#[expect(unsafe_code, reason = "no crate of ours wraps the scheduler")]
pub(crate) fn go_first() {
    let parameters = libc::sched_param { sched_priority: 10 };
    // SAFETY: the kernel reads `parameters`; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
}
