//! Segments in the captures of the simulator: pcapng with packets that are truncated after their
//! headers.

use std::io::{self, ErrorKind};

use gridhaul_core::tcp::{Flags, SackBlocks};
use gridhaul_core::wire::TcpPacket;
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::RecordedBytes;

/// A segment of one direction of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CapturedSegment {
    /// Time in seconds since the start of the run.
    pub(super) time_s: f64,
    pub(super) seq: u32,
    pub(super) ack: u32,
    /// Bytes of data.
    pub(super) length: u32,
    pub(super) is_syn: bool,
    pub(super) has_ack: bool,
    /// The window field, without its scale.
    pub(super) window: u16,
    /// Window scale of a SYN.
    pub(super) window_scale: Option<u8>,
    /// Selectively acknowledged ranges.
    pub(super) sack: SackBlocks,
}

/// Type of an Enhanced Packet Block (draft-ietf-opsawg-pcapng), and its bytes before the packet.
const PACKET_BLOCK: u32 = 6;
const PACKET_HEADER: usize = 28;

/// The port of the `from` end of a flow: captures number the connections of a scenario.
pub(super) fn port_of(scenario: &Scenario, flow: &str) -> u16 {
    let earlier = scenario.flow.iter().take_while(|(name, _)| *name != flow);
    let number: u64 = earlier.map(|(_, flow)| scenario.connections(flow)).sum();
    1024 + (number % 60_000) as u16
}

/// The TCP segments of a capture that have this port.
pub(super) fn segments(pcapng: &RecordedBytes, port: u16) -> io::Result<Vec<CapturedSegment>> {
    let mut bytes = Vec::with_capacity(usize::try_from(pcapng.len()).unwrap_or_default());
    pcapng.copy_to(&mut bytes)?;
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        let length = word(rest, 4).map_or(0, |length| length as usize);
        let block = rest.get(..length).filter(|block| block.len() >= 12);
        let block = block.ok_or_else(|| invalid("a block of a capture is incomplete"))?;
        rest = &rest[length..];
        if word(block, 0) == Some(PACKET_BLOCK) {
            found.extend(packet(block).and_then(|packet| packet.segment(port)));
        }
    }
    Ok(found)
}

/// A packet and its time.
struct CapturedPacket<'a> {
    nanos: u64,
    bytes: &'a [u8],
}

fn packet(block: &[u8]) -> Option<CapturedPacket<'_>> {
    let [high, low, length] = [12, 16, 20].map(|at| word(block, at));
    let nanos = u64::from(high?) << 32 | u64::from(low?);
    let bytes = block.get(PACKET_HEADER..)?.get(..length? as usize)?;
    Some(CapturedPacket { nanos, bytes })
}

impl CapturedPacket<'_> {
    fn segment(&self, port: u16) -> Option<CapturedSegment> {
        // The packet ends after its headers: the length in the IP header is that of the packet.
        let (header, protocol, packet_length) = match self.bytes.first()? >> 4 {
            4 => (usize::from(self.bytes[0] & 0xf) * 4, 9, u32::from(half(self.bytes, 2)?)),
            _ => (40, 6, u32::from(half(self.bytes, 4)?) + 40),
        };
        let is_tcp = self.bytes.get(protocol) == Some(&TCP);
        let tcp = TcpPacket::parse(self.bytes.get(header..).filter(|_| is_tcp)?).ok()?;
        let fields = tcp.well_formed_header();
        if fields.source_port != port && fields.destination_port != port {
            return None;
        }
        let headers = (header + tcp.header_len()) as u32;
        Some(CapturedSegment {
            time_s: self.nanos as f64 / 1e9,
            seq: fields.seq,
            ack: fields.ack,
            length: packet_length.saturating_sub(headers),
            is_syn: fields.flags.has(Flags::SYN),
            has_ack: fields.flags.has(Flags::ACK),
            window: fields.window,
            window_scale: fields.options.window_scale,
            sack: fields.options.sack,
        })
    }
}

/// Protocol number of TCP.
const TCP: u8 = 6;

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_be_bytes)
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, reason)
}
