//! The rules of the connections of a flow, which all of its members share.

use gridhaul_scenario::scenario::{ConnectionPolicy, Flow, Reconnect, TlsResumption};

use super::tls::TlsFlights;

/// The rules of the connections of a flow.
#[derive(Debug, Clone)]
pub struct ConnectionRules {
    /// When connections open and close.
    pub policy: ConnectionPolicy,
    /// TLS flights; `None` without TLS.
    pub tls: Option<TlsFlights>,
    /// Whether TCP sends data with SYN (Fast Open).
    pub fast_open: bool,
    /// Which connections resume a TLS session.
    pub resumption: TlsResumption,
    /// Behaviour after a failed attempt.
    pub reconnect: Reconnect,
    /// Whether the `to` end answers every message.
    pub is_dialogue: bool,
    /// Whether the applications decide how long they need a connection, and what they transmit
    /// again after one has ended.
    pub has_session: bool,
}

impl ConnectionRules {
    /// The rules of a flow; `None` if it opens one connection, without TLS, which stays open.
    #[must_use]
    pub fn of(flow: &Flow) -> Option<Self> {
        flow.manages_connections().then(|| Self {
            policy: flow.connection,
            tls: flow.tls.as_ref().map(TlsFlights::of),
            fast_open: flow.fast_open,
            resumption: flow.tls.as_ref().map_or(TlsResumption::Never, |tls| tls.resumption),
            reconnect: flow.reconnect.unwrap_or_default(),
            is_dialogue: flow.load.is_dialogue(),
            has_session: flow.has_session(),
        })
    }

    /// Bytes on the connection of a message of this size.
    #[must_use]
    pub fn stream_bytes(&self, message: u64) -> u64 {
        self.tls.as_ref().map_or(message, |tls| tls.protected(message))
    }

    /// Bytes with which an end announces its close.
    #[must_use]
    pub fn close_bytes(&self) -> u64 {
        self.tls.as_ref().map_or(0, |tls| u64::from(tls.close_notify))
    }
}
