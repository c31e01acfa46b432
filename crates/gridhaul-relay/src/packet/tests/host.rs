//! A host with one TCP connection, which sends and receives Ethernet frames.

use std::net::SocketAddr;
use std::sync::Arc;

use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams, State};
use gridhaul_core::wire::{
    Addresses, EtherType, EthernetFrame, EthernetHeader, IpHeader, IpPacket, Payload, TcpHeader,
    Transport, VlanTag, write_tcp,
};
use gridhaul_scenario::scenario::{IpVersion, Profile, Stack};
use gridhaul_scenario::units::{Bytes, Duration, Instant, WindowSize};

use crate::packet::BridgePort;

/// A host.
pub(super) struct Host {
    pub(super) port: BridgePort,
    pub(super) own: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) connection: Connection,
    pub(super) plan: Plan,
    header: EthernetHeader,
    isn: u32,
    peer_isn: Option<u32>,
    /// Window scale of each end.
    scales: [Option<u8>; 2],
    has_written: bool,
    has_closed: bool,
    /// Bytes that the application has read, and when it reads again.
    read: u64,
    next_read: Instant,
    /// Frames with data and pure acknowledgements that have arrived.
    pub(super) data_frames: u64,
    pub(super) acknowledgements: u64,
    pub(super) was_reset: bool,
    /// Source MAC addresses and traffic classes of frames that have arrived.
    pub(super) last_source: [u8; 6],
    pub(super) last_traffic_class: u8,
}

/// Behaviour of a host.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) opens: bool,
    pub(super) sends: u64,
    pub(super) closes: bool,
    /// Close after FIN of the peer.
    pub(super) closes_after_peer: bool,
    /// Bytes that are read in each interval; `None`: all data is read at once.
    pub(super) reads: Option<(u64, Duration)>,
    pub(super) mtu: u32,
    /// MTU of the peer, whose MSS option limits segments.
    pub(super) peer_mtu: u32,
    pub(super) window: u32,
    pub(super) has_window_scale: bool,
    pub(super) has_timestamps: bool,
    pub(super) vlan: Option<u16>,
    pub(super) traffic_class: u8,
}

impl Plan {
    pub(super) const fn new(opens: bool, sends: u64) -> Self {
        Self {
            opens,
            sends,
            closes: true,
            closes_after_peer: false,
            reads: None,
            mtu: 1_500,
            peer_mtu: 1_500,
            window: 200_000,
            has_window_scale: true,
            has_timestamps: true,
            vlan: None,
            traffic_class: 0,
        }
    }
}

/// Addresses of a host and its peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) port: BridgePort,
    pub(super) own: SocketAddr,
    pub(super) peer: SocketAddr,
    pub(super) own_mac: [u8; 6],
    pub(super) peer_mac: [u8; 6],
}

impl Host {
    pub(super) fn new(place: Place, plan: Plan, isn: u32) -> Self {
        let is_v6 = place.own.is_ipv6();
        let ip = if is_v6 { IpVersion::V6 } else { IpVersion::V4 };
        let headers = if is_v6 { 60 } else { 40 };
        // Space for timestamps and selective acknowledgements, for which the simulated TCP does not
        // shorten its segments.
        let options = 12 + 36;
        let stack = Stack {
            profile: Profile::Linux,
            timestamps: Some(plan.has_timestamps),
            mss: Some(Bytes::new(u64::from(plan.mtu.min(plan.peer_mtu) - headers - options))),
            receive_window: Some(WindowSize::Bytes(Bytes::new(u64::from(plan.window)))),
            ..Stack::default()
        };
        let params = Arc::new(StackParams::resolve_for_ip(&stack, ip));
        let scale = plan.has_window_scale.then(|| params.window_shift());
        let mut connection = match plan.opens {
            true => Connection::connect(params, isn),
            false => Connection::listen(params, isn),
        };
        let mut next_read = Instant::NEVER;
        if let Some((_, interval)) = plan.reads {
            connection.read_on_demand();
            next_read = Instant::ZERO + interval;
        }
        let tag = plan.vlan.map(|id| VlanTag { id, ..VlanTag::default() });
        let header = EthernetHeader {
            destination: place.peer_mac,
            source: place.own_mac,
            tags: [tag, None],
            ether_type: if is_v6 { EtherType::IPV6 } else { EtherType::IPV4 },
        };
        Self {
            port: place.port,
            own: place.own,
            peer: place.peer,
            connection,
            plan,
            header,
            isn,
            peer_isn: None,
            scales: [scale, None],
            has_written: false,
            has_closed: false,
            read: 0,
            next_read,
            data_frames: 0,
            acknowledgements: 0,
            was_reset: false,
            last_source: [0; 6],
            last_traffic_class: 0,
        }
    }

    /// Changes the addresses before the connection is opened.
    pub(super) fn rename(&mut self, own: SocketAddr, peer: SocketAddr) {
        (self.own, self.peer) = (own, peer);
    }

