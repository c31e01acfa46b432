//! The timer wheel of Linux (`kernel/time/timer.c`): the longer a timer, the coarser its expiry,
//! which is never early and at most 8/63 of the duration late.
//!
//! A timer of less than 63 ticks expires with the precision of a tick, here exactly; one of less
//! than 63 · 8ⁿ ticks at a multiple of 8ⁿ ticks. With 250 ticks per second (`CONFIG_HZ` of Debian,
//! Fedora before 2025 and the kernels that gridhaul was compared with): up to 32 ms late from 252
//! ms on, 256 ms from 2.016 s on, 2.048 s from 16.128 s on.

use gridhaul_scenario::units::{Duration, Instant};

use super::Sender;
use crate::tcp::params::StackParams;

/// The clock of a host, which has been running for a random time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TimerWheel {
    /// Position of time zero in the wheel, in units of [`PHASE_UNIT`].
    phase: u32,
}

/// Length of a tick: `CONFIG_HZ=250`.
const TICK: Duration = Duration::from_millis(4);
/// First duration of the second level, in ticks (`LVL_SIZE` - 1), and the ratio of levels as a
/// shift (`LVL_CLK_SHIFT`).
const LEVEL_START: u64 = 63;
const LEVEL_SHIFT: u32 = 3;
/// The phases cover 17 s, the resolution of the longest timers of TCP.
const PHASE_UNIT: u64 = 4;

impl TimerWheel {
    /// A clock whose phase follows from a random number.
    pub(super) const fn new(random: u32) -> Self {
        Self { phase: random }
    }

    /// When a timer that is set at `now` for `at` expires (`calc_wheel_index`, `calc_index`).
    pub(super) fn expiry(self, now: Instant, at: Instant) -> Instant {
        let (tick, wait) = (TICK.as_nanos(), at.since(now).as_nanos());
        // Most timers are shorter than `LEVEL_START` ticks, which needs no division.
        if wait <= (LEVEL_START - 1) * tick || at == Instant::NEVER {
            return at;
        }
        let ticks = wait.div_ceil(tick);
        let mut shift = LEVEL_SHIFT;
        while ticks >= LEVEL_START << shift {
            shift += LEVEL_SHIFT;
        }
        let offset = u64::from(self.phase) * PHASE_UNIT;
        let expires = (now.as_nanos() + offset) / tick + ticks;
        let bucket = ((expires >> shift) + 1) << shift;
        Instant::from_nanos(bucket * tick - offset)
    }
}

impl Sender {
    /// Sets the sender's timer.
    #[inline]
    pub(super) fn set_timer(&mut self, now: Instant, at: Instant, params: &StackParams) {
        self.rto_at = at;
        if params.policy.timer_wheel
            && let Some(wheel) = self.optional.timer_wheel()
        {
            self.rto_at = wheel.expiry(now, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_timer_expires_at_a_multiple_of_the_resolution_of_its_level() {
        // Phase 0: time zero is a multiple of all resolutions. 2.66 s are 665 ticks: the third
        // level.
        let expiry = |now, ms| TimerWheel::new(0).expiry(at(now), at(now + ms));
        assert_eq!(expiry(0, 248), at(248));
        assert_eq!(expiry(0, 252), at(256));
        assert_eq!(expiry(0, 2_000), at(2_016));
        assert_eq!(expiry(0, 2_660), at(2_816));
        assert_eq!(expiry(100, 2_660), at(2_816));
        assert_eq!(expiry(200, 2_660), at(3_072));
        assert_eq!(expiry(0, 20_000), at(20_480));
        assert_eq!(TimerWheel::new(9).expiry(at(5), Instant::NEVER), Instant::NEVER);
    }

    #[test]
    fn expiries_are_never_early_and_late_by_the_resolution_of_their_level_at_most() {
        let (mut late, mut count) = (0.0_f64, 0.0);
        for random in (0..u32::MAX).step_by(40_000_003) {
            for ms in [1, 251, 252, 1_000, 2_017, 2_660, 16_127, 16_129, 120_000] {
                let expiry = TimerWheel::new(random).expiry(at(7_777), at(7_777 + ms));
                let lateness = expiry.since(at(7_777 + ms));
                assert!(expiry >= at(7_777 + ms), "{random} {ms}");
                // A level begins at 63 units of its resolution.
                assert!(
                    lateness <= Duration::from_millis(ms * 8 / 63 + 5),
                    "{random} {ms} {lateness}"
                );
                if ms == 2_660 {
                    (late, count) = (late + lateness.as_secs_f64(), count + 1.0);
                }
            }
        }
        // Uniform over 256 ms, and half a tick.
        assert!((late / count - 0.130).abs() < 0.02, "{}", late / count);
    }
}
