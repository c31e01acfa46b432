//! Delivery opportunities of a link.

use crate::units::{BitRate, Duration, Instant};

/// The times at which a link can deliver a packet, counted from the beginning of the run: positions
/// 0, 1, 2, …
#[derive(Debug, Clone)]
pub struct Deliveries {
    /// Milliseconds from the beginning of a period, in order.
    millis: Vec<u32>,
    /// Time after which the trace starts again: that of its last line.
    period: Option<Duration>,
}

impl Deliveries {
    /// Room of an opportunity: `PACKET_SIZE` in `link_queue.hh` of Mahimahi.
    pub const ROOM: u32 = 1_504;
    /// Header that a TUN device adds to each packet in Mahimahi (`struct tun_pi` of Linux).
    pub const PACKET_HEADER: u32 = 4;

    /// Opportunities at these milliseconds, which are in order. `None` if there are none, or if the
    /// last one is at time 0: the trace then has no length.
    #[must_use]
    pub fn new(millis: Vec<u32>, repeat: bool) -> Option<Self> {
        let last = u64::from(*millis.last()?);
        let in_order = millis.is_sorted() && last > 0;
        let period = repeat.then(|| Duration::from_millis(last));
        in_order.then_some(Self { millis, period })
    }

    /// The time of a position; [`Instant::NEVER`] after the end.
    #[must_use]
    pub fn time(&self, position: u64) -> Instant {
        let length = self.millis.len() as u64;
        let (round, index) = (position / length, position % length);
        let base = match (round, self.period) {
            (0, _) => Duration::ZERO,
            (round, Some(period)) => period * round,
            (_, None) => return Instant::NEVER,
        };
        Instant::ZERO + base + Duration::from_millis(u64::from(self.millis[index as usize]))
    }

    /// The first position at or after a time, which is the number of opportunities before it.
    #[must_use]
    pub fn first_from(&self, at: Instant) -> u64 {
        let length = self.millis.len() as u64;
        let nanos = at.as_nanos();
        let Some(period) = self.period else { return self.index_from(nanos) };
        // The last opportunity of a round is at the time at which the next round begins: a time
        // between two rounds belongs to the earlier one.
        let rounds = nanos.saturating_sub(1) / period.as_nanos();
        let left = nanos - rounds * period.as_nanos();
        rounds.saturating_mul(length).saturating_add(self.index_from(left))
    }

    fn index_from(&self, nanos: u64) -> u64 {
        let millis = nanos.div_ceil(1_000_000);
        self.millis.partition_point(|at| u64::from(*at) < millis) as u64
    }

    /// Rate of full packets at all opportunities from `start` to `end`, the latter excluded.
    #[must_use]
    pub fn mean_rate(&self, start: Instant, end: Instant) -> BitRate {
        let count = self.first_from(end).saturating_sub(self.first_from(start));
        let bits = u128::from(count) * u128::from(Self::ROOM - Self::PACKET_HEADER) * 8;
        let nanos = u128::from(end.since(start).as_nanos());
        let rate = (bits * 1_000_000_000).checked_div(nanos).unwrap_or_default();
        BitRate::from_bits_per_sec(rate as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_trace_starts_again_at_its_last_line() {
        let trace = Deliveries::new(vec![0, 3, 3, 10], true).expect("a trace");
        let times: Vec<_> = (0..9).map(|position| trace.time(position)).collect();
        assert_eq!(times, [0, 3, 3, 10, 10, 13, 13, 20, 20].map(at));
        let positions = [0, 1, 3, 4, 10, 11, 13, 20, 21].map(|ms| trace.first_from(at(ms)));
        assert_eq!(positions, [0, 1, 1, 3, 3, 5, 5, 7, 9]);
        assert_eq!(trace.first_from(at(3) + Duration::from_nanos(1)), 3);
        // 4 opportunities in 10 ms.
        assert_eq!(trace.mean_rate(at(0), at(1_000)).as_bits_per_sec(), 399 * 12_000);
    }

    #[test]
    fn a_trace_that_is_not_repeated_ends() {
        let trace = Deliveries::new(vec![1, 5], false).expect("a trace");
        assert_eq!([0, 1, 2].map(|position| trace.time(position)), [at(1), at(5), Instant::NEVER]);
        assert_eq!([0, 1, 2, 6].map(|ms| trace.first_from(at(ms))), [0, 0, 1, 2]);
        assert_eq!(trace.first_from(Instant::NEVER), 2);
    }

    #[test]
    fn positions_and_times_agree() {
        let trace = Deliveries::new(vec![2, 2, 7], true).expect("a trace");
        for position in 0..50 {
            let time = trace.time(position);
            let first = trace.first_from(time);
            assert!(first <= position && trace.time(first) == time, "position {position}");
            assert!(first == 0 || trace.time(first - 1) < time, "position {position}");
        }
    }

    #[test]
    fn a_trace_without_length_is_none() {
        for millis in [vec![], vec![0, 0], vec![5, 4]] {
            assert!(Deliveries::new(millis.clone(), true).is_none(), "{millis:?}");
        }
    }
}
