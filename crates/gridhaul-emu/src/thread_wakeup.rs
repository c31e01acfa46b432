//! Wake-up times of the two threads of a run: a thread that receives a packet is awake when it
//! arrives.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::units::Instant;

/// Next deadlines of the two threads of a run. A thread wakes up shortly after the other one, so
/// that it is awake when the other one sends a packet.
#[derive(Debug)]
pub(crate) struct WakeupSchedule {
    due: [AtomicU64; 2],
}

/// A thread of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thread {
    /// The emulator.
    Emulator = 0,
    /// The applications.
    Traffic = 1,
}

impl WakeupSchedule {
    pub(crate) fn new() -> Self {
        Self { due: [const { AtomicU64::new(u64::MAX) }; 2] }
    }

    /// Announces the next deadline of a thread. Returns the time until which it should sleep at
    /// most.
    pub(crate) fn announce(&self, thread: Thread, due: Instant, now: Instant) -> Instant {
        let own = thread as usize;
        self.due[own].store(due.as_nanos(), Ordering::Relaxed);
        let other = self.due[1 - own].load(Ordering::Relaxed).saturating_add(SEND_TIME_NS);
        if other > now.as_nanos() { due.min(Instant::from_nanos(other)) } else { due }
    }
}

/// Time to send a packet through the kernel, in nanoseconds.
const SEND_TIME_NS: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_wakes_up_when_the_other_one_sends() {
        let at = Instant::from_nanos;
        let wakeups = WakeupSchedule::new();
        assert_eq!(wakeups.announce(Thread::Emulator, Instant::NEVER, at(0)), Instant::NEVER);
        assert_eq!(wakeups.announce(Thread::Traffic, at(500_000), at(0)), at(500_000));
        let handed = at(500_000 + SEND_TIME_NS);
        assert_eq!(wakeups.announce(Thread::Emulator, at(900_000), at(100)), handed);
        assert_eq!(wakeups.announce(Thread::Emulator, at(400_000), at(100)), at(400_000));
        // The deadline of the other thread is in the past: it is ignored.
        assert_eq!(wakeups.announce(Thread::Emulator, at(900_000), handed), at(900_000));
    }
}
