//! Writing of packets into the outgoing frames.

use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{IpHeader, Payload, TcpHeader, WireError, write_tcp};

use super::content::TcpFrame;
use super::counters::{BridgeCounters, DropCause};
use super::direction::{Direction, Template};
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

impl Output<'_> {
    /// Writes a packet of a host unchanged.
    pub(super) fn forward(&mut self, over: BridgePort, frame: &TcpFrame<'_>) {
        let queue = self.frames.over_mut(over);
        let written = queue.add::<WireError>(|buffer| {
            frame.ethernet.write(buffer);
            buffer.extend_from_slice(frame.packet);
            Ok(())
        });
        debug_assert!(written.is_ok(), "copying cannot fail");
    }

    /// Writes a packet with these headers and this payload.
    pub(super) fn write(
        &mut self,
        over: BridgePort,
        (template, ip): (&Template, &IpHeader),
        header: &TcpHeader<'_>,
        payload: &[u8],
    ) {
        let written = self.frames.over_mut(over).add(|buffer| {
            template.ethernet.write(buffer);
            write_tcp(buffer, ip, header, Payload::Bytes(payload)).map(drop)
        });
        if written.is_err() {
            self.counters.add_dropped(DropCause::Malformed, 1);
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
                part.options = Default::default();
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
                self.write(over, (template, &ip), &part, &[]);
            } else if !self.write_stored(
                over,
                (template, &ip),
                &part,
                direction,
                seq..seq.wrapping_add(length),
            ) {
                self.counters.add_dropped(DropCause::PayloadMissing, 1);
            }
            offset += length;
            if is_last {
                return;
            }
        }
    }

    /// Writes a packet with payload from the store; false if it is not there.
    fn write_stored(
        &mut self,
        over: BridgePort,
        headers: (&Template, &IpHeader),
        header: &TcpHeader<'_>,
        direction: &Direction,
        range: std::ops::Range<u32>,
    ) -> bool {
        let len = range.end.wrapping_sub(range.start) as usize;
        let Some(mut slices) = direction.store.read(range.start, len) else { return false };
        match slices.next() {
            Some(slice) if slice.len() == len => self.write(over, headers, header, slice),
            first => {
                let rest = first.into_iter().chain(slices);
                let payload: Vec<u8> = rest.flatten().copied().collect();
                self.write(over, headers, header, &payload);
            }
        }
        true
    }
}

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
