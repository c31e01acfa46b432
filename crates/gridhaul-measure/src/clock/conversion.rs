//! Conversion of times on a remote clock, with bounds that hold for any asymmetry of the path.
//!
//! The offset is estimated anew for each part of a run, from the exchanges some seconds before and
//! after it: a clock whose rate is corrected by NTP or PTP is linear for seconds, not for hours.
//! Bounds need nothing but positive delays.

use std::ops::Range;

use super::{Exchange, Segment, segments};

/// Exchanges that share an estimate.
const BLOCK: usize = 20;

/// Exchanges before and after a block that its estimate uses.
const WINDOW: usize = 100;

/// Exchanges next to a step whose times are unknown: delays can hide a step for some exchanges.
const GUARD: usize = 10;

/// A time on the remote clock, converted to the local clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// The true time is not earlier.
    pub earliest: i64,
    /// Estimate for a path whose least delays in both directions are equal.
    pub estimate: i64,
    /// The true time is not later.
    pub latest: i64,
}

/// Exchanges with a remote clock so far, and the estimate of the last block.
#[derive(Debug, Default)]
pub struct RemoteClock {
    exchanges: Vec<Exchange>,
    block: Option<Block>,
}

#[derive(Debug)]
struct Block {
    number: usize,
    pieces: Vec<Piece>,
}

/// Exchanges of a block without a step between them.
#[derive(Debug)]
struct Piece {
    /// Times between the first and the last of these exchanges are known.
    exchanges: Range<usize>,
    /// First and last time on the remote clock, with the offsets at these times.
    ends: [(i64, Offsets); 2],
}

/// Offset of the remote clock in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Offsets {
    min: f64,
    estimate: f64,
    max: f64,
}

impl RemoteClock {
    /// Adds the next exchange.
    pub fn push(&mut self, exchange: Exchange) {
        self.exchanges.push(exchange);
    }

    /// All exchanges so far.
    #[must_use]
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Whether later exchanges will not change the conversion of times before the exchange
    /// `number`.
    #[must_use]
    pub fn is_settled(&self, number: usize) -> bool {
        self.exchanges.len() >= (number / BLOCK + 1) * BLOCK + WINDOW
    }

    /// Converts a time on the remote clock between the remote ends of the exchange before `number`
    /// and of this one. `None` next to a step of the remote clock, and without enough exchanges.
    pub fn convert(&mut self, number: usize, remote: i64) -> Option<LocalTime> {
        let wanted = number / BLOCK;
        if self.block.as_ref().is_none_or(|block| block.number != wanted) {
            self.block = Some(self.estimate(wanted));
        }
        let pieces = &self.block.as_ref()?.pieces;
        let piece = pieces
            .iter()
            .find(|piece| piece.exchanges.start < number && number < piece.exchanges.end)?;
        let [(from, first), (to, last)] = piece.ends;
        let share = ((remote - from) as f64 / (to - from).max(1) as f64).clamp(0.0, 1.0);
        // The upper bound is a convex function of the time and the lower bound a concave one: the
        // chord is outside of both.
        let at = |of: fn(&Offsets) -> f64| of(&first) + (of(&last) - of(&first)) * share;
        Some(LocalTime {
            earliest: remote - at(|offsets| offsets.max).ceil() as i64,
            estimate: remote - at(|offsets| offsets.estimate).round() as i64,
            latest: remote - at(|offsets| offsets.min).floor() as i64,
        })
    }

    fn estimate(&self, number: usize) -> Block {
        let count = self.exchanges.len();
        let (start, end) = (number * BLOCK, ((number + 1) * BLOCK).min(count));
        let window = start.saturating_sub(WINDOW)..(end + WINDOW).min(count);
        let found = self.exchanges.get(window.clone()).and_then(segments);
        let found = found.map_or_else(Vec::new, |found| found.segments);
        let (first, last) = (0, found.len().saturating_sub(1));
        let pieces = found.iter().enumerate().filter_map(|(place, segment)| {
            let guard = |is_step: bool| if is_step { GUARD } else { 0 };
            let known = window.start + segment.exchanges.start + guard(place != first)
                ..(window.start + segment.exchanges.end).saturating_sub(guard(place != last));
            self.piece(segment, known, start.saturating_sub(1)..end)
        });
        Block { number, pieces: pieces.collect() }
    }

