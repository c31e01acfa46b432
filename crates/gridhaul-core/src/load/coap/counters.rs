//! Counters of the confirmable messages of a row of flows.

use std::ops::Range;

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::units::{Duration, Instant};

use crate::load::{AcknowledgementCounters, MessageDelays, MessageEvent};

/// Counters of the confirmable messages of a row. Messages count if they were ready in the measured
/// time, handshakes from the start of the run on.
#[derive(Debug, Clone)]
pub struct CoapCounters {
    messages: AcknowledgementCounters,
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
            messages: AcknowledgementCounters::new(measured),
            has_dtls,
            handshake_times: MessageDelays::new(),
            handshake_bytes: 0,
            retransmitted_flights: 0,
        }
    }

    pub(super) fn record(&mut self, ready: Instant, event: MessageEvent) {
        self.messages.record(ready, event);
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
        self.messages.metrics(None, into);
        if self.has_dtls {
            into.push((Metric::DtlsHandshakes, self.handshake_times.count() as f64));
            let mean = self.handshake_times.mean();
            into.extend(mean.map(|mean| (Metric::DtlsHandshakeTime, mean)));
            into.push((Metric::DtlsHandshakeBytes, self.handshake_bytes as f64));
            into.push((Metric::DtlsRetransmissions, self.retransmitted_flights as f64));
        }
    }
}
