//! Total goodput and transfers of the flows of a group.

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::Transfer;

/// Goodputs of the flows of a group, summed in the order of the flows.
#[derive(Debug, Clone, Copy, Default)]
pub struct Goodputs {
    count: u32,
    /// Sums of the goodputs in bit/s and of their squares.
    sum: f64,
    squares: f64,
}

/// Transfers of the flows of a group, finished or not.
#[derive(Debug, Clone, Default)]
pub struct Transfers {
    /// Number of all and of finished transfers.
    count: u64,
    finished: u64,
    /// Sums of the completion times in seconds and of the rates in bit/s of finished transfers.
    completion: f64,
    rates: f64,
    /// Start of each transfer, and its completion time if it finished.
    times: Vec<(Instant, Option<Duration>)>,
    /// Payload delivered by transfers that started, and the period in which each was in progress.
    bytes: u64,
    in_progress: InProgress,
    /// Goodputs of transfers that started.
    goodputs: Goodputs,
}

/// Periods in which transfers or messages of a group are in progress.
#[derive(Debug, Clone, Default)]
pub struct InProgress {
    periods: Vec<Period>,
    /// The period in which messages from before the measured time are in progress within it.
    carried_over: Option<Period>,
}

/// The time between the start of a transfer and its completion, or the end of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Period {
    start: Instant,
    end: Instant,
}

impl Period {
    fn length(self) -> Duration {
        self.end.since(self.start)
    }
}

impl InProgress {
    /// A transfer or message is in progress in this period.
    pub fn add(&mut self, start: Instant, end: Instant) {
        self.periods.push(Period { start, end });
    }

    /// A message that is in progress when the measured time begins, at `start`, remains so until
    /// `end`. Its bytes arrive in the measured time, so its period counts in the total.
    pub fn carry_over(&mut self, start: Instant, end: Instant) {
        let last = self.carried_over.map_or(end, |period| period.end.max(end));
        self.carried_over = Some(Period { start, end: last });
    }

    /// Time in which at least one is in progress.
    #[must_use]
    pub fn total(&self) -> Duration {
        let mut periods = self.periods.clone();
        periods.extend(self.carried_over);
        periods.sort_unstable();
        let (mut total, mut until) = (Duration::ZERO, Instant::ZERO);
        for Period { start, end } in periods {
            total += end.since(start.max(until));
            until = until.max(end);
        }
        total
    }

    /// Time from the first start to the last end; `None` without periods. Messages from before the
    /// measured time are excluded.
    #[must_use]
    pub fn span(&self) -> Option<Duration> {
        let start = self.periods.iter().map(|period| period.start).min()?;
        let end = self.periods.iter().map(|period| period.end).max()?;
        Some(end.since(start))
    }
}

/// Ratio of lost messages; `None` without messages.
#[must_use]
pub fn message_loss(lost: u64, of: u64) -> Option<f64> {
    // Limited to 1: the emulator counts the losses within the measured time, also of datagrams that
    // were sent before it.
    (of > 0).then(|| (lost as f64 / of as f64).min(1.0))
}

impl Goodputs {
    /// A flow has delivered this many bytes in `secs` seconds.
    pub fn add(&mut self, bytes: u64, secs: f64) {
        let goodput = (bytes * 8) as f64 / secs;
        self.count += 1;
        self.sum += goodput;
        self.squares += goodput * goodput;
    }

    /// Adds the flows of another group.
    pub fn join(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    /// Number of flows.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Adds the total goodput and, for several flows, their fairness.
    pub fn metrics(&self, into: &mut Metrics) {
        into.push((Metric::Goodput, self.sum));
        into.extend(self.fairness().map(|fairness| (Metric::Fairness, fairness)));
    }

    /// Jain's index; `None` for a single flow, and if no data were delivered.
    #[must_use]
    pub fn fairness(&self) -> Option<f64> {
        // Jain, Chiu and Hawe 1984: (sum x)^2 / (n * sum x^2).
        (self.count > 1 && self.squares > 0.0)
            .then(|| self.sum * self.sum / (f64::from(self.count) * self.squares))
    }
}

impl Transfers {
    /// Adds a transfer with the bytes delivered by the end of the run, complete or not.
    pub fn add(&mut self, transfer: &Transfer, delivered: u64, end: Instant) {
        if transfer.is_complete() {
            let period = Period { start: transfer.start, end: transfer.completed };
            self.add_finished(transfer.bytes, period);
        } else {
            self.add_unfinished(delivered, Period { start: transfer.start, end });
        }
    }

