//! Checks of confirmable messages of CoAP and of DTLS.

use std::ops::RangeInclusive;

use super::Report;
use crate::scenario::{Coap, Dtls, Flow, Load, Transport};
use crate::units::Bytes;

/// Smallest CoAP message: its header (RFC 7252, section 3).
const COAP_MIN: u64 = 4;

/// Smallest record of DTLS: a header of 2 B and a tag of 8 B (RFC 9147, section 4).
const RECORD_MIN: u64 = 10;

/// Smallest flight: the header of a record (RFC 6347, section 4.1).
const FLIGHT_MIN: u64 = 13;

/// Largest number of retransmissions: the last pause of 2 s doubled as often is 24 days.
const RETRANSMISSIONS_MAX: u32 = 20;

/// Largest random factor of the first timeout.
const RANDOM_FACTOR_MAX: f64 = 10.0;

impl Report<'_> {
    /// Checks the keys of CoAP and DTLS of a flow.
    pub(super) fn coap(&mut self, key: &str, flow: &Flow) {
        let Some(coap) = flow.confirmable() else {
            let given = [("coap", flow.coap.is_some()), ("dtls", flow.dtls.is_some())];
            for (name, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
                let remedy = match flow.transport {
                    Transport::Tcp if name == "dtls" => {
                        "remove this key, use `tls`, or set transport = \"coap\""
                    }
                    _ => "remove this key, or set transport = \"coap\"",
                };
                self.refuse(format!("{key}.{name}"), "the flow sends no CoAP messages", remedy);
            }
            return;
        };
        if flow.load == Load::External {
            self.refuse(
                format!("{key}.load"),
                "a program that steps the simulation cannot send CoAP messages",
                "use `periodic`, `poisson`, `on_off`, `burst` or `trace`, or another transport",
            );
        }
        self.coap_sizes(key, flow, &coap);
        self.coap_timers(&format!("{key}.coap"), &coap);
        if let Some(dtls) = &flow.dtls {
            self.dtls(&format!("{key}.dtls"), flow, dtls);
        }
    }

    fn coap_sizes(&mut self, key: &str, flow: &Flow, coap: &Coap) {
        let record = flow.dtls.as_ref().map_or(0, |dtls| dtls.record_overhead().get());
        let largest = self.scenario.datagram_payload_max(flow.ip).get().saturating_sub(record);
        for (name, size) in [("header", coap.header), ("response", coap.response)] {
            self.coap_size(&format!("{key}.coap.{name}"), size, COAP_MIN..=largest);
        }
    }

    /// Refuses a size outside of limits in bytes.
    fn coap_size(&mut self, key: &str, size: Bytes, limits: RangeInclusive<u64>) {
        if !limits.contains(&size.get()) {
            let (smallest, largest) = limits.into_inner();
            self.refuse(
                key,
                format!("expected a size from {smallest} B to {largest} B, not {size}"),
                "write a size within these limits, or leave it out",
            );
        }
    }

    fn coap_timers(&mut self, key: &str, coap: &Coap) {
        if coap.ack_timeout.is_zero() {
            self.refuse(
                format!("{key}.ack_timeout"),
                "the time must be above 0",
                "write \"2 s\", or leave it out",
            );
        }
        if !(1.0..=RANDOM_FACTOR_MAX).contains(&coap.ack_random_factor) {
            self.refuse(
                format!("{key}.ack_random_factor"),
                format!(
                    "expected a factor from 1 to {RANDOM_FACTOR_MAX}, not {}",
                    coap.ack_random_factor
                ),
                "write 1.5, or leave it out",
            );
        }
        if coap.max_retransmit > RETRANSMISSIONS_MAX {
            self.refuse(
                format!("{key}.max_retransmit"),
                format!(
                    "expected at most {RETRANSMISSIONS_MAX} retransmissions, not {}",
                    coap.max_retransmit
                ),
                "write 4, or leave it out",
            );
        }
    }

    fn dtls(&mut self, key: &str, flow: &Flow, dtls: &Dtls) {
        let largest = self.scenario.datagram_payload_max(flow.ip).get();
        self.coap_size(&format!("{key}.record"), dtls.record_overhead(), RECORD_MIN..=largest);
        let flights = dtls.flight_sizes();
        if !matches!(flights.len(), 4 | 6) {
            self.refuse(
                format!("{key}.flights"),
                format!("a handshake has 4 or 6 flights, not {}", flights.len()),
                "write the bytes of 6 flights, or of 4 without a cookie",
            );
        }
        for flight in flights {
            self.coap_size(&format!("{key}.flights"), flight, FLIGHT_MIN..=largest);
        }
    }
}