    /// Handles a frame. Returns whether the frame is for this host.
    pub(super) fn receive(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let Ok(frame) = EthernetFrame::parse(bytes) else { return false };
        let Ok(ip) = IpPacket::parse(frame.payload) else { return false };
        let Ok(Transport::Tcp(tcp)) = ip.transport() else { return false };
        let Ok(header) = tcp.header() else { return false };
        let ends = addresses(self.peer, self.own);
        let ports = (header.source_port, header.destination_port);
        let is_own = ip.addresses() == ends && ports == (self.peer.port(), self.own.port());
        if !is_own || frame.header.tags != self.header.tags {
            return false;
        }
        if ip.verify().is_err() {
            return true;
        }
        let length = (ip.header_len() + ip.payload().len()) as u32;
        assert!(length <= self.plan.mtu, "{length} bytes for a host with MTU {}", self.plan.mtu);
        self.last_source = frame.header.source;
        self.last_traffic_class = ip.header().traffic_class;
        let mut segment = tcp.segment(ip.header_len()).unwrap();
        if segment.flags.has(Flags::SYN) {
            self.peer_isn = Some(segment.seq);
            self.scales[1] = header.options.window_scale;
            let shift = self.shift(0);
            self.connection.set_window_shift(shift);
        } else {
            segment.window <<= self.shift(1);
        }
        // A host that has forgotten a closed connection resets late segments of it (RFC 1337).
        self.was_reset |= segment.flags.has(Flags::RST) && !self.is_done();
        self.data_frames += u64::from(segment.len > 0);
        self.acknowledgements += u64::from(segment.len == 0 && segment.flags == Flags::ACK);
        self.check_payload(&segment, tcp.payload());
        self.connection.handle_segment(now, &segment);
        true
    }

    /// The frames that the host sends now.
    pub(super) fn poll(&mut self, now: Instant) -> Vec<Vec<u8>> {
        if self.connection.is_open() && !self.has_written {
            self.has_written = true;
            self.connection.write(self.plan.sends);
            if self.plan.closes {
                self.close();
            }
        }
        if self.plan.closes_after_peer && self.has_finished() && !self.has_closed {
            self.close();
        }
        let mut frames = Vec::new();
        while let Some(segment) = self.connection.poll_transmit(now) {
            frames.push(self.frame(&segment));
        }
        frames
    }

    /// A segment with an old sequence number in the name of this host, as the lease of a relay
    /// sends it: the peer answers it, if it has the connection.
    pub(super) fn probe(&self) -> Vec<u8> {
        let seq = self.isn.wrapping_sub(1 << 20);
        self.frame(&Segment { seq, flags: Flags::ACK, header: 40, ..Segment::default() })
    }

    /// A duplicate of the SYN of this host.
    pub(super) fn syn(&self) -> Vec<u8> {
        let flags = Flags::SYN;
        self.frame(&Segment {
            seq: self.isn,
            flags,
            window: 60_000,
            header: 40,
            ..Segment::default()
        })
    }

    /// Time of the next timeout of the connection or the application.
    pub(super) fn next_deadline(&self) -> Instant {
        let is_over = self.connection.state() == State::Closed;
        if is_over { Instant::NEVER } else { self.connection.next_deadline().min(self.next_read) }
    }

    /// Handles timers that have expired, and reads.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.connection.handle_timeout(now);
        if let Some((bytes, interval)) = self.plan.reads.filter(|_| self.next_read <= now) {
            let bytes = bytes.min(self.received() - self.read);
            self.read += bytes;
            self.connection.read(bytes);
            self.next_read = now + interval;
        }
    }

    /// Whether FIN of the peer has arrived in order.
    pub(super) fn has_finished(&self) -> bool {
        self.connection.receiver().finished()
    }

    fn close(&mut self) {
        self.has_closed = true;
        self.connection.close();
    }

    /// Bytes that have arrived in order.
    pub(super) fn received(&self) -> u64 {
        self.connection.receiver().delivered()
    }

    /// Whether the connection is closed in both directions.
    pub(super) fn is_done(&self) -> bool {
        matches!(self.connection.state(), State::Closed | State::TimeWait)
    }

    /// The connection's shift count: of the own windows (0) or those of the peer (1).
    fn shift(&self, end: usize) -> u8 {
        match self.scales {
            [Some(_), Some(_)] => self.scales[end].unwrap_or(0),
            _ => 0,
        }
    }

    fn check_payload(&self, segment: &Segment, payload: &[u8]) {
        let Some(range) = self.connection.incoming(segment) else { return };
        let peer_isn = self.peer_isn.expect("data follows SYN");
        let start = u64::from(segment.seq.wrapping_sub(peer_isn).wrapping_sub(1));
        for position in range {
            // Bytes before the start of the segment have arrived earlier.
            let Some(index) = position.checked_sub(start) else { continue };
            let expected = byte(self.peer, position);
            assert_eq!(payload[index as usize], expected, "byte {position} for {}", self.own);
        }
    }

    fn frame(&self, segment: &Segment) -> Vec<u8> {
        let is_syn = segment.flags.has(Flags::SYN);
        let shift = if is_syn { 0 } else { self.shift(0) };
        let scaled = Segment { window: segment.window >> shift, ..*segment };
        let mut header = TcpHeader::from_segment(&scaled, self.own.port(), self.peer.port());
        if is_syn {
            let headers = if self.own.is_ipv6() { 60 } else { 40 };
            header.options.mss = Some((self.plan.mtu - headers) as u16);
            header.options.window_scale = self.scales[0];
        }
        let first = u64::from(segment.seq.wrapping_sub(self.isn).wrapping_sub(1));
        let payload: Vec<u8> =
            (first..first + u64::from(segment.len)).map(|at| byte(self.own, at)).collect();
        let mut ip = IpHeader::new(addresses(self.own, self.peer));
        ip.traffic_class = self.plan.traffic_class;
        let mut bytes = Vec::new();
        self.header.write(&mut bytes);
        write_tcp(&mut bytes, &ip, &header, Payload::Bytes(&payload)).unwrap();
        bytes
    }
}

fn addresses(source: SocketAddr, destination: SocketAddr) -> Addresses {
    Addresses::new(source.ip(), destination.ip()).unwrap()
}

/// A byte of the stream of a host.
pub(super) fn byte(sender: SocketAddr, position: u64) -> u8 {
    (position ^ position >> 8 ^ u64::from(sender.port())) as u8
}
