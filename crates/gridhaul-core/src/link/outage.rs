//! Times at which a direction does not work.

use gridhaul_scenario::scenario::{self, OutageMode};
use gridhaul_scenario::units::{Duration, Instant};

/// All outages of a direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Outages {
    /// The wire stands still.
    hold: Vec<Series>,
    /// The wire goes on, and what it sends is lost.
    lose: Vec<Series>,
}

/// One outage, or one that comes again. It covers its begin and not its end.
#[derive(Debug, Clone, Copy)]
struct Series {
    start: Instant,
    length: Duration,
    /// From begin to begin; never zero.
    every: Option<Duration>,
}

impl Outages {
    /// The outages of a direction.
    pub(super) fn new(outages: &[scenario::Outage]) -> Self {
        let of = |mode| {
            outages
                .iter()
                .filter(|outage| outage.mode == mode && !outage.length.is_zero())
                .map(Series::new)
                .collect()
        };
        Self { hold: of(OutageMode::Hold), lose: of(OutageMode::Drop) }
    }

    /// The earliest time from `from` on at which the wire does not stand still;
    /// [`Instant::NEVER`] if it does for ever.
    pub(super) fn release(&self, from: Instant) -> Instant {
        let mut at = from;
        // Outages may overlap: each end is looked at again until none covers it.
        while let Some(end) = self.hold.iter().filter_map(|series| series.end_around(at)).max() {
            at = end;
            if at == Instant::NEVER {
                break;
            }
        }
        at
    }

    /// When a transmission that begins at `started` and takes `busy` ends, with all standstills.
    pub(super) fn end_of_transmission(&self, started: Instant, busy: Duration) -> Instant {
        if started == Instant::NEVER {
            return Instant::NEVER;
        }
        let (mut at, mut left) = (started, busy);
        while let Some(stop) = self.hold.iter().map(|series| series.next_begin(at)).min() {
            // Ending at the very instant at which a standstill begins is in time.
            if at + left <= stop {
                break;
            }
            left = left - stop.since(at);
            at = self.release(stop);
            if at == Instant::NEVER {
                break;
            }
        }
        at + left
    }

    /// Whether an outage that loses covers any part of a transmission.
    pub(super) fn loses(&self, started: Instant, sent: Instant) -> bool {
        self.lose
            .iter()
            .any(|series| series.end_around(started).is_some() || series.next_begin(started) < sent)
    }
}

impl Series {
    fn new(outage: &scenario::Outage) -> Self {
        // One that comes again before it has ended never ends.
        let endless = outage.every.is_some_and(|every| every <= outage.length);
        Self {
            start: Instant::ZERO + outage.start,
            length: if endless { Duration::MAX } else { outage.length },
            every: outage.every.filter(|_| !endless),
        }
    }

    /// The end of the outage that covers `at`, if one does.
    fn end_around(&self, at: Instant) -> Option<Instant> {
        let begin = self.last_begin(at)?;
        (at.since(begin) < self.length).then(|| self.end_of(begin))
    }

    fn end_of(&self, begin: Instant) -> Instant {
        if self.length == Duration::MAX { Instant::NEVER } else { begin + self.length }
    }

    /// The last begin at or before `at`.
    fn last_begin(&self, at: Instant) -> Option<Instant> {
        if at < self.start {
            return None;
        }
        let Some(every) = self.every else { return Some(self.start) };
        let rounds = at.since(self.start).as_nanos() / every.as_nanos();
        Some(self.start + every * rounds)
    }

    /// The first begin after `at`; [`Instant::NEVER`] if there is none.
    fn next_begin(&self, at: Instant) -> Instant {
        match (self.last_begin(at), self.every) {
            (None, _) => self.start,
            (Some(last), Some(every)) => last + every,
            (Some(_), None) => Instant::NEVER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outage(start: u64, length: u64, every: Option<u64>, mode: OutageMode) -> scenario::Outage {
        scenario::Outage {
            start: Duration::from_nanos(start),
            length: Duration::from_nanos(length),
            every: every.map(Duration::from_nanos),
            mode,
        }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    #[test]
    fn begin_is_covered_and_end_is_not() {
        let outages = Outages::new(&[outage(100, 10, None, OutageMode::Hold)]);
        let cases = [(99, 99), (100, 110), (109, 110), (110, 110), (500, 500)];
        for (from, expected) in cases {
            assert_eq!(outages.release(at(from)), at(expected), "from {from}");
        }
    }

    #[test]
    fn overlapping_and_returning_outages_are_one_standstill() {
        let outages = Outages::new(&[
            outage(100, 10, Some(50), OutageMode::Hold),
            outage(108, 5, None, OutageMode::Hold),
        ]);
        assert_eq!(outages.release(at(101)), at(113));
        assert_eq!(outages.release(at(151)), at(160));
    }

    #[test]
    fn a_transmission_stands_still_and_goes_on() {
        let outages = Outages::new(&[outage(100, 10, Some(50), OutageMode::Hold)]);
        let cases = [
            // (begin, length, end): before, up to the begin, across one, across two.
            (80, 10, 90),
            (90, 10, 100),
            (90, 11, 111),
            (90, 70, 180),
            (110, 40, 150),
        ];
        for (begin, busy, end) in cases {
            let sent = outages.end_of_transmission(at(begin), Duration::from_nanos(busy));
            assert_eq!(sent, at(end), "{busy} from {begin}");
        }
    }

    #[test]
    fn any_part_on_the_wire_during_an_outage_is_enough_to_lose() {
        let outages = Outages::new(&[outage(100, 10, None, OutageMode::Drop)]);
        let cases = [
            ((90, 100), false),
            ((90, 101), true),
            ((105, 106), true),
            ((109, 120), true),
            ((110, 120), false),
        ];
        for ((started, sent), lost) in cases {
            assert_eq!(outages.loses(at(started), at(sent)), lost, "{started} to {sent}");
        }
    }

    #[test]
    fn an_outage_without_end_holds_for_ever() {
        for every in [0, 10] {
            let outages = Outages::new(&[outage(100, 10, Some(every), OutageMode::Hold)]);
            assert_eq!(outages.release(at(100)), Instant::NEVER);
            let sent = outages.end_of_transmission(at(90), Duration::from_nanos(20));
            assert_eq!(sent, Instant::NEVER);
        }
    }
}
