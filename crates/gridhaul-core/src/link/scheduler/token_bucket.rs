//! Token buckets, which limit the rate of a class.

use gridhaul_scenario::units::{BitRate, Bytes, Instant};

/// A token bucket: tokens for bits accrue at a rate up to a capacity, and a packet may be sent when
/// there are tokens for all of its bits. In any time t, packets of at most the capacity do not
/// exceed rate · t + capacity.
#[derive(Debug, Clone)]
pub(in crate::link) struct TokenBucket {
    rate: i128,
    /// In billionths of a bit, the unit in which rate × nanoseconds is a whole number. Below zero
    /// after a packet that is larger than the capacity.
    level: i128,
    capacity: i128,
    updated: Instant,
}

/// Parts of the bits of a byte.
const PER_BYTE: i128 = 8_000_000_000;

impl TokenBucket {
    /// A full bucket. The rate must not be zero.
    pub(in crate::link) fn new(rate: BitRate, capacity: Bytes) -> Self {
        let capacity = i128::from(capacity.get()) * PER_BYTE;
        let rate = i128::from(rate.as_bits_per_sec());
        Self { rate, level: capacity, capacity, updated: Instant::ZERO }
    }

    /// When there are tokens for a packet of `bytes`, at `now` or later. A packet that is larger
    /// than the bucket waits until the bucket is full.
    pub(in crate::link) fn available_at(&self, now: Instant, bytes: u32) -> Instant {
        let needed = (i128::from(bytes) * PER_BYTE).min(self.capacity);
        let missing = needed - self.level_at(now);
        if missing <= 0 {
            return now;
        }
        let nanos = (missing + self.rate - 1) / self.rate;
        Instant::from_nanos(now.as_nanos().saturating_add(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// When the bucket is not in debt, at `now` or later: the rule of `sch_htb`, which sends a
    /// packet before there are tokens for all of it.
    pub(in crate::link) fn debt_ends(&self, now: Instant) -> Instant {
        self.available_at(now, 0)
    }

    /// A packet of `bytes` is sent.
    pub(in crate::link) fn take(&mut self, now: Instant, bytes: u32) {
        self.level = self.level_at(now) - i128::from(bytes) * PER_BYTE;
        self.updated = self.updated.max(now);
    }

    fn level_at(&self, now: Instant) -> i128 {
        let accrued = self.rate * i128::from(now.since(self.updated).as_nanos());
        (self.level + accrued).min(self.capacity)
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;
    use proptest::prelude::*;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    /// A byte takes a microsecond.
    fn bucket(burst: u64) -> TokenBucket {
        TokenBucket::new(BitRate::from_bits_per_sec(8_000_000), Bytes::new(burst))
    }

    #[test]
    fn a_burst_is_followed_by_packets_at_the_rate() {
        let mut bucket = bucket(1_000);
        let mut times = Vec::new();
        let mut now = at(5_000);
        for _ in 0..4 {
            now = bucket.available_at(now, 500);
            bucket.take(now, 500);
            times.push(now);
        }
        assert_eq!(times, [at(5_000), at(5_000), at(5_500), at(6_000)]);
    }

    #[test]
    fn a_packet_larger_than_the_bucket_waits_for_a_full_bucket_and_leaves_a_debt() {
        let mut bucket = bucket(1_000);
        bucket.take(at(0), 1_500);
        // 500 B of debt and a bucket of 1,000 B.
        assert_eq!(bucket.available_at(at(0), 1_500), at(1_500));
        assert_eq!(bucket.available_at(at(0), 200), at(700));
    }

    proptest! {
        #[test]
        fn packets_never_exceed_rate_times_time_plus_the_capacity(
            rate in 1_000_u64..1_000_000_000,
            burst in 1_600_u64..20_000,
            offers in prop::collection::vec((0_u64..5_000_000, 1_u32..1_600), 1..60),
        ) {
            let mut bucket = TokenBucket::new(BitRate::from_bits_per_sec(rate), Bytes::new(burst));
            let (mut now, mut sent) = (Instant::ZERO, Vec::new());
            for (gap, bytes) in offers {
                now = bucket.available_at(now + Duration::from_nanos(gap), bytes);
                bucket.take(now, bytes);
                sent.push((now, bytes));
            }
            for first in 0..sent.len() {
                let mut bits = 0;
                for &(time, bytes) in &sent[first..] {
                    bits += u128::from(bytes) * 8_000_000_000;
                    let span = u128::from(time.since(sent[first].0).as_nanos());
                    let limit = u128::from(rate) * span + u128::from(burst) * 8_000_000_000;
                    prop_assert!(bits <= limit);
                }
            }
        }
    }
}
