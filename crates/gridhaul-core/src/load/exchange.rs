//! An exchange: steps of both ends, which are repeated.

use gridhaul_scenario::scenario::{self, ExchangeStep};
use gridhaul_scenario::units::{Duration, Instant};

/// Both ends of a dialogue of several steps, of which one is in progress.
///
/// Call order: at each [`next_deadline`](Self::next_deadline), report the exchanges that
/// [`poll_due`](Self::poll_due) returns, and write the steps that [`poll_step`](Self::poll_step)
/// returns; call [`handle_delivered`](Self::handle_delivered) when all data written by an end have
/// been delivered, if [`awaits_delivery`](Self::awaits_delivery).
#[derive(Debug, Clone)]
pub struct Exchange {
    steps: Box<[ExchangeStep]>,
    every: Option<Duration>,
    pause: Duration,
    /// When the oldest exchange that is not complete is due.
    due: Instant,
    /// When the next exchange that has not been reported is due; [`Instant::NEVER`] if that depends
    /// on the completion of the one in progress.
    next_due: Instant,
    /// The next step, or the number of steps if all have been written.
    step: usize,
    /// When the next step is written; [`Instant::NEVER`] while the data before are in transit.
    step_at: Instant,
}

impl Exchange {
    /// Exchanges of which the first one begins at `start`.
    #[must_use]
    pub fn new(keys: &scenario::Exchange, start: Instant) -> Self {
        Self {
            steps: keys.steps.clone().into(),
            // With a period of zero, time would not advance.
            every: keys.every.map(|every| every.max(Duration::from_nanos(1))),
            pause: keys.pause,
            due: start,
            next_due: start,
            step: 0,
            step_at: start,
        }
    }

    /// When the next step is written, or the next exchange is due.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.next_due.min(self.step_at)
    }

    /// The time of an exchange that is due by now and has not been returned before.
    pub fn poll_due(&mut self, now: Instant) -> Option<Instant> {
        let due = self.next_due;
        if due > now {
            return None;
        }
        self.next_due = self.every.map_or(Instant::NEVER, |every| due + every);
        Some(due)
    }

    /// The next step, if it is to be written by now.
    pub fn poll_step(&mut self, now: Instant) -> Option<ExchangeStep> {
        let at = self.step_at;
        let step = *self.steps.get(self.step).filter(|_| at <= now)?;
        self.step += 1;
        // The time of a step counts from that of the one before, also if the caller is late.
        self.step_at = match self.steps.get(self.step) {
            Some(next) if next.writer == step.writer => at + next.after,
            _ => Instant::NEVER,
        };
        Some(step)
    }

    /// Whether the next step, or the end of the exchange, follows the delivery of all data that
    /// have been written.
    #[must_use]
    pub fn awaits_delivery(&self) -> bool {
        self.step > 0 && self.step_at == Instant::NEVER
    }

    /// All data of the last step that was written have been delivered. Returns when the exchange
    /// was due if it is complete.
    pub fn handle_delivered(&mut self, now: Instant) -> Option<Instant> {
        if let Some(next) = self.steps.get(self.step) {
            self.step_at = now + next.after;
            return None;
        }
        let completed = self.due;
        match self.every {
            Some(every) => self.due += every,
            None => {
                self.due = now + self.pause;
                self.next_due = self.due;
            }
        }
        self.step = 0;
        self.step_at = self.due.max(now);
        Some(completed)
    }

    /// When the exchanges were due that have been reported and are not complete.
    pub fn incomplete(&self) -> impl Iterator<Item = Instant> {
        let first = (self.due < self.next_due).then_some(self.due);
        std::iter::successors(first, |due| {
            let every = self.every?;
            Some(*due + every).filter(|due| *due < self.next_due)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::scenario::FlowEnd;
    use gridhaul_scenario::units::Bytes;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A question in two writes, and an answer.
    fn exchange(every: Option<u64>, pause: u64) -> Exchange {
        let step = |writer, bytes, after| ExchangeStep {
            writer,
            size: Bytes::new(bytes),
            after: Duration::from_millis(after),
        };
        let keys = scenario::Exchange {
            steps: vec![
                step(FlowEnd::From, 20, 0),
                step(FlowEnd::From, 60, 50),
                step(FlowEnd::To, 200, 10),
            ],
            every: every.map(Duration::from_millis),
            pause: Duration::from_millis(pause),
        };
        Exchange::new(&keys, at(1_000))
    }

    fn sizes(exchange: &mut Exchange, now: u64) -> Vec<u64> {
        std::iter::from_fn(|| exchange.poll_step(at(now))).map(|step| step.size.get()).collect()
    }

    #[test]
    fn a_step_waits_for_the_data_of_the_other_end_only() {
        let mut exchange = exchange(None, 500);
        assert_eq!((exchange.poll_due(at(999)), exchange.next_deadline()), (None, at(1_000)));
        assert_eq!(
            (exchange.poll_due(at(1_000)), exchange.poll_due(at(9_000))),
            (Some(at(1_000)), None)
        );
        assert_eq!(sizes(&mut exchange, 1_000), [20]);
        assert!(!exchange.awaits_delivery());
        // The second write does not wait for the delivery of the first one, and is not delayed by
        // a caller that is late.
        assert_eq!(exchange.next_deadline(), at(1_050));
        assert_eq!(sizes(&mut exchange, 1_070), [60]);
        assert!(exchange.awaits_delivery());
        assert_eq!(exchange.next_deadline(), Instant::NEVER);
        assert_eq!(exchange.handle_delivered(at(1_100)), None);
        assert_eq!(exchange.next_deadline(), at(1_110));
        assert_eq!(sizes(&mut exchange, 1_110), [200]);
        assert_eq!(exchange.incomplete().collect::<Vec<_>>(), [at(1_000)]);
        assert_eq!(exchange.handle_delivered(at(1_200)), Some(at(1_000)));
        assert_eq!((exchange.next_deadline(), exchange.incomplete().count()), (at(1_700), 0));
    }

    #[test]
    fn a_late_exchange_delays_the_next_one_which_counts_from_its_due_time() {
        let mut exchange = exchange(Some(100), 0);
        let due = |exchange: &mut Exchange, now| {
            std::iter::from_fn(|| exchange.poll_due(at(now))).collect::<Vec<_>>()
        };
        assert_eq!(due(&mut exchange, 1_000), [at(1_000)]);
        assert_eq!(sizes(&mut exchange, 1_050), [20, 60]);
        assert_eq!(due(&mut exchange, 1_250), [at(1_100), at(1_200)]);
        assert_eq!(sizes(&mut exchange, 1_250), [0_u64; 0], "an exchange is in progress");
        assert_eq!(exchange.handle_delivered(at(1_260)), None);
        assert_eq!(sizes(&mut exchange, 1_270), [200]);
        assert_eq!(exchange.incomplete().collect::<Vec<_>>(), [at(1_000), at(1_100), at(1_200)]);
        assert_eq!(exchange.handle_delivered(at(1_280)), Some(at(1_000)));
        // The next one begins at once.
        assert_eq!(sizes(&mut exchange, 1_280), [20]);
        assert_eq!(exchange.incomplete().collect::<Vec<_>>(), [at(1_100), at(1_200)]);
    }
}
