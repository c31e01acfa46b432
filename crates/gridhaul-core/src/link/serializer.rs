//! Transmission times of packets.

use gridhaul_scenario::units::{BitRate, Duration};

/// Computes transmission times at a fixed rate, in whole nanoseconds.
///
/// A transmission time of 50 µs or more is rounded up to a whole nanosecond. Of a shorter one, the
/// fraction of a nanosecond is carried over to the next packet, so that a long busy period of a
/// high-rate link keeps its rate.
#[derive(Debug, Clone, Copy)]
pub struct Serializer {
    bits_per_sec: u64,
    /// Numerator of the carried fraction; the denominator is the rate.
    carry: u64,
    /// Size of the previous packet, and its transmission time without the carried fraction: whole
    /// nanoseconds and the numerator of the rest. Most packets of a link have the same size, so
    /// most need no division.
    last: u32,
    nanos: u64,
    rest: u64,
}

/// From 50 µs on, rounding up to a nanosecond changes the time by at most 0.002 %. Equal packets
/// must take equal times: with a carried fraction, a segment that should arrive exactly when a
/// delayed-ACK timer expires arrived a nanosecond too late, unlike in ns-2.
const WHOLE_FROM_NS: u64 = 50_000;

impl Serializer {
    /// A serializer of this rate, which must not be zero.
    ///
    /// # Panics
    /// If the rate is zero.
    #[must_use]
    pub fn new(rate: BitRate) -> Self {
        assert!(rate.as_bits_per_sec() > 0, "a link needs a rate above zero");
        Self { bits_per_sec: rate.as_bits_per_sec(), carry: 0, last: 0, nanos: 0, rest: 0 }
    }

    /// Transmission time of the next packet of `bytes` (at most 64 MB).
    #[inline(always)]
    pub fn charge(&mut self, bytes: u32) -> Duration {
        if bytes != self.last {
            self.divide(bytes);
        }
        // Both parts are below the rate, so their sum makes at most one more nanosecond.
        let carry = self.carry + self.rest;
        let is_carried = carry >= self.bits_per_sec;
        self.carry = if is_carried { carry - self.bits_per_sec } else { carry };
        Duration::from_nanos(self.nanos + u64::from(is_carried))
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

    /// Resets the carried fraction: the transmitter has been idle.
    #[inline]
    pub fn idle(&mut self) {
        self.carry = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_high_rate_link_keeps_its_rate_to_the_nanosecond() {
        // 30 Mbit/s does not divide 40 B into whole nanoseconds: 10 666.67 ns each.
        let mut serializer = Serializer::new(BitRate::from_bits_per_sec(30_000_000));
        let total: u64 = (0..3_000_000).map(|_| serializer.charge(40).as_nanos()).sum();
        assert_eq!(total, 32_000_000_000);
    }

    #[test]
    fn sizes_share_one_carried_fraction() {
        // 3 Gbit/s: 1 B takes 2.67 ns, 2 B take twice that; no transmission ends early.
        let rate = 3_000_000_000;
        let mut serializer = Serializer::new(BitRate::from_bits_per_sec(rate));
        let (mut work, mut nanos) = (0, 0);
        for bytes in [1, 1, 2, 1, 2, 2, 2, 1, 40, 1] {
            work += u64::from(bytes) * 8_000_000_000;
            nanos += serializer.charge(bytes).as_nanos();
            assert_eq!(nanos, work / rate);
        }
    }

    #[test]
    fn equal_packets_of_a_low_rate_link_take_equal_times() {
        // 3 Mbit/s: 40 B take 106 666.67 ns.
        let mut serializer = Serializer::new(BitRate::from_bits_per_sec(3_000_000));
        for _ in 0..10 {
            assert_eq!(serializer.charge(40).as_nanos(), 106_667);
        }
    }
}