    /// A transfer of this size whose last byte arrived at the end of the period.
    fn add_finished(&mut self, bytes: u64, period: Period) {
        let completion = period.length().as_secs_f64();
        self.finished += 1;
        self.times.push((period.start, Some(period.length())));
        self.completion += completion;
        self.rates += bytes as f64 * 8.0 / completion;
        self.note(bytes, period);
    }

    /// Adds a transfer that was incomplete at the end of the run.
    fn add_unfinished(&mut self, delivered: u64, period: Period) {
        self.times.push((period.start, None));
        self.note(delivered, period);
    }

    fn note(&mut self, bytes: u64, period: Period) {
        self.count += 1;
        // A transfer that starts at or after the end of the run is never in progress.
        if period.start < period.end {
            self.bytes += bytes;
            self.in_progress.add(period.start, period.end);
            self.goodputs.add(bytes, period.length().as_secs_f64());
        }
    }

    /// Goodputs of the transfers that started, each per time in which it was in progress.
    #[must_use]
    pub const fn goodputs(&self) -> &Goodputs {
        &self.goodputs
    }

    /// Number of transfers.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Adds goodput, number of finished transfers, and their completion time and rate; nothing
    /// without transfers.
    pub fn metrics(&self, into: &mut Metrics) {
        if self.count == 0 {
            return;
        }
        let secs = self.in_progress.total().as_secs_f64();
        // Not the sum of the goodputs of the transfers: for consecutive transfers it would exceed
        // the link rate.
        into.push((Metric::Goodput, if secs > 0.0 { self.bytes as f64 * 8.0 / secs } else { 0.0 }));
        into.extend(self.goodputs.fairness().map(|fairness| (Metric::Fairness, fairness)));
        let (count, finished) = (self.count as f64, self.finished as f64);
        into.push((Metric::TransfersFinished, finished));
        into.push((Metric::TransfersUnfinished, (count - finished) / count));
        if self.finished > 0 {
            into.push((Metric::CompletionTime, self.completion / finished));
            let mut completions: Vec<_> = self.times.iter().filter_map(|times| times.1).collect();
            completions.sort_unstable();
            // The value that 98 % of all transfers, finished or not, do not exceed; unknown among
            // unfinished ones.
            let rank = (0.98 * count).ceil() as usize;
            let p98 = completions.get(rank.max(1) - 1).map(|time| time.as_secs_f64());
            into.extend(p98.map(|p98| (Metric::CompletionTimeP98, p98)));
            let largest = completions.last().map(|time| time.as_secs_f64());
            into.extend(largest.map(|largest| (Metric::CompletionTimeMax, largest)));
            into.push((Metric::TransferRate, self.rates / finished));
        }
        let last = self.in_progress.span().filter(|_| self.finished == self.count);
        into.extend(last.map(|last| (Metric::LastCompletion, last.as_secs_f64())));
    }

