//! Steps of a clock: the times between which its offset is a line.

use super::{ClockLine, Exchange};

/// Least size of a step that is reported: time stamps in user space differ by some microseconds.
const RESOLUTION: f64 = 20_000.0;

/// Times between which the offset is linear.
#[derive(Debug, Clone)]
pub struct Segment {
    /// The exchanges of the segment, by index.
    pub exchanges: std::ops::Range<usize>,
    /// The lines that are consistent with them.
    pub line: ClockLine,
}

/// The clock between steps.
#[derive(Debug, Clone)]
pub struct Synchronisation {
    /// Segments in order of time; a step is between two of them.
    pub segments: Vec<Segment>,
    /// Least step that the exchanges show, in nanoseconds: smaller ones are hidden by the variation
    /// of the delays.
    pub detectable_step: f64,
    /// Least round-trip time in nanoseconds.
    pub min_round_trip: i64,
}

/// Divides exchanges, in the order of time, at the steps of the remote clock. `None` of no
/// exchanges.
///
/// Exchanges without a step leave a line as much space as the least round-trip time, apart from
/// their variation. A step takes its size from this space, because the line cannot follow it. A
/// step is therefore reported when the space is smaller than the least round-trip time by twice the
/// variation, the difference between the median and the least round-trip time.
#[must_use]
pub fn segments(exchanges: &[Exchange]) -> Option<Synchronisation> {
    let mut round_trips: Vec<_> = exchanges.iter().map(Exchange::round_trip).collect();
    round_trips.sort_unstable();
    let min_round_trip = *round_trips.first()?;
    let variation = (round_trips[round_trips.len() / 2] - min_round_trip) as f64;
    let detectable_step = (2.0 * variation).max(RESOLUTION);
    let is_linear =
        |line: &ClockLine| min_round_trip as f64 - line.greatest_width() <= detectable_step;
    let mut found = Vec::new();
    let mut start = 0;
    while start < exchanges.len() {
        // More exchanges never leave more space, so that the longest linear part is found by
        // halving.
        let (mut linear, mut broken) = (start + 1, exchanges.len() + 1);
        while broken - linear > 1 {
            let middle = usize::midpoint(linear, broken);
            if ClockLine::new(&exchanges[start..middle]).is_some_and(|line| is_linear(&line)) {
                linear = middle;
            } else {
                broken = middle;
            }
        }
        let line = ClockLine::new(&exchanges[start..linear])?;
        found.push(Segment { exchanges: start..linear, line });
        start = linear;
    }
    Some(Synchronisation { segments: found, detectable_step, min_round_trip })
}

#[cfg(test)]
mod tests {
    use gridhaul_testing::Numbers;
    use proptest::prelude::*;

    use super::*;
    use crate::clock::{Bounds, InjectedClock};

    const MS: i64 = 1_000_000;

    /// Exchanges every 50 ms over a path with these delays, each with an exponential variation of
    /// this mean.
    fn exchanges(
        clock: &InjectedClock,
        count: i64,
        delays: [i64; 2],
        variation: f64,
    ) -> Vec<Exchange> {
        let mut numbers = Numbers::new(7);
        let mut random = || (-(1.0 - numbers.between(0.0, 1.0)).ln() * variation) as i64;
        let exchange = |number: i64| {
            let delays = delays.map(|delay| delay + random());
            clock.exchange(number * 50 * MS, delays, MS / 100)
        };
        (0..count).map(exchange).collect()
    }

    /// The offset when the remote clock reads a time, apart from a step: `r = t (1 + d) + o`.
    fn truth(clock: &InjectedClock, remote: i64) -> f64 {
        let time = (remote - clock.offset) as f64 / (1.0 + clock.drift);
        clock.offset as f64 + clock.drift * time
    }

    fn is_near(found: f64, expected: f64, tolerance: f64) -> bool {
        (found - expected).abs() <= tolerance
    }

    #[test]
    fn offset_and_drift_of_a_symmetric_path_are_found() {
        let clock = InjectedClock { offset: 3 * MS, drift: 50e-6, step: None };
        let all = exchanges(&clock, 200, [20 * MS; 2], 0.1e6);
        let found = segments(&all).unwrap();
        let [segment] = &found.segments[..] else { panic!("{} segments", found.segments.len()) };
        let drift = segment.line.drift().unwrap();
        assert!(is_near(drift, 50e-6, 2e-6), "{drift}");
        let last = all[199].remote_received;
        let offset = segment.line.offset(last);
        assert!(is_near(offset, truth(&clock, last), 0.02e6), "{offset}");
    }

