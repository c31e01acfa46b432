//! Outages: periods in which the transmitter pauses or all transmitted packets are lost.

use gridhaul_scenario::scenario::{self, OutageMode};
use gridhaul_scenario::units::{Duration, Instant};

use super::medium::TimeSlots;

/// All outages of a direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Outages {
    /// The transmitter pauses.
    hold: Vec<Series>,
    /// The transmitter continues, and packets in transmission are lost.
    drop: Vec<Series>,
}

/// A single or periodic outage. The interval includes its start and excludes its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series {
    start: Instant,
    length: Duration,
    /// Period from start to start; never zero.
    every: Option<Duration>,
}

impl Outages {
    /// The outages of a direction.
    pub(super) fn new(outages: &[scenario::Outage]) -> Self {
        let outages_of = |mode| {
            outages
                .iter()
                .filter(|outage| outage.mode == mode && !outage.length.is_zero())
                .map(Series::new)
                .collect()
        };
        Self { hold: outages_of(OutageMode::Hold), drop: outages_of(OutageMode::Drop) }
    }

    /// Adds pauses outside the time slots of the direction.
    pub(super) fn pause_outside(&mut self, slots: &TimeSlots) {
        self.hold.extend(slots.gaps().into_iter().map(|gap| Series {
            start: Instant::ZERO + gap.start,
            length: gap.length,
            every: gap.every,
        }));
    }

    /// The earliest time from `from` on without a pause; [`Instant::NEVER`] if the outage does not
    /// end.
    pub(super) fn release(&self, from: Instant) -> Instant {
        let mut at = from;
        // Outages may overlap: repeat until no outage covers the time.
        while let Some(end) = self.hold.iter().filter_map(|series| series.end_around(at)).max() {
            at = end;
            if at == Instant::NEVER {
                break;
            }
        }
        at
    }

    /// End of a transmission that starts at `started` and takes `busy`, pauses included.
    pub(super) fn end_of_transmission(&self, started: Instant, busy: Duration) -> Instant {
        if started == Instant::NEVER {
            return Instant::NEVER;
        }
        let (mut at, mut left) = (started, busy);
        while let Some(pause) = self.hold.iter().map(|series| series.next_start(at)).min() {
            // A transmission that ends at the very start of an outage is not affected.
            if at + left <= pause {
                break;
            }
            left = left - pause.since(at);
            at = self.release(pause);
            if at == Instant::NEVER {
                break;
            }
        }
        at + left
    }

    /// The first pause that starts after `at`; [`Instant::NEVER`] if there is none.
    pub(super) fn next_pause(&self, at: Instant) -> Instant {
        self.hold.iter().map(|series| series.next_start(at)).min().unwrap_or(Instant::NEVER)
    }

    /// Whether an outage of mode `drop` overlaps a transmission.
    pub(super) fn loses(&self, started: Instant, sent: Instant) -> bool {
        self.drop
            .iter()
            .any(|series| series.end_around(started).is_some() || series.next_start(started) < sent)
    }
}

impl Series {
    fn new(outage: &scenario::Outage) -> Self {
        Self::recurring(outage.start, outage.length, outage.every)
    }

    /// Intervals of a length that begin at `start`, and then after each period `every`.
    pub(super) fn recurring(start: Duration, length: Duration, every: Option<Duration>) -> Self {
        // An outage whose period is not longer than its length never ends.
        let endless = every.is_some_and(|every| every <= length);
        Self {
            start: Instant::ZERO + start,
            length: if endless { Duration::MAX } else { length },
            every: every.filter(|_| !endless),
        }
    }

    /// Whether an interval covers a time, its start included and its end excluded.
    pub(super) fn covers(&self, at: Instant) -> bool {
        self.end_around(at).is_some()
    }

    /// The end of the outage that covers `at`, if any.
    fn end_around(&self, at: Instant) -> Option<Instant> {
        let start = self.last_start(at)?;
        (at.since(start) < self.length).then(|| self.end_of(start))
    }

    fn end_of(&self, start: Instant) -> Instant {
        if self.length == Duration::MAX { Instant::NEVER } else { start + self.length }
    }

    /// The last start at or before `at`.
    fn last_start(&self, at: Instant) -> Option<Instant> {
        if at < self.start {
            return None;
        }
        let Some(every) = self.every else { return Some(self.start) };
        let rounds = at.since(self.start).as_nanos() / every.as_nanos();
        Some(self.start + every * rounds)
    }

    /// The first start after `at`; [`Instant::NEVER`] if there is none.
    fn next_start(&self, at: Instant) -> Instant {
        match (self.last_start(at), self.every) {
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
    fn an_outage_includes_its_start_and_excludes_its_end() {
        let outages = Outages::new(&[outage(100, 10, None, OutageMode::Hold)]);
        let cases = [(99, 99), (100, 110), (109, 110), (110, 110), (500, 500)];
        for (from, expected) in cases {
            assert_eq!(outages.release(at(from)), at(expected), "from {from}");
        }
    }

    #[test]
    fn overlapping_outages_are_one_pause() {
        let outages = Outages::new(&[
            outage(100, 10, Some(50), OutageMode::Hold),
            outage(108, 5, None, OutageMode::Hold),
        ]);
        assert_eq!(outages.release(at(101)), at(113));
        assert_eq!(outages.release(at(151)), at(160));
    }

    #[test]
    fn a_transmission_pauses_and_resumes() {
        let outages = Outages::new(&[outage(100, 10, Some(50), OutageMode::Hold)]);
        let cases = [
            // (start, transmission time, end): before, up to the start, across one, across two.
            (80, 10, 90),
            (90, 10, 100),
            (90, 11, 111),
            (90, 70, 180),
            (110, 40, 150),
        ];
        for (start, busy, end) in cases {
            let sent = outages.end_of_transmission(at(start), Duration::from_nanos(busy));
            assert_eq!(sent, at(end), "{busy} from {start}");
        }
    }

    #[test]
    fn any_overlap_with_an_outage_loses_the_packet() {
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
    fn an_outage_without_end_pauses_for_ever() {
        for every in [0, 10] {
            let outages = Outages::new(&[outage(100, 10, Some(every), OutageMode::Hold)]);
            assert_eq!(outages.release(at(100)), Instant::NEVER);
            let sent = outages.end_of_transmission(at(90), Duration::from_nanos(20));
            assert_eq!(sent, Instant::NEVER);
        }
    }
}
