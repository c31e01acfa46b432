//! Old duplicates of SYN at a bridge that does not have the connection, as after its start.
//!
//! A proxy must not serve the connection: it does not know the window scale, and `split` would
//! reset hosts whose numbers are not its own. The hosts prove that they have a connection by
//! segments that follow the SYN although no SYN-ACK has passed the bridge.

use gridhaul_core::pep::Side;
use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::TcpHeader;
use gridhaul_scenario::scenario::ProxyMode;

use super::{Arrival, Connection};

/// Evidence that the SYN of a connection was an old duplicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::packet) enum OldSyn {
    /// The hosts have a connection without the proxy.
    Proven,
    /// The server has a connection, but the client may have forgotten it, so that it is half-open.
    /// The client's answer to the SYN-ACK of the proxy decides.
    Possible,
}

impl Connection {
    /// Whether a segment shows that the SYN was an old duplicate.
    pub(in crate::packet) fn old_syn(&self, arrival: &Arrival<'_>) -> Option<OldSyn> {
        let Arrival { from, header, .. } = arrival;
        let first = self.handshake.syn(Side::Client)?.first;
        let flags = header.flags;
        let is_plain = flags.has(Flags::ACK) && !flags.has(Flags::SYN) && !flags.has(Flags::RST);
        let is_answered = self.is_confirmed || self.handshake.syn(Side::Server).is_some();
        if !is_plain || is_answered {
            return None;
        }
        // Segments of an earlier connection between the same ports have lower numbers (RFC 9293,
        // section 3.4.1).
        let number = if *from == Side::Client { header.seq } else { header.ack };
        if number.wrapping_sub(first).cast_signed() < 0 {
            return None;
        }
        match (self.mode, from) {
            (ProxyMode::Split, Side::Client) if self.confirms(header) => None,
            (ProxyMode::Split, Side::Server) => Some(OldSyn::Possible),
            _ => Some(OldSyn::Proven),
        }
    }

    /// Whether a segment of the client answers SYN-ACK of a proxy that terminates the connection,
    /// before the server has answered.
    pub(super) fn confirms(&self, header: &TcpHeader<'_>) -> bool {
        // Until SYN of the server arrives, the numbers of its data are those of the proxy.
        let first = 0_u32.wrapping_sub(self.directions[Side::Server.index()].renumbering);
        self.mode == ProxyMode::Split
            && self.handshake.syn(Side::Server).is_none()
            && header.flags.has(Flags::ACK)
            && header.ack == first
    }
}
