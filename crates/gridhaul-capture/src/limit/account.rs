//! The time of a transfer, divided among the limits.

use gridhaul_scenario::units::Duration;

use super::{Limit, Next, RULES, Wait};
use crate::estimate::DelayHistogram;

/// The time of a transfer, divided among the limits.
#[derive(Debug, Default)]
pub(crate) struct Account {
    pub(crate) total: Duration,
    /// In the order of [`Limit::ALL`].
    parts: [Part; Limit::ALL.len()],
    pub(crate) unexplained: Duration,
    pub(crate) waits: u64,
    /// Waits of Nagle's algorithm that a delayed acknowledgement ended, and their time.
    pub(crate) nagle_delayed: u64,
    pub(crate) nagle_delayed_time: Duration,
    /// Delays of acknowledgements: sum and sum of squares in s.
    pub(crate) delays_s: f64,
    pub(crate) delays_s2: f64,
    pub(crate) delays: u64,
    /// New data that is short, and all new data.
    pub(crate) short: u64,
    pub(crate) new: u64,
    /// Pauses of the application after full segments, before data that had arrived arrived again:
    /// at the receiver, a link that was interrupted has them as well.
    pub(crate) doubtful_pauses: Duration,
    /// Idle waits during which the peer sent data.
    pub(crate) answered: u64,
}

/// The time of one limit.
#[derive(Debug, Clone, Default)]
pub(crate) struct Part {
    pub(crate) time: Duration,
    pub(crate) waits: u64,
    pub(crate) longest: Duration,
    /// The time by the queueing delay of the acknowledgement that ended the wait, for limits that
    /// do not matter while the bottleneck is busy.
    pub(crate) by_queueing: DelayHistogram,
}

impl Account {
    /// Divides a wait, and returns whether the application was its cause.
    pub(crate) fn add(&mut self, wait: &Wait) -> bool {
        self.total += wait.length;
        self.waits += 1;
        if let Next::New { is_short } = wait.next {
            self.new += 1;
            self.short += u64::from(is_short);
        }
        if wait.all_acked && wait.received_data {
            self.answered += 1;
        }
        if let Some(delay) = wait.delayed_ack {
            self.delays += 1;
            self.delays_s += delay.as_secs_f64();
            self.delays_s2 += delay.as_secs_f64() * delay.as_secs_f64();
        }
        let mut remaining = wait.length;
        let mut is_application = false;
        for (limit, rule) in RULES {
            let time = rule(wait, remaining).min(remaining);
            if time.is_zero() {
                continue;
            }
            remaining = remaining - time;
            is_application |= limit == Limit::Application;
            if limit == Limit::Nagle && wait.delayed_ack.is_some() {
                self.nagle_delayed += 1;
                self.nagle_delayed_time += time;
            }
            let part = &mut self.parts[limit as usize];
            part.time += time;
            part.waits += 1;
            part.longest = part.longest.max(time);
            if is_masked(limit) {
                // The bottleneck was busy at least for the queueing delay of the last packet.
                let busy = time.min(wait.queueing);
                part.by_queueing.add(wait.queueing, busy.as_nanos());
            }
        }
        self.unexplained += remaining;
        is_application
    }

    pub(crate) fn part(&self, limit: Limit) -> &Part {
        &self.parts[limit as usize]
    }

    /// Time during which the bottleneck transmitted queued packets, of the limits that do not
    /// matter then: with a longer queueing delay than this.
    pub(crate) fn busy(&self, limit: Limit, queueing: Duration) -> Duration {
        Duration::from_nanos(self.part(limit).by_queueing.above(queueing))
    }

    /// Coefficient of variation of the delays of acknowledgements.
    pub(crate) fn delay_variation(&self) -> Option<f64> {
        let count = self.delays as f64;
        let mean = self.delays_s / count;
        let variance = (self.delays_s2 / count - mean * mean).max(0.0);
        (self.delays > 0).then(|| variance.sqrt() / mean)
    }
}

/// Whether a limit does not matter while the bottleneck is busy: more data in flight would only
/// wait longer in the queue.
pub(crate) fn is_masked(limit: Limit) -> bool {
    matches!(limit, Limit::ReceiveWindow | Limit::CongestionWindow | Limit::Loss)
}
