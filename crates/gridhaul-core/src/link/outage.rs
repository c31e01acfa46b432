//! Outages: periods in which the transmitter pauses or all transmitted packets are lost.

use gridhaul_scenario::scenario::{self, OutageMode};
use gridhaul_scenario::units::{Duration, Instant};

use super::medium::TimeSlots;

/// All outages of a direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Outages {
    /// The transmitter pauses.
    hold: Vec<Series>,
    /// The repetition of the periodic pauses.
    cycle: Option<Cycle>,
    /// The transmitter continues, and packets in transmission are lost.
    drop: Vec<Series>,
}

/// The time after which periodic pauses repeat.
#[derive(Debug, Clone, Copy)]
struct Cycle {
    /// Start of the last of the series to begin.
    from: Instant,
    period: Duration,
    /// Time of a period without a pause of the periodic series.
    free: Duration,
}

/// Largest number of pauses in a cycle. Series whose periods have no small common multiple are
/// followed pause by pause.
const CYCLE_PAUSES_MAX: u128 = 1_000;

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
        Self::of(outages_of(OutageMode::Hold), outages_of(OutageMode::Drop))
    }

    fn of(mut hold: Vec<Series>, drop: Vec<Series>) -> Self {
        let cycle = Cycle::of(&hold);
        if let Some(Cycle { from, free: Duration::ZERO, .. }) = cycle {
            // Together, the periodic pauses have no end.
            hold.push(Series { start: from, length: Duration::MAX, every: None });
        }
        let cycle = cycle.filter(|cycle| !cycle.free.is_zero());
        Self { hold, cycle, drop }
    }

    /// Adds pauses outside the time slots of the direction.
    pub(super) fn pause_outside(&mut self, slots: &TimeSlots) {
        let Self { mut hold, drop, .. } = std::mem::take(self);
        hold.extend(slots.gaps().into_iter().map(|gap| Series {
            start: Instant::ZERO + gap.start,
            length: gap.length,
            every: gap.every,
        }));
        *self = Self::of(hold, drop);
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
            let (periods, free) = self.whole_periods(at, left, Instant::NEVER);
            if periods.is_zero() {
                left = left - pause.since(at);
                at = self.release(pause);
            } else {
                left = left - free;
                at += periods;
            }
            if at == Instant::NEVER {
                break;
            }
        }
        at + left
    }

    /// Whole cycles of periodic pauses that begin at `at`, outside a pause, end before `until`,
    /// and in which a transmission of `busy` does not end: their length, and the time in it without
    /// a pause.
    pub(super) fn whole_periods(
        &self,
        at: Instant,
        busy: Duration,
        until: Instant,
    ) -> (Duration, Duration) {
        let Some(Cycle { from, period, free }) = self.cycle else { return Default::default() };
        if busy <= free || at < from {
            return Default::default();
        }
        let single = self.hold.iter().filter(|series| series.every.is_none());
        let next =
            single.map(|series| series.next_start(at)).min().map_or(until, |next| next.min(until));
        // Neither the end of the transmission nor the start of a single pause is in these cycles.
        let before =
            |time: Duration, cycle: Duration| time.as_nanos().saturating_sub(1) / cycle.as_nanos();
        let cycles = before(busy, free).min(before(next.since(at), period));
        (period * cycles, free * cycles)
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

impl Cycle {
    /// The cycle of the periodic series; `None` without one, or with too many pauses.
    fn of(hold: &[Series]) -> Option<Self> {
        let periodic: Vec<Series> =
            hold.iter().copied().filter(|series| series.every.is_some()).collect();
        let from = periodic.iter().map(|series| series.start).max()?;
        let everys = periodic.iter().filter_map(|series| series.every).map(Duration::as_nanos);
        let period = everys.clone().try_fold(1, common_multiple)?;
        if everys.map(|every| u128::from(period / every)).sum::<u128>() > CYCLE_PAUSES_MAX {
            return None;
        }
        let period = Duration::from_nanos(period);
        let outages = Outages { hold: periodic, ..Outages::default() };
        let (mut at, mut free) = (from, Duration::ZERO);
        let end = from + period;
        // Not `release`: pauses without a gap would not end.
        while at < end {
            match outages.hold.iter().filter_map(|series| series.end_around(at)).max() {
                Some(covered) => at = covered,
                None => {
                    let pause = outages.next_pause(at).min(end);
                    free += pause.since(at);
                    at = pause;
                }
            }
        }
        Some(Self { from, period, free })
    }
}

/// The least common multiple; `None` if it is too large.
fn common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (a / divisor).checked_mul(b)
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

    /// The same by passing every pause.
    fn end_by_pauses(outages: &Outages, started: u64, busy: u64) -> Instant {
        let mut left = busy;
        let mut now = started;
        while left > 0 {
            if outages.release(at(now)) == Instant::NEVER {
                return Instant::NEVER;
            }
            left -= u64::from(outages.release(at(now)) == at(now));
            now += 1;
        }
        at(now)
    }

    #[test]
    fn whole_periods_are_skipped_without_a_change_of_the_end() {
        for outages in [
            vec![outage(3, 2, Some(7), OutageMode::Hold)],
            vec![outage(3, 2, Some(7), OutageMode::Hold), outage(90, 8, None, OutageMode::Hold)],
            vec![
                outage(0, 1, Some(4), OutageMode::Hold),
                outage(30, 3, Some(6), OutageMode::Hold),
                outage(61, 1, None, OutageMode::Hold),
                outage(64, 9, None, OutageMode::Hold),
            ],
        ] {
            let outages = Outages::new(&outages);
            for started in (0..40).filter(|&start| outages.release(at(start)) == at(start)) {
                for busy in 1..150 {
                    let end = outages.end_of_transmission(at(started), Duration::from_nanos(busy));
                    let expected = end_by_pauses(&outages, started, busy);
                    assert_eq!(end, expected, "{busy} from {started}: {outages:?}");
                }
            }
        }
    }

    /// A year takes 1.6 × 10^16 pauses.
    #[test]
    fn a_transmission_over_many_pauses_ends_at_once() {
        let outages = Outages::new(&[outage(0, 1, Some(2), OutageMode::Hold)]);
        let year = 365 * 86_400 * 1_000_000_000;
        let end = outages.end_of_transmission(at(1), Duration::from_nanos(year));
        assert_eq!(end, at(2 * year));
    }

    #[test]
    fn pauses_that_take_turns_have_no_end() {
        let outages = Outages::new(&[
            outage(0, 5, Some(10), OutageMode::Hold),
            outage(5, 5, Some(10), OutageMode::Hold),
        ]);
        assert_eq!(outages.release(at(3)), Instant::NEVER);
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
