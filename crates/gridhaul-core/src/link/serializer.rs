//! The time that a packet takes on a wire.

use gridhaul_scenario::units::{BitRate, Duration};

/// Charges packets their time on a wire of one rate, in whole nanoseconds.
///
/// A packet that takes 50 µs or more is charged the next whole nanosecond, always the
/// same. Of a shorter one the fraction of a nanosecond is carried to the next packet, so that a long
/// busy period of a fast wire keeps its rate.
#[derive(Debug, Clone, Copy)]
pub struct Serializer {
    bits_per_sec: u64,
    /// Numerator of the carried fraction; the denominator is the rate.
    carry: u64,
    /// Size of the packet charged last, and what it takes without the carried fraction: whole
    /// nanoseconds and the numerator of the rest. Most packets of a wire are of one size, so most
    /// need no division.
    last: u32,
    nanos: u64,
    rest: u64,
}

/// From 50 µs on a whole nanosecond more is at most 0.002 %, and equal packets must take equal times:
/// with a carried fraction a segment that should arrive as the timer of a delayed acknowledgement
/// fires came a nanosecond too late, and ns-2 was not followed.
const WHOLE_FROM_NS: u64 = 50_000;

impl Serializer {
    /// A wire of this rate, which must not be zero.
    ///
    /// # Panics
    /// On a rate of zero.
    #[must_use]
    pub fn new(rate: BitRate) -> Self {
        assert!(rate.as_bits_per_sec() > 0, "a wire needs a rate above zero");
        Self { bits_per_sec: rate.as_bits_per_sec(), carry: 0, last: 0, nanos: 0, rest: 0 }
    }

    /// Time that the next packet of `bytes` (at most 64 MB) takes.
    #[inline]
    pub fn charge(&mut self, bytes: u32) -> Duration {
        if bytes != self.last {
            self.divide(bytes);
        }
        // Both parts are below the rate, so their sum makes at most one more nanosecond.
        let carry = self.carry + self.rest;
        let whole = carry >= self.bits_per_sec;
        self.carry = if whole { carry - self.bits_per_sec } else { carry };
        Duration::from_nanos(self.nanos + u64::from(whole))
    }

    #[cold]
    fn divide(&mut self, bytes: u32) {
        let work = u64::from(bytes) * 8_000_000_000;
        self.last = bytes;
        self.nanos = work / self.bits_per_sec;
        self.rest = work % self.bits_per_sec;
        if self.nanos >= WHOLE_FROM_NS && self.rest > 0 {
            self.nanos += 1;
            self.rest = 0;
        }
    }

    /// Forgets the carried fraction: the wire has been idle.
    #[inline]
    pub fn idle(&mut self) {
        self.carry = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_fast_wire_keeps_its_rate_to_the_nanosecond() {
        // 30 Mbit/s does not divide 40 B into whole nanoseconds: 10 666.67 ns each.
        let mut wire = Serializer::new(BitRate::from_bits_per_sec(30_000_000));
        let total: u64 = (0..3_000_000).map(|_| wire.charge(40).as_nanos()).sum();
        assert_eq!(total, 32_000_000_000);
    }

    #[test]
    fn sizes_share_one_carried_fraction() {
        // 3 Gbit/s: 1 B takes 2.67 ns, 2 B take twice that; both are never early.
        let rate = 3_000_000_000;
        let mut wire = Serializer::new(BitRate::from_bits_per_sec(rate));
        let (mut work, mut nanos) = (0, 0);
        for bytes in [1, 1, 2, 1, 2, 2, 2, 1, 40, 1] {
            work += u64::from(bytes) * 8_000_000_000;
            nanos += wire.charge(bytes).as_nanos();
            assert_eq!(nanos, work / rate);
        }
    }

    #[test]
    fn equal_packets_of_a_slow_wire_take_equal_times() {
        // 3 Mbit/s: 40 B take 106 666.67 ns.
        let mut wire = Serializer::new(BitRate::from_bits_per_sec(3_000_000));
        for _ in 0..10 {
            assert_eq!(wire.charge(40).as_nanos(), 106_667);
        }
    }
}
