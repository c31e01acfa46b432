//! A meter: an endpoint of [`gridhaul_core::tcp`] that acknowledges at once, and its packets.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use gridhaul_core::pep::Payload as Store;
use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams, State};
use gridhaul_core::wire::{
    Addresses, IpHeader, IpPacket, Payload, TcpHeader, Transport, write_tcp,
};
use gridhaul_scenario::scenario::{Profile, Stack};
use gridhaul_scenario::units::Instant;

use crate::collector::user_tcp::Flow;

/// A meter that sends a stream.
#[derive(Debug)]
pub(super) struct Host {
    pub flow: Flow,
    pub tcp: Connection,
    isn: u32,
    peer_scale: u8,
    own_scale: Option<u8>,
    /// Number of the stream, which determines its bytes.
    pub stream: u64,
    /// Data that was received, in order and beyond gaps.
    pub received: Vec<u8>,
    input: Store,
    /// Whether the host has closed its direction.
    pub is_closing: bool,
    /// Whether RST has arrived.
    pub was_reset: bool,
}

/// Options of a meter's TCP.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    pub profile: Profile,
    pub sack: bool,
    pub timestamps: bool,
    pub window_scale: bool,
}

impl Options {
    /// Those of Linux.
    pub(super) const LINUX: Self =
        Self { profile: Profile::Linux, sack: true, timestamps: true, window_scale: true };

    /// Those of a small implementation.
    pub(super) const SMALL: Self =
        Self { profile: Profile::Rfc, sack: false, timestamps: false, window_scale: false };
}

/// The byte of a stream at a position.
pub(super) fn byte(stream: u64, position: u64) -> u8 {
    (stream.wrapping_mul(167) ^ position.wrapping_mul(31) ^ (position >> 8)) as u8
}

impl Host {
    /// A host that connects with its first poll.
    pub(super) fn connect(
        local: SocketAddr,
        peer: SocketAddr,
        stream: u64,
        isn: u32,
        options: Options,
    ) -> Self {
        let stack = Stack {
            profile: options.profile,
            sack: Some(options.sack),
            timestamps: Some(options.timestamps),
            nagle: Some(false),
            ..Stack::default()
        };
        let mss = if options.timestamps { 1_448 } else { 1_460 };
        let params = StackParams { mss, ..StackParams::resolve(&stack) };
        let params = StackParams { receive_window: 60_000, ..params };
        Self {
            flow: Flow { local, peer },
            tcp: Connection::connect(Arc::new(params), isn),
            isn,
            peer_scale: 0,
            own_scale: options.window_scale.then_some(0),
            stream,
            received: Vec::new(),
            input: Store::new(usize::MAX),
            is_closing: false,
            was_reset: false,
        }
    }

    /// Bytes of the stream that the peer has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        let una = self.tcp.first_unacknowledged().wrapping_sub(self.isn);
        u64::from(una.saturating_sub(1)).min(self.tcp.written())
    }

    /// Bytes that were written and are not acknowledged.
    pub(super) fn outstanding(&self) -> u64 {
        self.tcp.written() - self.acknowledged()
    }

    pub(super) fn is_closed(&self) -> bool {
        self.tcp.state() == State::Closed
    }

    /// Handles a packet of the collector.
    pub(super) fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        let ip = IpPacket::parse(packet).unwrap();
        ip.verify().unwrap();
        let Transport::Tcp(tcp) = ip.transport().unwrap() else { panic!("no segment") };
        let header = tcp.header().unwrap();
        let mut segment = tcp.segment(ip.header_len()).unwrap();
        if segment.flags.has(Flags::SYN) {
            self.peer_scale = header.options.window_scale.unwrap_or(0);
            assert_eq!(header.options.window_scale.is_some(), self.own_scale.is_some());
        } else {
            segment.window <<= self.peer_scale;
        }
        self.was_reset |= segment.flags.has(Flags::RST);
        if let Some(range) = self.tcp.incoming(&segment) {
            let seq = self.tcp.sequence_of(range.start);
            let start = seq.wrapping_sub(segment.seq) as usize;
            let data = &tcp.payload()[start..start + (range.end - range.start) as usize];
            self.input.insert(seq, &Bytes::copy_from_slice(data));
        }
        self.tcp.handle_segment(now, &segment);
        let position = self.received.len() as u64;
        let length = (self.tcp.receiver().delivered() - position) as usize;
        if length > 0 {
            let slices = self.input.read(self.tcp.sequence_of(position), length);
            self.received.extend(slices.unwrap().flatten());
        }
    }

    /// The next packet to send.
    pub(super) fn poll_packet(&mut self, now: Instant) -> Option<Bytes> {
        let segment = self.tcp.poll_transmit(now)?;
        Some(self.packet(&segment))
    }

    /// A packet with a segment.
    pub(super) fn packet(&self, segment: &Segment) -> Bytes {
        let start = u64::from(segment.seq.wrapping_sub(self.isn)).saturating_sub(1);
        let payload: Vec<u8> =
            (start..start + u64::from(segment.len)).map(|at| byte(self.stream, at)).collect();
        let Flow { local, peer } = self.flow;
        let mut header = TcpHeader::from_segment(segment, local.port(), peer.port());
        if segment.flags.has(Flags::SYN) {
            header.options.mss = Some(1_460);
            header.options.window_scale = self.own_scale;
        }
        let ip = IpHeader::new(Addresses::new(local.ip(), peer.ip()).unwrap());
        let mut packet = Vec::new();
        write_tcp(&mut packet, &ip, &header, Payload::Bytes(&payload)).unwrap();
        packet.into()
    }
}
