//! The metrics of the messages of a row, which the simulator and the emulation share.

use gridhaul_scenario::answer::{Metric, Metrics};

use super::{DeadlineCounter, InProgress, MessageDelays, WaitingTimes};

/// The messages of a row that were ready in the measured time.
#[derive(Debug, Clone, Copy)]
pub struct MessageRow<'a> {
    /// Their number.
    pub due: u64,
    /// Delays of those that have arrived.
    pub delays: &'a MessageDelays,
    /// Waiting times of those that have not arrived by the end of the run.
    pub waiting: &'a WaitingTimes,
    /// Periods in which messages of a `burst` load are in progress; `None` for other loads.
    pub in_progress: Option<&'a InProgress>,
    /// `None` without a deadline.
    pub deadline: Option<&'a DeadlineCounter>,
}

impl MessageRow<'_> {
    /// Adds the last completion, the delays, and the share of messages that met the deadline.
    pub fn metrics(&self, into: &mut Metrics) {
        // As long as a message of a burst is missing, the burst has no completion.
        let completed = self.in_progress.filter(|_| self.delays.count() == self.due);
        let last = completed.and_then(InProgress::span);
        into.extend(last.map(|last| (Metric::LastCompletion, last.as_secs_f64())));
        self.delays.metrics(self.waiting, into);
        let share = self.deadline.and_then(DeadlineCounter::share);
        into.extend(share.map(|share| (Metric::DeadlineMet, share)));
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::{Duration, Instant};

    use super::*;

    #[test]
    fn a_burst_of_which_a_message_is_missing_has_no_last_completion() {
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        let (mut delays, mut in_progress) = (MessageDelays::new(), InProgress::default());
        let mut deadline = DeadlineCounter::new(Duration::from_secs(1), at(0), at(10));
        let waiting = WaitingTimes::default();
        for secs in [2, 3] {
            let delay = Duration::from_secs(1);
            deadline.on_ready(at(secs));
            deadline.on_delivered(at(secs), delay);
            delays.record(delay);
            in_progress.add(at(secs), at(secs) + delay);
        }
        let value = |due, metric| {
            let row = MessageRow {
                due,
                delays: &delays,
                waiting: &waiting,
                in_progress: Some(&in_progress),
                deadline: Some(&deadline),
            };
            let mut metrics = Metrics::new();
            row.metrics(&mut metrics);
            metrics.into_iter().find(|(found, _)| *found == metric).map(|(_, value)| value)
        };
        assert_eq!(value(2, Metric::LastCompletion), Some(2.0));
        assert_eq!(value(3, Metric::LastCompletion), None);
        for due in [2, 3] {
            assert_eq!(value(due, Metric::Messages), Some(2.0));
            assert_eq!(value(due, Metric::DeadlineMet), Some(1.0));
        }
    }
}
