//! Explicit congestion notification (RFC 3168, section 6.1): negotiation, the echo of marks by the
//! receiver, and the flags and ECN fields of segments. `sender/congestion_echo.rs` has the reaction
//! of the sender.

use super::features::Feature;
use super::{Connection, State};
use crate::coverage_mark::mark;
use crate::link::EcnCodePoint;
use crate::tcp::segment::{Flags, Segment};
use crate::tcp::sender::SendRange;

/// Flags of an ECN-setup SYN (RFC 3168, section 6.1.1).
const SETUP: Flags = Flags::ECE.with(Flags::CWR);

impl Connection {
    /// The peer's SYN or SYN-ACK has arrived.
    pub(super) fn negotiate_ecn(&mut self, syn: Flags) {
        let is_setup = if self.state == State::SynSent {
            syn.has(Flags::ECE) && !syn.has(Flags::CWR) && self.offers_ecn()
        } else {
            syn.has(SETUP) && self.params.ecn
        };
        self.features.set(Feature::Ecn, is_setup);
    }

    /// Whether all SYN segments so far were ECN-setup SYNs. After a timeout SYN is retransmitted
    /// without the flags, because a middlebox may have dropped it for them, and no packet is marked
    /// as ECN-capable (RFC 3168, sections 6.1.1 and 6.1.1.1; Linux, `tcp_ecn_fallback`).
    fn offers_ecn(&self) -> bool {
        let timeouts = self.sending.sender().map_or(0, |sender| sender.stats().timeouts);
        self.params.ecn && timeouts == 0
    }

    /// Flags of SYN, or of SYN-ACK.
    pub(super) fn flags_of_syn(&self) -> Flags {
        match self.state {
            State::SynSent if self.offers_ecn() => Flags::SYN.with(SETUP),
            State::SynSent => Flags::SYN,
            _ if self.features.has(Feature::Ecn) => Flags::SYN.with(Flags::ACK).with(Flags::ECE),
            _ => Flags::SYN.with(Flags::ACK),
        }
    }

    /// An acceptable segment has arrived, on a connection with ECN.
    #[cold]
    pub(super) fn note_congestion_notification(&mut self, segment: &Segment) {
        if segment.flags.has(Flags::ECE) && segment.flags.has(Flags::ACK) {
            self.sending.note_congestion_echo();
        }
        if segment.flags.has(Flags::CWR) {
            self.features.set(Feature::EchoesMark, false);
            if segment.len > 0 && self.params.policy.adaptive_delayed_ack {
                // Linux, tcp_ecn_accept_cwr: the window of the peer may be a single segment.
                self.receiver.request_ack();
            }
        }
        if segment.ecn == EcnCodePoint::Ce && segment.len > 0 {
            mark!(ecn_echo);
            self.rare().marks += 1;
            if !self.features.has(Feature::EchoesMark) {
                self.features.set(Feature::EchoesMark, true);
                self.receiver.on_first_mark(&self.params);
            }
        }
    }

    /// Data segments that arrived with a congestion mark.
    #[must_use]
    pub fn congestion_marks(&self) -> u64 {
        self.rare.as_ref().map_or(0, |rare| rare.marks)
    }

    /// Flags and ECN field of a segment after SYN, on a connection with ECN. New data is
    /// ECN-capable; retransmissions, window probes and acknowledgements are not (RFC 3168, sections
    /// 6.1.4 to 6.1.6).
    pub(super) fn ecn_fields(&mut self, range: SendRange, payload: u32) -> (Flags, EcnCodePoint) {
        let echo = if self.features.has(Feature::EchoesMark) { Flags::ECE } else { Flags::NONE };
        if payload == 0 || !self.sending.notes_new_data(range) {
            return (echo, EcnCodePoint::NotEct);
        }
        let reduced = self.sending.takes_reduction();
        let flags = if reduced { echo.with(Flags::CWR) } else { echo };
        (flags, EcnCodePoint::Ect0)
    }
}

#[cfg(test)]
#[path = "congestion_notification_tests.rs"]
mod tests;