    fn piece(&self, segment: &Segment, known: Range<usize>, block: Range<usize>) -> Option<Piece> {
        let exchanges = known.start.max(block.start)..known.end.min(block.end);
        let last = exchanges.end.checked_sub(1).filter(|last| *last > exchanges.start)?;
        let at = |remote: i64| {
            let bounds = segment.line.offset_bounds(remote)?;
            let estimate = segment.line.offset(remote);
            Some((remote, Offsets { min: bounds.min, estimate, max: bounds.max }))
        };
        let ends = [
            at(self.exchanges[exchanges.start].remote_received)?,
            at(self.exchanges[last].remote_sent)?,
        ];
        Some(Piece { exchanges, ends })
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_testing::Numbers;
    use proptest::prelude::*;

    use super::*;
    use crate::clock::InjectedClock;

    const MS: i64 = 1_000_000;

    /// Exchanges every 50 ms over a path with these delays, each with a variation of up to
    /// `variation`; between two of them the true time of an event.
    fn exchanges(
        clock: &InjectedClock,
        count: i64,
        delays: [i64; 2],
        variation: i64,
    ) -> RemoteClock {
        let mut remote = RemoteClock::default();
        let mut numbers = Numbers::new(11);
        let mut random = || (numbers.draw() % variation.max(1) as u64) as i64;
        for number in 0..count {
            let delays = delays.map(|delay| delay + random());
            remote.push(clock.exchange(number * 50 * MS, delays, MS / 50));
        }
        remote
    }

    /// A true time between the remote ends of the exchange before `number` and of this one.
    fn event(number: usize, forward: i64) -> i64 {
        number as i64 * 50 * MS + forward - 10 * MS
    }

    #[test]
    fn times_are_converted_within_the_round_trip_time() {
        let clock = InjectedClock { offset: -300 * MS, drift: 80e-6, step: None };
        let mut remote = exchanges(&clock, 400, [2 * MS; 2], MS / 10);
        for number in [1, 57, 200, 399] {
            let time = event(number, 2 * MS);
            let found = remote.convert(number, clock.read(time)).unwrap();
            assert!(found.earliest <= time && time <= found.latest, "{number}: {found:?} {time}");
            assert!((found.estimate - time).abs() < MS / 10, "{number}: {found:?} {time}");
            assert!(found.latest - found.earliest < 5 * MS, "{found:?}");
        }
    }

    #[test]
    fn a_rate_that_changes_slowly_is_followed() {
        // 40 ppm for 20 s, then -40 ppm: one line does not fit, and no step is due.
        let clock = |time: i64| {
            let turn = 20_000 * MS;
            let rate = if time < turn { time } else { 2 * turn - time };
            time + rate / 25_000
        };
        let mut remote = RemoteClock::default();
        for number in 0..800 {
            let sent = number * 50 * MS;
            let (arrived, answered) = (sent + 2 * MS, sent + 2 * MS + MS / 50);
            let (remote_received, remote_sent) = (clock(arrived), clock(answered));
            remote.push(Exchange {
                sent,
                remote_received,
                remote_sent,
                received: answered + 2 * MS,
            });
        }
        for number in [100, 600, 700] {
            let time = event(number, 2 * MS);
            let found = remote.convert(number, clock(time)).unwrap();
            assert!(found.earliest <= time && time <= found.latest, "{number}: {found:?} {time}");
            assert!((found.estimate - time).abs() < MS / 10, "{number}: {found:?} {time}");
        }
    }

    #[test]
    fn times_next_to_a_step_are_unknown_and_others_are_not() {
        let step = Some((10_000 * MS, 30 * MS));
        let clock = InjectedClock { offset: 0, drift: 10e-6, step };
        let mut remote = exchanges(&clock, 400, [2 * MS; 2], MS / 10);
        let mut unknown = 0;
        for number in 1..400 {
            let time = event(number, 2 * MS);
            match remote.convert(number, clock.read(time)) {
                None => unknown += 1,
                Some(found) => {
                    assert!(found.earliest <= time && time <= found.latest, "{number}: {found:?}");
                }
            }
        }
        assert!((1..=2 * GUARD + 2).contains(&unknown), "{unknown}");
    }

    #[test]
    fn without_exchanges_no_time_is_known() {
        assert_eq!(RemoteClock::default().convert(3, 5), None);
        let clock = InjectedClock { offset: 0, drift: 0.0, step: None };
        let mut one = exchanges(&clock, 1, [MS; 2], 0);
        assert_eq!((one.convert(0, 5), one.convert(1, 5)), (None, None));
        assert!(!one.is_settled(0) && exchanges(&clock, 120, [MS; 2], 0).is_settled(19));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn the_bounds_contain_the_truth_for_any_asymmetry(
            offset in -1_000_000_000..1_000_000_000_i64,
            ppm in -200.0..200.0_f64,
            delays in [10 * MS..40 * MS, 0..40 * MS],
            variation in 0..5 * MS,
            number in 1_usize..150,
        ) {
            let clock = InjectedClock { offset, drift: ppm * 1e-6, step: None };
            let mut remote = exchanges(&clock, 150, delays, variation);
            let time = event(number, delays[0]);
            let found = remote.convert(number, clock.read(time)).unwrap();
            // Times are rounded to nanoseconds.
            prop_assert!(found.earliest <= time + 5 && time <= found.latest + 5, "{found:?} \
                {time}");
        }
    }
}
