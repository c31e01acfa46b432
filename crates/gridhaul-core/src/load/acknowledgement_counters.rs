//! Counters of the messages of a row that applications acknowledge.

use std::ops::Range;

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use super::{MessageDelays, message_loss};

/// Counters of acknowledged messages of a row, of those that were ready in the measured time.
#[derive(Debug, Clone)]
pub struct AcknowledgementCounters {
    measured: Range<Instant>,
    given_up: u64,
    /// Messages given up of which no copy has arrived.
    lost: u64,
    retransmissions: u64,
    duplicates: u64,
    /// Messages that nothing acknowledges (QoS 0 of MQTT), and which have arrived or are lost.
    unconfirmed: u64,
    /// Times from the first transmission to the response.
    response_times: MessageDelays,
}

/// An event of a message that was ready at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageEvent {
    /// Its acknowledgement has arrived, this long after the first transmission.
    Acknowledged(Duration),
    /// The sender has given it up; whether a copy has arrived.
    GivenUp {
        /// Whether a copy has arrived at the receiver.
        is_delivered: bool,
    },
    /// Its first copy arrived after it had been given up, or after another copy was lost.
    LateDelivery,
    /// The sender has transmitted it again.
    Retransmitted,
    /// A further copy has arrived.
    Duplicate,
    /// A message that nothing acknowledges has arrived or is lost.
    Unconfirmed {
        /// Whether the message has arrived.
        is_delivered: bool,
    },
}

impl AcknowledgementCounters {
    /// Counters of messages that are ready in the measured time.
    #[must_use]
    pub fn new(measured: Range<Instant>) -> Self {
        Self {
            measured,
            given_up: 0,
            lost: 0,
            retransmissions: 0,
            duplicates: 0,
            unconfirmed: 0,
            response_times: MessageDelays::new(),
        }
    }

    /// An event of a message that was ready at this time.
    pub fn record(&mut self, ready: Instant, event: MessageEvent) {
        if !self.measured.contains(&ready) {
            return;
        }
        match event {
            MessageEvent::Acknowledged(took) => self.response_times.record(took),
            MessageEvent::GivenUp { is_delivered } => {
                self.given_up += 1;
                self.lost += u64::from(!is_delivered);
            }
            MessageEvent::LateDelivery => self.lost -= 1,
            MessageEvent::Retransmitted => self.retransmissions += 1,
            MessageEvent::Duplicate => self.duplicates += 1,
            MessageEvent::Unconfirmed { is_delivered } => {
                self.unconfirmed += 1;
                self.lost += u64::from(!is_delivered);
            }
        }
    }

    /// Adds the columns of acknowledged messages, and of message loss. `publications` counts the
    /// messages that are forwarded, on their connection before.
    pub fn metrics(&self, publications: Option<&Self>, into: &mut Metrics) {
        let acknowledged = self.response_times.count();
        let ended = acknowledged + self.given_up;
        let lost_before = publications.map_or(0, |counters| counters.lost);
        let (lost, of) = (self.lost + lost_before, ended + self.unconfirmed + lost_before);
        into.extend(message_loss(lost, of).map(|loss| (Metric::MessageLoss, loss)));
        into.push((Metric::Acknowledged, acknowledged as f64));
        let ratio = (ended > 0).then(|| acknowledged as f64 / ended as f64);
        into.extend(ratio.map(|ratio| (Metric::AcknowledgedRatio, ratio)));
        into.push((Metric::GivenUp, self.given_up as f64));
        into.push((Metric::MessageRetransmissions, self.retransmissions as f64));
        into.push((Metric::DuplicateMessages, self.duplicates as f64));
        let response = self.response_times.mean();
        into.extend(response.map(|mean| (Metric::ResponseTimeMean, mean)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_count_for_messages_that_were_ready_in_the_measured_time() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut counters = AcknowledgementCounters::new(at(10)..at(20));
        for ready in [9, 10, 19, 20] {
            counters.record(at(ready), MessageEvent::Acknowledged(Duration::from_secs(15)));
        }
        let mut metrics = Metrics::new();
        counters.metrics(None, &mut metrics);
        assert!(metrics.contains(&(Metric::Acknowledged, 2.0)), "{metrics:?}");
    }
}
