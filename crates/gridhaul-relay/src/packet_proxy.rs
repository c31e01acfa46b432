//! Packets of one TCP connection through a proxy.

use bytes::Bytes;
use gridhaul_core::pep::{Origin, Outgoing, Payload as Store, Proxy, Side, Statistics};
use gridhaul_core::tcp::{Flags, Segment};
use gridhaul_core::wire::{
    Addresses, IpHeader, IpPacket, Payload, TcpHeader, TcpPacket, Transport, WireError, write_tcp,
};
use gridhaul_scenario::units::Instant;

use crate::Error;

/// A proxy with the payload that it keeps: IP packets come in, and IP packets go out.
///
/// Serves the first connection that the left host opens, and proxies that keep the sequence numbers of both
/// hosts: all but [`Split`](gridhaul_core::pep::Split).
///
/// Call order: after [`Self::handle_packet`] and [`Self::handle_timeout`], [`Self::poll_transmit`] until
/// `None`, and [`Self::write_packet`] for each segment before the next is polled.
#[derive(Debug)]
pub struct PacketProxy<P> {
    proxy: P,
    /// Addresses and ports of packets from the left host.
    flow: Option<Flow>,
    /// By the side that sends the data.
    directions: [Direction; 2],
    /// The packet that has arrived last.
    incoming: Option<(Side, Bytes)>,
    counters: Counters,
}

/// Segments that have left, by the side to which they go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Segments of the hosts, with or without changes of their header.
    pub passed: [u64; 2],
    /// Segments of the proxy with payload; retransmissions are included.
    pub data: [u64; 2],
    /// Segments of the proxy without payload: its acknowledgements, FIN and RST.
    pub acknowledgements: [u64; 2],
}

impl<P: Proxy> PacketProxy<P> {
    /// Keeps at most `limit` bytes of payload of each direction, which must be the buffer of the proxy.
    #[must_use]
    pub fn new(proxy: P, limit: usize) -> Self {
        let direction = || Direction { store: Store::new(limit), first: None, window_scale: None };
        Self {
            proxy,
            flow: None,
            directions: [direction(), direction()],
            incoming: None,
            counters: Counters::default(),
        }
    }