    /// Share of the transfers that finished within the deadline, among those that started at least
    /// a deadline before the end of the run; unfinished transfers are late. `None` without any.
    #[must_use]
    pub fn deadline_met(&self, deadline: Duration, end: Instant) -> Option<f64> {
        let due = self.times.iter().filter(|(start, _)| *start + deadline <= end);
        let (mut checked, mut in_time) = (0_u64, 0_u64);
        for (_, completion) in due {
            checked += 1;
            in_time += u64::from(completion.is_some_and(|time| time <= deadline));
        }
        (checked > 0).then(|| in_time as f64 / checked as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_ratio_without_messages_is_undefined() {
        assert_eq!(message_loss(0, 0), None);
        assert_eq!(message_loss(1, 4), Some(0.25));
        // Sent before the measured time, lost within it.
        assert_eq!(message_loss(3, 2), Some(1.0));
    }

    #[test]
    fn fairness_is_one_half_if_one_of_two_flows_has_all_goodput() {
        let mut goodputs = Goodputs::default();
        goodputs.add(1_000, 2.0);
        let mut metrics = Vec::new();
        goodputs.metrics(&mut metrics);
        assert_eq!(metrics, [(Metric::Goodput, 4_000.0)], "a single flow has no fairness");
        goodputs.add(0, 2.0);
        metrics.clear();
        goodputs.metrics(&mut metrics);
        assert_eq!(metrics, [(Metric::Goodput, 4_000.0), (Metric::Fairness, 0.5)]);
    }

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    fn period(start: u64, end: u64) -> Period {
        Period { start: at(start), end: at(end) }
    }

    fn metrics_of(transfers: &Transfers) -> Metrics {
        let mut metrics = Vec::new();
        transfers.metrics(&mut metrics);
        metrics
    }

    #[test]
    fn the_mean_rate_is_the_mean_of_the_rates() {
        let mut transfers = Transfers::default();
        transfers.add_finished(100, period(1, 2));
        transfers.add_finished(100, period(1, 5));
        // 1 s and 4 s; 800 and 200 bit/s; 200 B in the four seconds from 1 s to 5 s.
        let expected = [
            (Metric::Goodput, 400.0),
            (Metric::Fairness, 1_000.0 * 1_000.0 / (2.0 * 680_000.0)),
            (Metric::TransfersFinished, 2.0),
            (Metric::TransfersUnfinished, 0.0),
            (Metric::CompletionTime, 2.5),
            (Metric::CompletionTimeP98, 4.0),
            (Metric::CompletionTimeMax, 4.0),
            (Metric::TransferRate, 500.0),
            (Metric::LastCompletion, 4.0),
        ];
        assert_eq!(metrics_of(&transfers), expected);
        assert_eq!(metrics_of(&Transfers::default()), []);
    }

    #[test]
    fn goodput_of_one_transfer_is_size_over_completion_time() {
        let mut transfers = Transfers::default();
        transfers.add_finished(1_000, period(3, 7));
        let metrics = metrics_of(&transfers);
        assert_eq!(metrics[0], (Metric::Goodput, 2_000.0));
        assert!(metrics.contains(&(Metric::TransferRate, 2_000.0)));
    }

    #[test]
    fn the_time_in_progress_excludes_overlaps_and_gaps() {
        let mut transfers = Transfers::default();
        // 0 s to 4 s with two overlapping transfers and one within them, then 10 s to 12 s.
        for (start, end) in [(10, 12), (1, 4), (0, 3), (1, 2)] {
            transfers.add_finished(75, period(start, end));
        }
        assert_eq!(metrics_of(&transfers)[0], (Metric::Goodput, 300.0 * 8.0 / 6.0));
    }

    #[test]
    fn unfinished_transfers_are_counted_but_have_no_completion_time() {
        let mut transfers = Transfers::default();
        transfers.add_finished(100, period(0, 2));
        transfers.add_unfinished(60, period(0, 8));
        // A transfer that would have started after the end of the run.
        transfers.add_unfinished(0, period(9, 8));
        let expected = [
            (Metric::Goodput, 160.0),
            (Metric::Fairness, 460.0 * 460.0 / (2.0 * (400.0 * 400.0 + 60.0 * 60.0))),
            (Metric::TransfersFinished, 1.0),
            (Metric::TransfersUnfinished, 2.0 / 3.0),
            (Metric::CompletionTime, 2.0),
            // Two of three transfers have not finished: the percentile is among them.
            (Metric::CompletionTimeMax, 2.0),
            (Metric::TransferRate, 400.0),
        ];
        assert_eq!(metrics_of(&transfers), expected);
        let mut none = Transfers::default();
        none.add_unfinished(0, period(9, 8));
        let expected = [
            (Metric::Goodput, 0.0),
            (Metric::TransfersFinished, 0.0),
            (Metric::TransfersUnfinished, 1.0),
        ];
        assert_eq!(metrics_of(&none), expected);
    }

    #[test]
    fn messages_from_before_the_measured_time_lengthen_the_total_only() {
        let mut in_progress = InProgress::default();
        in_progress.carry_over(at(10), at(12));
        in_progress.carry_over(at(10), at(11));
        assert_eq!((in_progress.total(), in_progress.span()), (Duration::from_secs(2), None));
        in_progress.add(at(11), at(15));
        assert_eq!(in_progress.total(), Duration::from_secs(5));
        assert_eq!(in_progress.span(), Some(Duration::from_secs(4)));
    }

    #[test]
    fn the_last_device_completes_after_the_last_start() {
        let mut transfers = Transfers::default();
        // The first takes longest; the second starts later and ends last.
        transfers.add_finished(10, period(2, 7));
        transfers.add_finished(10, period(6, 9));
        assert!(metrics_of(&transfers).contains(&(Metric::LastCompletion, 7.0)));
        assert_eq!(InProgress::default().span(), None);
    }

    #[test]
    fn the_percentile_of_completion_times_counts_unfinished_transfers() {
        let mut transfers = Transfers::default();
        (1..=99).for_each(|secs| transfers.add_finished(10, period(0, secs)));
        transfers.add_unfinished(0, period(0, 200));
        let metrics = metrics_of(&transfers);
        assert!(metrics.contains(&(Metric::CompletionTimeP98, 98.0)));
        assert!(metrics.contains(&(Metric::CompletionTimeMax, 99.0)));
        assert_eq!(transfers.deadline_met(Duration::from_secs(50), at(200)), Some(0.5));
        assert_eq!(transfers.deadline_met(Duration::from_secs(300), at(200)), None);
        assert_eq!(Transfers::default().deadline_met(Duration::ZERO, at(1)), None);
    }
}
