//! The wire: one packet at a time, each for as long as its bits take.

use gridhaul_scenario::units::{BitRate, Duration, Instant, Serializer};

/// A wire of one rate.
#[derive(Debug, Clone)]
pub(super) struct Wire {
    serializer: Serializer,
    free_at: Instant,
}

impl Wire {
    /// A wire of this rate, which must not be zero.
    pub(super) fn new(rate: BitRate) -> Self {
        Self { serializer: Serializer::new(rate), free_at: Instant::ZERO }
    }

    /// When a packet that is offered at `now` finds the wire free, behind all accepted before it.
    /// At the very instant at which a transmission ends, the wire is free.
    #[inline]
    pub(super) fn free_from(&self, now: Instant) -> Instant {
        self.free_at.max(now)
    }

    /// Time that `bytes` take from `started`. The fraction of a nanosecond that the packet before
    /// left over is charged too, unless the wire has been idle since.
    #[inline]
    pub(super) fn charge(&mut self, started: Instant, bytes: u32) -> Duration {
        if started > self.free_at {
            self.serializer.idle();
        }
        self.serializer.charge(bytes)
    }

    /// The packet charged last is on the wire until `sent`.
    #[inline]
    pub(super) fn occupy_until(&mut self, sent: Instant) {
        self.free_at = sent;
    }
}