    /// A packet from one of the hosts. Returns whether it belongs to the connection; the caller forwards the
    /// others.
    ///
    /// # Errors
    /// [`WireError::Checksum`]: the packet is corrupt, and the proxy must not acknowledge it. It is dropped.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        from: Side,
        packet: &Bytes,
    ) -> Result<bool, WireError> {
        let Some((ip, tcp, header)) = parse(packet) else { return Ok(false) };
        let flow = Flow::of(ip.addresses(), &header);
        let opens = from == Side::Client && header.flags.has(Flags::SYN);
        if opens && self.flow.is_none() {
            self.flow = Some(flow);
        }
        if self.flow_from(from) != Some(flow) {
            return Ok(false);
        }
        ip.verify()?;
        let mut segment = tcp.segment(ip.header_len())?;
        if segment.flags.has(Flags::SYN) {
            self.note_syn(from, &header);
        } else {
            segment.window <<= self.window_shift(from);
        }
        if let Some((seq, len)) = self.proxy.accepts(from, &segment) {
            let start = seq.wrapping_sub(first_number(&segment)) as usize;
            let accepted = packet.slice_ref(&tcp.payload()[start..start + len as usize]);
            self.directions[from.index()].store.insert(seq, &accepted);
        }
        self.incoming = Some((from, packet.clone()));
        self.proxy.handle_segment(now, from, &segment);
        Ok(true)
    }

    /// Passes the time on to the proxy.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.incoming = None;
        self.proxy.handle_timeout(now);
    }

    /// Time at which [`Self::handle_timeout`] is to be called.
    pub fn next_deadline(&self) -> Instant {
        self.proxy.next_deadline()
    }

    /// The next segment that leaves.
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        let outgoing = self.proxy.poll_transmit(now);
        if let Some(Outgoing { to, segment, origin }) = &outgoing {
            let counters = &mut self.counters;
            let counter = match origin {
                Origin::Forwarded | Origin::Rewritten => &mut counters.passed,
                Origin::Proxy if segment.len > 0 => &mut counters.data,
                Origin::Proxy => &mut counters.acknowledgements,
            };
            counter[to.index()] += 1;
        } else {
            self.release();
        }
        outgoing
    }

    /// Appends the IP packet of a segment that leaves.
    ///
    /// # Errors
    /// The proxy sends what is not there.
    pub fn write_packet(&self, outgoing: &Outgoing, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let from = outgoing.to.other();
        match outgoing.origin {
            Origin::Proxy => self.write_own(from, &outgoing.segment, buffer),
            Origin::Forwarded => {
                buffer.extend_from_slice(self.incoming_from(from)?);
                Ok(())
            }
            Origin::Rewritten => self.write_changed(from, &outgoing.segment, buffer),
        }
    }

    /// Segments that have left.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The proxy's counters.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.proxy.statistics()
    }

    /// A packet of the proxy, with payload from the store.
    fn write_own(&self, from: Side, segment: &Segment, buffer: &mut Vec<u8>) -> Result<(), Error> {
        let flow = self.flow_from(from).ok_or(Error::PacketMissing)?;
        let (seq, len) = (first_number(segment), segment.len);
        let store = &self.directions[from.index()].store;
        let payload: Vec<u8> = match store.read(seq, len as usize) {
            Some(slices) => slices.flatten().copied().collect(),
            None if len == 0 => Vec::new(),
            None => return Err(Error::PayloadMissing { seq, len }),
        };
        let header = self.header(from, segment, &flow);
        write_tcp(buffer, &IpHeader::new(flow.addresses), &header, Payload::Bytes(&payload))?;
        Ok(())
    }

    /// The packet that has just arrived, with the header of `segment` and the payload that it names. Options
    /// that a [`Segment`] does not hold stay.
    fn write_changed(
        &self,
        from: Side,
        segment: &Segment,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let packet = self.incoming_from(from)?;
        let (ip, tcp, incoming) = parse(packet).ok_or(Error::PacketMissing)?;
        let mut header = self.header(from, segment, &Flow::of(ip.addresses(), &incoming));
        header.urgent = incoming.urgent;
        header.options.mss = incoming.options.mss;
        header.options.window_scale = incoming.options.window_scale;
        header.options.unknown = incoming.options.unknown;
        let syn = u32::from(incoming.flags.has(Flags::SYN));
        let start = first_number(segment).wrapping_sub(incoming.seq.wrapping_add(syn)) as usize;
        let named = start..start.saturating_add(segment.len as usize);
        let payload = tcp.payload().get(named).ok_or(Error::PacketMissing)?;
        write_tcp(buffer, &ip.header(), &header, Payload::Bytes(payload))?;
        Ok(())
    }

    fn header(&self, from: Side, segment: &Segment, flow: &Flow) -> TcpHeader<'static> {
        let shift = if segment.flags.has(Flags::SYN) { 0 } else { self.window_shift(from) };
        let scaled = Segment { window: segment.window >> shift, ..*segment };
        TcpHeader::from_segment(&scaled, flow.ports[0], flow.ports[1])
    }

    fn incoming_from(&self, from: Side) -> Result<&Bytes, Error> {
        match &self.incoming {
            Some((side, packet)) if *side == from => Ok(packet),
            _ => Err(Error::PacketMissing),
        }
    }

    fn note_syn(&mut self, from: Side, header: &TcpHeader<'_>) {
        let direction = &mut self.directions[from.index()];
        direction.first = Some(header.seq.wrapping_add(1));
        direction.window_scale = header.options.window_scale;
        if header.flags.has(Flags::ACK) {
            for toward in Side::BOTH {
                self.proxy.set_window_shift(toward, self.window_shift(toward.other()));
            }
        }
    }

    /// Shift count of the windows that a host offers. Windows are scaled if both SYN segments have the option,
    /// by at most 14 bits (RFC 7323, sections 2.2 and 2.3).
    fn window_shift(&self, of: Side) -> u8 {
        let scales = Side::BOTH.map(|side| self.directions[side.index()].window_scale);
        if scales.contains(&None) { 0 } else { scales[of.index()].unwrap_or(0).min(14) }
    }

    fn flow_from(&self, side: Side) -> Option<Flow> {
        self.flow.map(|flow| if side == Side::Client { flow } else { flow.reversed() })
    }

    /// Releases the payload that the proxy has released.
    fn release(&mut self) {
        for from in Side::BOTH {
            let direction = &mut self.directions[from.index()];
            if let Some(first) = self.proxy.first_sequence_number(from).or(direction.first) {
                let released = self.proxy.buffer_status(from).released as u32;
                direction.store.release_to(first.wrapping_add(released));
            }
        }
    }
}

/// The payload of one direction, and what its sender has announced.
#[derive(Debug)]
struct Direction {
    store: Store,
    /// Sequence number of the first byte of payload.
    first: Option<u32>,
    /// Of SYN.
    window_scale: Option<u8>,
}

/// Addresses and ports of the packets of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Flow {
    addresses: Addresses,
    /// Of the sender and of the receiver.
    ports: [u16; 2],
}

impl Flow {
    fn of(addresses: Addresses, header: &TcpHeader<'_>) -> Self {
        Self { addresses, ports: [header.source_port, header.destination_port] }
    }

    fn reversed(self) -> Self {
        let addresses = match self.addresses {
            Addresses::V4 { source, destination } => {
                Addresses::V4 { source: destination, destination: source }
            }
            Addresses::V6 { source, destination } => {
                Addresses::V6 { source: destination, destination: source }
            }
        };
        let [source, destination] = self.ports;
        Self { addresses, ports: [destination, source] }
    }
}

/// The headers of a TCP packet that is not a fragment.
fn parse(packet: &[u8]) -> Option<(IpPacket<'_>, TcpPacket<'_>, TcpHeader<'_>)> {
    let ip = IpPacket::parse(packet).ok()?;
    let Ok(Transport::Tcp(tcp)) = ip.transport() else { return None };
    let header = tcp.header().ok()?;
    Some((ip, tcp, header))
}

/// Sequence number of the first payload byte of a segment.
fn first_number(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)))
}
