//! The transmitter: sends one packet at a time at the rate of the link.

use gridhaul_scenario::units::{BitRate, Duration, Instant};

use super::Serializer;

/// A transmitter of fixed rate.
#[derive(Debug, Clone)]
pub(super) struct Transmitter {
    serializer: Serializer,
    free_at: Instant,
}

impl Transmitter {
    /// A transmitter of this rate, which must not be zero.
    pub(super) fn new(rate: BitRate) -> Self {
        Self { serializer: Serializer::new(rate), free_at: Instant::ZERO }
    }

    /// Sets the rate, which must not be zero, for packets that are charged from now on.
    pub(super) fn set_rate(&mut self, rate: BitRate) {
        self.serializer = Serializer::new(rate);
    }

    /// Whether the transmitter is idle at `now`. It is idle at the very instant at which a
    /// transmission ends.
    #[inline]
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// When the last transmission ends.
    #[inline]
    pub(super) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Transmission time of `bytes` from `started` on. The fraction of a nanosecond left over from
    /// the previous packet is added, unless the transmitter has been idle since.
    #[inline(always)]
    pub(super) fn charge(&mut self, started: Instant, bytes: u32) -> Duration {
        if started > self.free_at {
            self.serializer.idle();
        }
        self.serializer.charge(bytes)
    }

    /// The packet charged last is in transmission until `sent`.
    #[inline]
    pub(super) fn occupy_until(&mut self, sent: Instant) {
        assert!(sent >= self.free_at, "one packet is sent at a time");
        self.free_at = sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_carried_fraction_is_reset_when_idle() {
        // A byte at 3 Mbit/s takes 2666 ns and two thirds.
        let mut transmitter = Transmitter::new(BitRate::from_bits_per_sec(3_000_000));
        let mut send = |at: u64| {
            let started = Instant::from_nanos(at);
            let busy = transmitter.charge(started, 1);
            transmitter.occupy_until(started + busy);
            busy.as_nanos()
        };
        assert_eq!([send(0), send(2_666), send(5_333)], [2_666, 2_667, 2_667]);
        assert_eq!([send(10_000), send(20_000)], [2_666, 2_666]);
    }
}
