//! Transmission at rates that change at stated times.

use gridhaul_scenario::scenario::RateSchedule;
use gridhaul_scenario::units::{Duration, Instant};

use super::outage::Outages;

/// The rates of a direction with `rate_change` or with a trace of rates.
#[derive(Debug, Clone)]
pub(super) struct RateChanges(RateSchedule);

/// Parts of a bit in 1 s × 1 ns, the unit in which rate × time is a whole number.
const PER_BIT: u128 = 1_000_000_000;

impl RateChanges {
    pub(super) const fn new(schedule: RateSchedule) -> Self {
        Self(schedule)
    }

    /// End of the transmission of `bytes` that starts at `started`, outside a pause: rounded up to
    /// a nanosecond. The rate applies to the bits that are left when it changes.
    pub(super) fn end_of_transmission(
        &self,
        outages: &Outages,
        started: Instant,
        bytes: u32,
    ) -> Instant {
        let mut at = started;
        let mut left = u128::from(bytes) * 8 * PER_BIT;
        while at != Instant::NEVER {
            let rate = u128::from(self.0.rate_at(at).as_bits_per_sec());
            let change = self.0.next_change(at);
            let until = change.min(outages.next_pause(at));
            let possible = rate * u128::from(until.since(at).as_nanos());
            // The rate of a trace may be 0.
            if left <= possible && rate > 0 {
                // At most the time until `until`, which has 64 bits.
                return Instant::from_nanos(at.as_nanos() + left.div_ceil(rate) as u64);
            }
            let busy = left.checked_div(rate).and_then(|nanos| u64::try_from(nanos).ok());
            let busy = busy.map_or(Duration::MAX, Duration::from_nanos);
            let (periods, free) = outages.whole_periods(at, busy, change);
            if periods.is_zero() {
                left -= possible;
                at = outages.release(until);
            } else {
                left -= rate * u128::from(free.as_nanos());
                at += periods;
            }
        }
        Instant::NEVER
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::{Direction, Outage, OutageMode, RateChange};
    use gridhaul_scenario::units::BitRate;

    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn change(at_us: u64, mbit: u64) -> RateChange {
        let rate = BitRate::from_bits_per_sec(mbit * 1_000_000);
        RateChange { at: Duration::from_micros(at_us), rate, every: None }
    }

    /// 8 Mbit/s, a byte in a microsecond; from 1000 µs on 2 Mbit/s, from 2000 µs on 16 Mbit/s.
    fn direction() -> Direction {
        let rate = BitRate::from_bits_per_sec(8_000_000);
        Direction {
            rate_change: vec![change(1_000, 2), change(2_000, 16)],
            ..Direction::new(rate, Duration::ZERO)
        }
    }

    #[test]
    fn the_bits_that_are_left_at_a_change_have_the_new_rate() {
        let rates = RateChanges::new(RateSchedule::of(&direction()));
        // (start, bytes, end) in µs.
        let cases = [
            (0, 1_000, 1_000), // ends at the very change
            (500, 600, 1_400), // 500 B before it, 100 B at a quarter of the rate
            (900, 400, 2_025), // 100 B, then 250 B in 1 ms, then 50 B at twice the first rate
            (1_000, 250, 2_000),
            (3_000, 200, 3_100),
        ];
        for (start, bytes, end) in cases {
            let sent = rates.end_of_transmission(&Outages::default(), at(start), bytes);
            assert_eq!(sent, at(end), "{bytes} B from {start} µs");
        }
    }

    /// A pause in every second microsecond, from the first one on: half of the bits.
    #[test]
    fn periods_with_a_pause_are_skipped_up_to_the_next_change() {
        let rates = RateChanges::new(RateSchedule::of(&direction()));
        let (start, length) = (Duration::ZERO, Duration::from_micros(1));
        let every = Some(Duration::from_micros(2));
        let outages = Outages::new(&[Outage { start, length, every, mode: OutageMode::Hold }]);
        // (bytes, end) in µs: 500 B and 125 B up to the changes, and 2 B in each later period.
        let cases =
            [(300, 600), (500, 1_000), (600, 1_800), (725, 2_100), (2_000_000_625, 2_000_002_000)];
        for (bytes, end) in cases {
            assert_eq!(rates.end_of_transmission(&outages, at(1), bytes), at(end), "{bytes} B");
        }
    }

    #[test]
    fn a_pause_moves_the_remaining_bits_to_a_later_rate() {
        let rates = RateChanges::new(RateSchedule::of(&direction()));
        let pause = |length| {
            let (start, length) = (Duration::from_micros(900), Duration::from_micros(length));
            Outages::new(&[Outage { start, length, every: None, mode: OutageMode::Hold }])
        };
        // 900 B before the pause; 100 B after it, at 2 Mbit/s or at 16 Mbit/s.
        let ends = [200, 1_100]
            .map(|length| rates.end_of_transmission(&pause(length), Instant::ZERO, 1_000));
        assert_eq!(ends, [at(1_500), at(2_050)]);
    }
}
