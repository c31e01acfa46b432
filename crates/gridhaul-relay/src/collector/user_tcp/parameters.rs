//! Parameters of the TCP endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{Profile, Stack};

use super::packets::Syn;

/// Parameters by the segment size, the header and the receive window of connections, which share
/// them.
#[derive(Debug)]
pub(super) struct Parameters {
    receive_window: u32,
    mtu: u32,
    known: BTreeMap<(u32, u32, u32), Arc<StackParams>>,
}

/// Smallest payload of a segment that a peer can ask for (Linux, `TCP_MIN_SND_MSS`, without the
/// space for options): smaller ones would cost more headers than data.
const MSS_MIN: u32 = 48;

/// Segment size of a peer whose SYN has none (RFC 9293, 3.7.1).
const MSS_DEFAULT: [u32; 2] = [536, 1_220];

/// Largest packet without path MTU discovery: in IPv6, routers do not fragment (RFC 8200, section
/// 5). Packets with IPv4 may be fragmented.
const MTU_IPV6: u32 = 1_280;

/// Bytes of the timestamps option with its padding (RFC 7323, appendix A).
const TIMESTAMPS: u32 = 12;

impl Parameters {
    pub(super) const fn new(receive_window: u32, mtu: u32) -> Self {
        Self { receive_window, mtu, known: BTreeMap::new() }
    }

    /// Largest segment of the peer, for the MSS option: the headers without options are subtracted
    /// (RFC 6691).
    pub(super) fn own_mss(&self, is_ipv6: bool) -> u16 {
        let header = header(is_ipv6);
        self.mtu.saturating_sub(header).clamp(MSS_MIN, u32::from(u16::MAX)) as u16
    }

    /// Parameters of a connection that this SYN opens.
    pub(super) fn of(&mut self, syn: &Syn, is_ipv6: bool) -> Arc<StackParams> {
        let header = header(is_ipv6);
        let mtu = if is_ipv6 { self.mtu.min(MTU_IPV6) } else { self.mtu };
        let offered = syn.mss.map_or(MSS_DEFAULT[usize::from(is_ipv6)], u32::from);
        let options = if syn.has_timestamps { TIMESTAMPS } else { 0 };
        let mss = offered.min(mtu.saturating_sub(header)).max(MSS_MIN + options) - options;
        // Without window scaling, the window field has 16 bits.
        let largest = if syn.window_scale.is_some() { u32::MAX } else { u32::from(u16::MAX) };
        let receive_window = self.receive_window.min(largest);
        let params = self.known.entry((mss, header, receive_window));
        Arc::clone(params.or_insert_with(|| Arc::new(resolve(mss, header, receive_window))))
    }
}

/// Bytes of the headers of IP and TCP without options.
const fn header(is_ipv6: bool) -> u32 {
    if is_ipv6 { 60 } else { 40 }
}

/// The behaviour of Linux, without Nagle's algorithm, as on the collector's other sockets.
fn resolve(mss: u32, header: u32, receive_window: u32) -> StackParams {
    let stack = Stack {
        profile: Profile::Linux,
        nagle: Some(false),
        timestamps: Some(true),
        sack: Some(true),
        ..Stack::default()
    };
    let params = StackParams::resolve(&stack);
    StackParams { mss, header, receive_window, initial_window: 10 * mss, ..params }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_fit_both_ends() {
        let mut parameters = Parameters::new(100_000, 1_500);
        let syn = Syn { mss: Some(1_460), window_scale: Some(7), has_timestamps: true };
        let params = parameters.of(&syn, false);
        assert_eq!((params.mss, params.receive_window), (1_448, 100_000));
        let small = Syn { mss: Some(1), window_scale: None, has_timestamps: false };
        let params = parameters.of(&small, false);
        assert_eq!((params.mss, params.receive_window), (48, 65_535));
        let none = Syn { mss: None, ..small };
        assert_eq!(parameters.of(&none, true).mss, 1_220);
        let same = Syn { mss: Some(1_220), ..small };
        assert_eq!([true, false].map(|v6| parameters.of(&same, v6).header), [60, 40]);
        assert_eq!((parameters.own_mss(false), parameters.own_mss(true)), (1_460, 1_440));
    }
}
