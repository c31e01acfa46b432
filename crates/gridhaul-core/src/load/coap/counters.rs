//! Counters of the confirmable messages of a row of flows.

use std::ops::Range;

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use crate::load::{MessageDelays, message_loss};

/// Counters of the confirmable messages of a row. Messages count if they were ready in the measured
/// time, handshakes from the start of the run on.
#[derive(Debug, Clone)]
pub struct CoapCounters {
    measured: Range<Instant>,
    given_up: u64,
    /// Messages given up of which no copy has arrived.
    lost: u64,
    retransmissions: u64,
    duplicates: u64,
    /// Times from the first transmission to the response.
    response_times: MessageDelays,
    has_dtls: bool,
    /// Times of completed DTLS handshakes.
    handshake_times: MessageDelays,
    handshake_bytes: u64,
    retransmitted_flights: u64,
}

impl CoapCounters {
    /// Counters of messages that are ready in the measured time, with DTLS or without.
    #[must_use]
    pub fn new(measured: Range<Instant>, has_dtls: bool) -> Self {
        Self {
            measured,
            given_up: 0,
            lost: 0,
            retransmissions: 0,
            duplicates: 0,
            response_times: MessageDelays::new(),
            has_dtls,
            handshake_times: MessageDelays::new(),
            handshake_bytes: 0,
            retransmitted_flights: 0,
        }
    }

    pub(super) fn on_acknowledged(&mut self, ready: Instant, took: Duration) {
        if self.measured.contains(&ready) {
            self.response_times.record(took);
        }
    }

    pub(super) fn on_given_up(&mut self, ready: Instant, is_delivered: bool) {
        if self.measured.contains(&ready) {
            self.given_up += 1;
            self.lost += u64::from(!is_delivered);
        }
    }

    /// The first copy of a message arrived after the message had been given up.
    pub(super) fn on_late_delivery(&mut self, ready: Instant) {
        if self.measured.contains(&ready) {
            self.lost -= 1;
        }
    }

    pub(super) fn on_retransmitted(&mut self, ready: Instant) {
        self.retransmissions += u64::from(self.measured.contains(&ready));
    }

    pub(super) fn on_duplicate(&mut self, ready: Instant) {
        self.duplicates += u64::from(self.measured.contains(&ready));
    }

    /// A client can send its messages, this long after the start of the handshake.
    pub(super) fn on_handshake(&mut self, took: Duration) {
        self.handshake_times.record(took);
    }

    pub(super) fn on_flight_sent(&mut self, bytes: u32) {
        self.handshake_bytes += u64::from(bytes);
    }

    pub(super) const fn on_flight_retransmitted(&mut self) {
        self.retransmitted_flights += 1;
    }

    /// Adds the columns of confirmable messages, and of message loss.
    pub fn metrics(&self, into: &mut Metrics) {
        let acknowledged = self.response_times.count();
        let ended = acknowledged + self.given_up;
        into.extend(message_loss(self.lost, ended).map(|loss| (Metric::MessageLoss, loss)));
        into.push((Metric::Acknowledged, acknowledged as f64));
        let ratio = (ended > 0).then(|| acknowledged as f64 / ended as f64);
        into.extend(ratio.map(|ratio| (Metric::AcknowledgedRatio, ratio)));
        into.push((Metric::GivenUp, self.given_up as f64));
        into.push((Metric::MessageRetransmissions, self.retransmissions as f64));
        into.push((Metric::DuplicateMessages, self.duplicates as f64));
        let response = self.response_times.mean();
        into.extend(response.map(|mean| (Metric::ResponseTimeMean, mean)));
        if self.has_dtls {
            into.push((Metric::DtlsHandshakes, self.handshake_times.count() as f64));
            let mean = self.handshake_times.mean();
            into.extend(mean.map(|mean| (Metric::DtlsHandshakeTime, mean)));
            into.push((Metric::DtlsHandshakeBytes, self.handshake_bytes as f64));
            into.push((Metric::DtlsRetransmissions, self.retransmitted_flights as f64));
        }
    }
}
