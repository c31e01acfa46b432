//! Options and sequence numbers of both SYN segments of a connection.

use gridhaul_core::pep::{MssLimit, Side};
use gridhaul_core::wire::{Addresses, TcpHeader, TcpOptions};

use super::UntouchedCause;

/// Fields of both SYN segments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Handshake {
    syns: [Option<Syn>; 2],
    /// Window scale of the proxy itself, if it terminates the connections of both hosts.
    own_scale: Option<u8>,
}

/// Fields of a SYN segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Syn {
    /// Sequence number of the first byte of payload.
    pub(super) first: u32,
    /// Largest segment that the host accepts.
    pub(super) mss: u32,
    pub(super) window_scale: Option<u8>,
}

/// Largest shift count (RFC 7323, section 2.3: a larger value is treated as 14).
const SHIFT_MAX: u8 = 14;

/// Minimum MSS with which segments are useful: that with which Linux sends (`TCP_MIN_SND_MSS`).
const MSS_MIN: u32 = 48;

/// MSS of a host that states none (RFC 9293, section 3.7.1).
const DEFAULT_MSS: u32 = 536;
const DEFAULT_MSS_V6: u32 = 1_220;

// Kinds of options (RFC 2385, RFC 5925, RFC 8684, RFC 7413).
const MD5: u8 = 19;
const TCP_AO: u8 = 29;
const MPTCP: u8 = 30;
const FAST_OPEN: u8 = 34;

impl Syn {
    /// Reads the header of a SYN segment between these addresses.
    pub(super) fn of(header: &TcpHeader<'_>, addresses: &Addresses) -> Self {
        let default = match addresses {
            Addresses::V4 { .. } => DEFAULT_MSS,
            Addresses::V6 { .. } => DEFAULT_MSS_V6,
        };
        Self {
            first: header.seq.wrapping_add(1),
            mss: header.options.mss.map_or(default, u32::from),
            window_scale: header.options.window_scale,
        }
    }

    /// Why a proxy cannot serve a connection with this SYN segment.
    pub(super) fn objection(
        &self,
        options: &TcpOptions<'_>,
        has_data: bool,
    ) -> Option<UntouchedCause> {
        if has_data {
            return Some(UntouchedCause::DataInSyn);
        }
        if self.mss < MSS_MIN {
            return Some(UntouchedCause::SmallMss);
        }
        if options.one_way_delay.is_some() {
            return Some(UntouchedCause::UnknownOption);
        }
        options.unknown.iter().find_map(|option| match option[0] {
            MD5 => Some(UntouchedCause::Md5),
            TCP_AO => Some(UntouchedCause::TcpAo),
            MPTCP => Some(UntouchedCause::Mptcp),
            // A request for a cookie, or a cookie: without data, neither concerns the connection.
            FAST_OPEN => None,
            _ => Some(UntouchedCause::UnknownOption),
        })
    }
}

impl Handshake {
    /// `own_scale` is the window scale of a proxy that terminates the connections of both hosts.
    pub(super) const fn new(own_scale: Option<u8>) -> Self {
        Self { syns: [None; 2], own_scale }
    }

    pub(super) const fn note(&mut self, from: Side, syn: Syn) {
        self.syns[from.index()] = Some(syn);
    }

    /// SYN of a side.
    pub(super) const fn syn(&self, of: Side) -> Option<&Syn> {
        self.syns[of.index()].as_ref()
    }

    /// Window scale of a proxy that terminates the connections of both hosts.
    pub(super) const fn own_scale(&self) -> Option<u8> {
        self.own_scale
    }

    /// Whether both SYN segments were seen.
    pub(super) const fn is_complete(&self) -> bool {
        matches!(self.syns, [Some(_), Some(_)])
    }

    /// The smaller MSS of both hosts, as far as they have stated it.
    pub(super) fn mss_limit(&self) -> MssLimit {
        let mss = self.syns.map(|syn| syn.map_or(u32::from(u16::MAX), |syn| syn.mss));
        MssLimit::of_hosts(mss)
    }

    /// Shift count of windows in segments from a side. Windows are scaled if both SYN segments of a
    /// connection have the option (RFC 7323, section 2.2).
    pub(super) fn shift_from(&self, side: Side) -> u8 {
        let is_scaled = self.own_scale.is_some() || self.scale(side.other()).is_some();
        if is_scaled { self.scale(side).unwrap_or(0) } else { 0 }
    }

    /// Shift count of windows in segments toward a side.
    pub(super) fn shift_toward(&self, side: Side) -> u8 {
        match (self.scale(side), self.own_scale) {
            (None, _) => 0,
            (Some(_), Some(own)) => own,
            (Some(_), None) => self.scale(side.other()).unwrap_or(0),
        }
    }

    /// Window scale option of SYN to a side, of a proxy that terminates connections: a SYN-ACK has
    /// it only if SYN has it.
    pub(super) fn offered_scale(&self, to: Side) -> Option<u8> {
        let is_answer = to == Side::Client;
        self.own_scale.filter(|_| !is_answer || self.scale(to).is_some())
    }

    fn scale(&self, of: Side) -> Option<u8> {
        let syn = self.syns[of.index()]?;
        syn.window_scale.map(|scale| scale.min(SHIFT_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handshake(scales: [Option<u8>; 2], own_scale: Option<u8>) -> Handshake {
        let mut handshake = Handshake::new(own_scale);
        for (side, window_scale) in Side::BOTH.into_iter().zip(scales) {
            handshake.note(side, Syn { first: 1, mss: 536, window_scale });
        }
        handshake
    }

    fn shifts(handshake: &Handshake) -> [[u8; 2]; 2] {
        Side::BOTH.map(|side| [handshake.shift_from(side), handshake.shift_toward(side)])
    }

    #[test]
    fn a_proxy_in_the_place_of_a_host_uses_its_scale() {
        assert_eq!(shifts(&handshake([Some(7), Some(20)], None)), [[7, 14], [14, 7]]);
        assert_eq!(shifts(&handshake([Some(7), None], None)), [[0, 0], [0, 0]]);
    }

    #[test]
    fn a_proxy_that_terminates_connections_has_its_own_scale() {
        assert_eq!(shifts(&handshake([Some(7), Some(9)], Some(2))), [[7, 2], [9, 2]]);
        let one_sided = handshake([None, Some(9)], Some(2));
        assert_eq!(shifts(&one_sided), [[0, 0], [9, 2]]);
        assert_eq!(one_sided.offered_scale(Side::Client), None);
        assert_eq!(one_sided.offered_scale(Side::Server), Some(2));
    }
}
