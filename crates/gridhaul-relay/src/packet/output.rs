//! Writing of packets into the outgoing frames.

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses, EthernetHeader, IpHeader, Payload, TcpHeader, TcpOptions, TcpSegmenter, WireError,
    checksum, write_tcp,
};

use super::content::TcpFrame;
use super::counters::{BridgeCounters, FrameDropCause};
use super::direction::{Direction, Template};
use super::joining::{self, Layout};
use super::{BridgePort, OutgoingFrames};

/// Where a connection writes its packets.
pub(super) struct Output<'a> {
    pub(super) frames: &'a mut OutgoingFrames,
    pub(super) counters: &'a mut BridgeCounters,
    /// Largest IP packet of each interface.
    pub(super) mtus: [u32; 2],
}

/// A segment that a proxy has generated.
pub(super) struct Generated<'a> {
    /// Headers below TCP.
    pub(super) template: Template,
    /// The TCP header, with the sequence number of the first byte.
    pub(super) header: TcpHeader<'a>,
    /// Number of bytes of payload.
    pub(super) len: u32,
    /// Largest IP packet that the receiver and the path accept.
    pub(super) packet_max: u32,
}

/// A segment of a large packet, or the only one of a packet whose checksum is not filled in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) segmenter: &'a TcpSegmenter<'a>,
    pub(super) index: usize,
}

impl Output<'_> {
    /// Writes a complete packet of a host unchanged.
    pub(super) fn forward(&mut self, over: BridgePort, ethernet: &EthernetHeader, packet: &[u8]) {
        self.frames.over_mut(over).add(|buffer| {
            ethernet.write(buffer);
            buffer.extend_from_slice(packet);
        });
    }

    /// Writes a segment of a large packet, or of one without checksum, unchanged.
    pub(super) fn forward_part(&mut self, over: BridgePort, frame: &TcpFrame<'_>, part: &Part<'_>) {
        let write = |buffer: &mut Vec<u8>| {
            let start = buffer.len();
            frame.ethernet.write(buffer);
            let network = buffer.len() - start;
            part.segmenter.write_headers(part.index, buffer);
            let transport = network + frame.ip.header_len();
            let is_v6 = matches!(frame.ip.addresses(), Addresses::V6 { .. });
            let payload = buffer.len() - start;
            Ok::<_, WireError>(Layout { network, transport, payload, is_v6 })
        };
        let payload = part.segmenter.payload(part.index);
        let payload = (payload.len(), std::iter::once(payload));
        let written = self.frames.over_mut(over).add_segment(write, payload);
        debug_assert!(written.is_ok(), "copying cannot fail");
    }

    /// Writes a segment with these headers and a payload of `len` bytes.
    pub(super) fn write<'p>(
        &mut self,
        over: BridgePort,
        (template, ip): (&Template, &IpHeader),
        header: &TcpHeader<'_>,
        (len, payload): (u32, impl Iterator<Item = &'p [u8]>),
    ) {
        let write = |buffer: &mut Vec<u8>| {
            let start = buffer.len();
            template.ethernet.write(buffer);
            let network = buffer.len() - start;
            let transport = network + ip.header_len();
            let packet = write_tcp(buffer, ip, header, Payload::Omitted(len))?;
            let segment = packet - ip.header_len() as u32;
            let sum = checksum::pseudo_header(&ip.addresses, TCP, segment) as u16;
            let at = start + transport + joining::CHECKSUM;
            buffer[at..at + 2].copy_from_slice(&sum.to_be_bytes());
            let is_v6 = matches!(ip.addresses, Addresses::V6 { .. });
            Ok::<_, WireError>(Layout { network, transport, payload: buffer.len() - start, is_v6 })
        };
        let payload = (len as usize, payload);
        if self.frames.over_mut(over).add_segment(write, payload).is_err() {
            self.counters.add_dropped(FrameDropCause::Malformed, 1);
        }
    }

    /// Writes a generated segment, in several packets if it is longer than the path permits: the
    /// path may have become narrower since the segment was sent first, and selective
    /// acknowledgements need space in the packet. The payload is read from the store of
    /// `direction`.
    pub(super) fn generate(
        &mut self,
        over: BridgePort,
        direction: &mut Direction,
        segment: &Generated<'_>,
    ) {
        let Generated { template, header, len, packet_max } = segment;
        let first = header.seq.wrapping_add(u32::from(header.flags.has(Flags::SYN)));
        let mut offset = 0;
        loop {
            let mut part = *header;
            part.seq = header.seq.wrapping_add(offset);
            if offset > 0 {
                // Timestamps are in every segment once they are negotiated (RFC 7323, section
                // 3.2); selective acknowledgements are in the first packet.
                let timestamps = header.options.timestamps;
                part.options = TcpOptions { timestamps, ..TcpOptions::default() };
            }
            let headers = template.ip.header_len() as u32 + header_len(&part);
            let space = packet_max.min(&self.mtus[over.index()]).saturating_sub(headers).max(1);
            let length = (len - offset).min(space);
            let is_last = offset + length == *len;
            if !is_last {
                part.flags = part.flags.without(Flags::FIN.with(Flags::PSH));
            }
            let ip = direction.next_ip_header(&template.ip);
            let seq = first.wrapping_add(offset).wrapping_add(direction.renumbering);
            if length == 0 {
                self.write(over, (template, &ip), &part, (0, std::iter::empty()));
            } else if let Some(payload) = direction.store.read(seq, length as usize) {
                self.write(over, (template, &ip), &part, (length, payload));
            } else {
                self.counters.add_dropped(FrameDropCause::PayloadMissing, 1);
            }
            offset += length;
            if is_last {
                return;
            }
        }
    }
}

/// Protocol number of TCP (RFC 9293).
const TCP: u8 = 6;

/// Length of a TCP header of a segment that is not SYN, with its options.
fn header_len(header: &TcpHeader<'_>) -> u32 {
    let blocks = header.options.sack.as_slice().len() as u32;
    // RFC 7323, appendix A, and RFC 2018, section 3, with padding.
    let timestamps = if header.options.timestamps.is_some() { 12 } else { 0 };
    let sack = if blocks > 0 { 4 + 8 * blocks } else { 0 };
    TcpHeader::MIN_LEN as u32 + timestamps + sack
}

/// The TCP header of a segment of a proxy, whose windows are in bytes, for a receiver that reads
/// them in units of 2^`shift` bytes.
pub(super) fn tcp_header(segment: &Segment, ports: [u16; 2], shift: u8) -> TcpHeader<'static> {
    let shift = if segment.flags.has(Flags::SYN) { 0 } else { shift };
    let scaled = Segment { window: segment.window >> shift, ..*segment };
    TcpHeader::from_segment(&scaled, ports[0], ports[1])
}
