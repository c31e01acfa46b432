//! Counters of the connections of a row of flows.

use std::ops::Range;

use gridhaul_scenario::answer::{Metric, Metrics};
use gridhaul_scenario::scenario::Flow;
use gridhaul_scenario::units::{Duration, Instant};

use crate::load::{AcknowledgementCounters, HandshakeTimes, MessageDelays, MessageEvent};

/// Connections of a row since the start of the run, warm-up included.
#[derive(Debug, Clone, Default)]
pub struct ConnectionCounters {
    /// TCP handshakes.
    pub tcp: HandshakeTimes,
    /// Times from the start of an attempt until the device can send its message.
    connect_times: MessageDelays,
    has_tls: bool,
    full_handshakes: u64,
    resumptions: u64,
    /// Bytes of TLS handshakes and tickets on the connections, in both directions.
    handshake_bytes: u64,
    /// Attempts without a free local port.
    without_port: u64,
    /// SYN segments that the server dropped because too many connections waited.
    dropped_by_server: u64,
    /// Connections that ended while the application used them.
    lost: u64,
    /// Whether idle connections may be forgotten, or are watched.
    watches_idle: bool,
    /// Messages that were in transit on them.
    interrupted: u64,
    /// Times until devices noticed that their connection was forgotten.
    notice_times: MessageDelays,
    /// Bytes of probes; `None` where they are not observed.
    keep_alive_bytes: Option<u64>,
    /// Acknowledged messages; `None` for other loads.
    pub messages: Option<Box<AcknowledgementCounters>>,
}

impl ConnectionCounters {
    /// Counters of the connections of a flow, and of its acknowledged messages that are ready in
    /// the measured time.
    #[must_use]
    pub fn new(flow: &Flow, measured: Range<Instant>) -> Self {
        let messages = || Box::new(AcknowledgementCounters::new(measured));
        let messages = flow.has_session().then(messages);
        let watches_idle = flow.watches_idle_connections();
        Self { has_tls: flow.tls.is_some(), watches_idle, messages, ..Self::default() }
    }

    /// Counters without acknowledged messages.
    #[cfg(test)]
    pub(super) fn with_tls(has_tls: bool) -> Self {
        Self { has_tls, ..Self::default() }
    }

    /// The probes of keep-alive are observed as well.
    #[must_use]
    pub fn with_probes(self) -> Self {
        Self { keep_alive_bytes: Some(0), ..self }
    }

    /// A connection has ended while the application used it, with this number of messages in
    /// transit.
    pub const fn on_lost(&mut self, messages: usize) {
        self.lost += 1;
        self.interrupted += messages as u64;
    }

    /// An event of an acknowledged message that was ready at a time.
    pub fn on_message_event(&mut self, ready: Instant, event: MessageEvent) {
        if let Some(messages) = &mut self.messages {
            messages.record(ready, event);
        }
    }

    /// A connection is ready for messages, this long after the start of the attempt.
    pub fn on_ready(&mut self, took: Duration) {
        self.connect_times.record(took);
    }

    /// A TLS handshake is complete at the device.
    pub const fn on_secured(&mut self, resumed: bool) {
        if resumed {
            self.resumptions += 1;
        } else {
            self.full_handshakes += 1;
        }
    }

    /// An end has written bytes of a TLS handshake, or a ticket.
    pub const fn on_handshake_bytes(&mut self, bytes: u64) {
        self.handshake_bytes += bytes;
    }

    /// An attempt found no free local port.
    pub fn on_without_port(&mut self) {
        self.without_port += 1;
        self.tcp.on_failed();
    }

    /// The server dropped a SYN, because too many connections waited.
    pub const fn on_dropped_by_server(&mut self) {
        self.dropped_by_server += 1;
    }

    /// A device has noticed that its connection was forgotten, after this time.
    pub fn on_noticed(&mut self, took: Duration) {
        self.notice_times.record(took);
    }

    /// A device has sent a probe of this size.
    pub fn on_keep_alive(&mut self, bytes: u32) {
        *self.keep_alive_bytes.get_or_insert(0) += u64::from(bytes);
    }

    /// Adds the columns of connections.
    pub fn metrics(&self, into: &mut Metrics) {
        self.tcp.metrics(into);
        into.extend(self.connect_times.mean().map(|mean| (Metric::ConnectTimeMean, mean)));
        let p98 = self.connect_times.quantile_with(0.98, |_| 0);
        into.extend(p98.map(|p98| (Metric::ConnectTimeP98, p98)));
        if self.has_tls {
            into.push((Metric::TlsHandshakes, self.full_handshakes as f64));
            into.push((Metric::TlsResumptions, self.resumptions as f64));
            into.push((Metric::TlsHandshakeBytes, self.handshake_bytes as f64));
        }
        into.push((Metric::PortsExhausted, self.without_port as f64));
        into.push((Metric::SynDropped, self.dropped_by_server as f64));
        if self.messages.is_some() || self.watches_idle {
            into.push((Metric::ConnectionsLost, self.lost as f64));
        }
        if self.watches_idle {
            into.push((Metric::MessagesInterrupted, self.interrupted as f64));
            into.extend(self.notice_times.mean().map(|mean| (Metric::LossNoticeMean, mean)));
            let probes = self.keep_alive_bytes.map(|bytes| bytes as f64);
            into.extend(probes.map(|bytes| (Metric::KeepAliveBytes, bytes)));
        }
    }
}
