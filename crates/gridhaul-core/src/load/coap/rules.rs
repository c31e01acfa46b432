//! The rules of the messages of a flow, which all of its members share.

use gridhaul_scenario::scenario::{Coap, Dtls, DtlsSession, DtlsVersion, Flow};
use gridhaul_scenario::units::Bytes;

/// The rules of the confirmable messages of a flow.
#[derive(Debug, Clone, PartialEq)]
pub struct CoapRules {
    pub(super) coap: Coap,
    /// `None` without DTLS.
    pub(super) dtls: Option<DtlsRules>,
    /// Headers of UDP and IP in bytes.
    pub(super) headers: u8,
}

/// The rules of DTLS handshakes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DtlsRules {
    pub session: DtlsSession,
    /// Bytes of each flight. The client sends those with even numbers, and the server the last.
    pub flights: Vec<u32>,
    /// Whether the client sends messages before the last flight of the server arrives.
    pub is_early: bool,
    /// Bytes that a record adds to a CoAP message.
    record: u32,
}

impl CoapRules {
    /// The rules of a flow; `None` with another transport.
    #[must_use]
    pub fn of(flow: &Flow) -> Option<Self> {
        let coap = flow.confirmable()?;
        let headers = flow.ip.datagram_headers().get() as u8;
        Some(Self { coap, dtls: flow.dtls.as_ref().map(DtlsRules::of), headers })
    }

    /// Whether datagrams are protected by DTLS.
    #[must_use]
    pub const fn has_dtls(&self) -> bool {
        self.dtls.is_some()
    }

    /// Payload of UDP of a message of this size.
    pub(super) fn request_bytes(&self, message: u64) -> u32 {
        let payload = size(Bytes::new(message));
        payload.saturating_add(size(self.coap.header)).saturating_add(self.record())
    }

    /// Payload of UDP of a response.
    pub(super) fn response_bytes(&self) -> u32 {
        size(self.coap.response).saturating_add(self.record())
    }

    fn record(&self) -> u32 {
        self.dtls.as_ref().map_or(0, |dtls| dtls.record)
    }
}

impl DtlsRules {
    fn of(keys: &Dtls) -> Self {
        Self {
            session: keys.session,
            flights: keys.flight_sizes().into_iter().map(size).collect(),
            // With 1.2, the client waits for Finished of the server (RFC 6347, figure 1); with 1.3,
            // the last flight only acknowledges the client's (RFC 9147, figure 6).
            is_early: keys.version == DtlsVersion::V1_3,
            record: size(keys.record_overhead()),
        }
    }

    /// The last flight of the handshake.
    pub(super) fn last(&self) -> u8 {
        self.flights.len() as u8 - 1
    }

    /// Whether the end that sends a flight retransmits it by a timer: not the last one, to which no
    /// flight responds, and not the request for a cookie, for which the server keeps no state
    /// (RFC 6347, section 4.2.1; RFC 9147, section 5.1).
    pub(super) fn has_timer(&self, flight: u8) -> bool {
        let asks_for_cookie = self.flights.len() == FLIGHTS_WITH_COOKIE && flight == 1;
        flight != self.last() && !asks_for_cookie
    }
}

/// Flights of a handshake in which the server asks for a cookie.
const FLIGHTS_WITH_COOKIE: usize = 6;

fn size(bytes: Bytes) -> u32 {
    u32::try_from(bytes.get()).unwrap_or(u32::MAX)
}
