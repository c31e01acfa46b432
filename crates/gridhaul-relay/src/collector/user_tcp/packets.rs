//! Packets: parsing, with all checks that a host makes, and writing.

use bytes::Bytes;
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    IpHeader, IpPacket, Payload, TcpHeader, Transport, WireError, write_tcp,
};

use super::flow::Flow;
use super::settings::DropCause;

/// A segment of a peer.
#[derive(Debug)]
pub(super) struct Incoming {
    pub flow: Flow,
    /// With the window field as it is.
    pub segment: Segment,
    pub syn: Syn,
    pub payload: Bytes,
}

/// Options that count in SYN only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Syn {
    pub mss: Option<u16>,
    pub window_scale: Option<u8>,
    pub has_timestamps: bool,
}

/// Parses a packet, unless it is to be dropped.
pub(super) fn parse(packet: &Bytes) -> Result<Incoming, DropCause> {
    let ip = IpPacket::parse(packet).map_err(cause)?;
    if ip.is_fragment() {
        return Err(DropCause::Fragment);
    }
    let Transport::Tcp(tcp) = ip.transport().map_err(cause)? else {
        return Err(DropCause::Protocol);
    };
    ip.verify().map_err(cause)?;
    let header = tcp.header().map_err(cause)?;
    let flags = header.flags;
    let has_any = [Flags::SYN, Flags::RST, Flags::ACK].iter().any(|flag| flags.has(*flag));
    // RFC 9293, 3.10.7.4: a segment without ACK is dropped. SYN and FIN together are no segment of
    // any implementation.
    if !has_any || flags.has(Flags::SYN.with(Flags::FIN)) {
        return Err(DropCause::Malformed);
    }
    let mut segment = tcp.segment(ip.header_len()).map_err(cause)?;
    // The option of TCP-MEDX is not used here.
    segment.timestamps = header.options.timestamps;
    segment.clock = gridhaul_core::tcp::ClockOption::Timestamps;
    let syn = Syn {
        mss: header.options.mss,
        window_scale: header.options.window_scale,
        has_timestamps: header.options.timestamps.is_some(),
    };
    let flow = Flow::of(ip.addresses(), &header);
    Ok(Incoming { flow, segment, syn, payload: packet.slice_ref(tcp.payload()) })
}

/// Appends the packet of a segment, whose window is scaled already, with these options of SYN.
pub(super) fn write(
    flow: &Flow,
    segment: &Segment,
    syn: Syn,
    payload: &[u8],
    packet: &mut Vec<u8>,
) -> Result<(), WireError> {
    let addresses = flow.reply_addresses().ok_or(WireError::MixedAddresses)?;
    let mut header = TcpHeader::from_segment(segment, flow.local.port(), flow.peer.port());
    if segment.flags.has(Flags::SYN) {
        header.options.mss = syn.mss;
        header.options.window_scale = syn.window_scale;
    }
    // Without path MTU discovery, routers may fragment the packet.
    let ip = IpHeader { dont_fragment: false, ..IpHeader::new(addresses) };
    write_tcp(packet, &ip, &header, Payload::Bytes(payload)).map(|_| ())
}

fn cause(error: WireError) -> DropCause {
    match error {
        WireError::Checksum(_) => DropCause::Checksum,
        WireError::Fragment => DropCause::Fragment,
        WireError::Protocol(_) => DropCause::Protocol,
        _ => DropCause::Malformed,
    }
}
