//! The transmitter: one packet at a time, each for as long as its bits take.

use gridhaul_scenario::units::{BitRate, Duration, Instant};

use super::Serializer;

/// A transmitter of one rate.
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

    /// Whether nothing is on the transmitter at `now`. At the very instant at which a transmission ends,
    /// the transmitter is free.
    #[inline]
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// When the transmitter has sent all that it was charged with.
    #[inline]
    pub(super) const fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Time that `bytes` take from `started`. The fraction of a nanosecond that the packet before
    /// left over is charged too, unless the transmitter has been idle since.
    #[inline]
    pub(super) fn charge(&mut self, started: Instant, bytes: u32) -> Duration {
        if started > self.free_at {
            self.serializer.idle();
        }
        self.serializer.charge(bytes)
    }

    /// The packet charged last is on the transmitter until `sent`.
    #[inline]
    pub(super) fn occupy_until(&mut self, sent: Instant) {
        self.free_at = sent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_carried_on_while_busy_and_dropped_when_idle() {
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