    #[test]
    fn the_error_on_an_asymmetric_path_is_half_of_the_asymmetry() {
        let clock = InjectedClock { offset: 0, drift: 0.0, step: None };
        let all = exchanges(&clock, 200, [25 * MS, 15 * MS], 0.05e6);
        let line = &segments(&all).unwrap().segments[0].line;
        assert!(is_near(line.offset(0), 5e6, 0.02e6), "{}", line.offset(0));
        let Bounds { min, max } = line.offset_bounds(all[100].remote_received).unwrap();
        assert!(is_near(min, -15e6, 0.1e6) && is_near(max, 25e6, 0.1e6), "{min} {max}");
    }

    #[test]
    fn a_step_is_found_with_its_time_and_size() {
        let step = Some((5_000 * MS, 2 * MS));
        let clock = InjectedClock { offset: -7 * MS, drift: -20e-6, step };
        let all = exchanges(&clock, 200, [20 * MS; 2], 0.1e6);
        let found = segments(&all).unwrap();
        let [before, after] = &found.segments[..] else { panic!("{}", found.segments.len()) };
        assert!((98..=104).contains(&after.exchanges.start), "{:?}", after.exchanges);
        let at = all[after.exchanges.start].remote_received;
        let size = after.line.offset(at) - before.line.offset(at);
        assert!(is_near(size, 2e6, 0.1e6), "{size}");
        assert!(found.detectable_step < 1e6, "{}", found.detectable_step);
    }

    #[test]
    fn without_exchanges_nothing_is_known() {
        assert!(segments(&[]).is_none());
        let clock = InjectedClock { offset: 5, drift: 0.0, step: None };
        let one = segments(&exchanges(&clock, 1, [MS; 2], 0.0)).unwrap();
        let line = &one.segments[0].line;
        let bounds = line.drift_bounds().unwrap();
        assert_eq!([bounds.min, bounds.max], [f64::NEG_INFINITY, f64::INFINITY]);
        assert_eq!(line.drift(), None);
        assert_eq!(line.offset(MS), 5.0, "the middle of the only exchange");
    }

    #[test]
    fn the_end_of_the_range_of_drifts_is_no_estimate() {
        // Two exchanges in 50 ms: queues have moved from one direction to the other, which a drift
        // of 4,000 ppm explains best.
        let exchange = |sent: i64, forward: i64| Exchange {
            sent,
            remote_received: sent + forward,
            remote_sent: sent + forward,
            received: sent + 4 * MS / 10,
        };
        let found = segments(&[exchange(0, MS / 10), exchange(50 * MS, 3 * MS / 10)]).unwrap();
        let line = &found.segments[0].line;
        assert_eq!(line.drift(), None);
        let bounds = line.drift_bounds().unwrap();
        assert!(bounds.min.is_infinite() && bounds.max.is_infinite(), "{bounds:?}");
        // Without the drift, the offset is still limited by the round-trip times.
        let offset = line.offset_bounds(0).unwrap();
        assert!(offset.contains(0.0) && offset.max - offset.min < 1e6, "{offset:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_bounds_contain_the_truth_for_any_asymmetry(
            offset in -1_000_000_000..1_000_000_000_i64,
            ppm in -200.0..200.0_f64,
            delays in [0..50 * MS, 0..50 * MS],
            variation in 0.0..5e6_f64,
        ) {
            let clock = InjectedClock { offset, drift: ppm * 1e-6, step: None };
            let all = exchanges(&clock, 100, delays, variation);
            let found = segments(&all).unwrap();
            prop_assert_eq!(found.segments.len(), 1);
            let line = &found.segments[0].line;
            let middle = all[50].remote_received;
            let bounds = line.offset_bounds(middle).unwrap();
            // The bounds are rounded to nanoseconds, as the times are.
            let slack = Bounds { min: bounds.min - 5.0, max: bounds.max + 5.0 };
            prop_assert!(slack.contains(truth(&clock, middle)), "{bounds:?}");
            let drift = line.drift_bounds().unwrap();
            let slack = Bounds { min: drift.min - 1e-9, max: drift.max + 1e-9 };
            prop_assert!(slack.contains(clock.drift / (1.0 + clock.drift)), "{drift:?}");
        }
    }
}
