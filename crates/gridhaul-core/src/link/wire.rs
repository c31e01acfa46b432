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

    /// Whether nothing is on the wire at `now`. At the very instant at which a transmission ends,
    /// the wire is free.
    #[inline]
    pub(super) fn is_free(&self, now: Instant) -> bool {
        self.free_at <= now
    }

    /// When the wire has sent all that it was charged with.
    #[inline]
    pub(super) const fn free_at(&self) -> Instant {
        self.free_at
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
