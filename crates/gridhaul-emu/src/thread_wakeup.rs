//! When the two threads of a run wake up: one that is about to hand a packet over finds the other awake.

use std::sync::atomic::{AtomicU64, Ordering};

use gridhaul_scenario::units::Instant;

/// When the two threads of a run are due next: one that is about to hand something over finds the other
/// awake.
#[derive(Debug)]
pub(crate) struct WakeupSchedule {
    due: [AtomicU64; 2],
}

/// A thread of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thread {
    /// The emulator.
    Wire = 0,
    /// The applications.
    Traffic = 1,
}

impl WakeupSchedule {
    pub(crate) fn new() -> Self {
        Self { due: [const { AtomicU64::new(u64::MAX) }; 2] }
    }

    /// Says when this thread is due next. Returns until when it should sleep at most.
    pub(crate) fn announce(&self, thread: Thread, due: Instant, now: Instant) -> Instant {
        let own = thread as usize;
        self.due[own].store(due.as_nanos(), Ordering::Relaxed);
        let other = self.due[1 - own].load(Ordering::Relaxed).saturating_add(HANDING_OVER);
        if other > now.as_nanos() { due.min(Instant::from_nanos(other)) } else { due }
    }
}

/// Nanoseconds that it takes to send a packet.
const HANDING_OVER: u64 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_to_be_handed_something_is_awake() {
        let at = Instant::from_nanos;
        let wakeups = WakeupSchedule::new();
        assert_eq!(wakeups.announce(Thread::Wire, Instant::NEVER, at(0)), Instant::NEVER);
        assert_eq!(wakeups.announce(Thread::Traffic, at(500_000), at(0)), at(500_000));
        let handed = at(500_000 + HANDING_OVER);
        assert_eq!(wakeups.announce(Thread::Wire, at(900_000), at(100)), handed);
        assert_eq!(wakeups.announce(Thread::Wire, at(400_000), at(100)), at(400_000));
        // The other one is late: it is not waited for.
        assert_eq!(wakeups.announce(Thread::Wire, at(900_000), handed), at(900_000));
    }
}
