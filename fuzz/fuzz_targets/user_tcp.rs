//! Arbitrary packets for the collector's TCP in user space, with calls of its application at any
//! time: the machine never panics, stays within its limits, sends valid packets only, and never
//! acknowledges a byte that the application has not confirmed.

#![no_main]

use std::collections::BTreeMap;

use gridhaul_core::tcp::{Flags, SackBlocks, Segment};
use gridhaul_core::wire::{Addresses, IpHeader, IpPacket, Payload, TcpHeader, write_tcp};
use gridhaul_relay::collector::user_tcp::{
    ConnectionId, ReadResult, UserTcp, UserTcpEvent, UserTcpSettings,
};
use gridhaul_scenario::units::{Duration, Instant};
use libfuzzer_sys::fuzz_target;

const CONNECTIONS_MAX: usize = 6;
const HALF_OPEN_MAX: usize = 3;

/// Packets for one event: the whole output of each connection in the smallest segments.
const PACKETS_MAX: usize = CONNECTIONS_MAX * 64 * 1024 / 36 + 256;

/// Positions of a connection.
#[derive(Debug, Default)]
struct Stream {
    read: u64,
    confirmed: u64,
}

struct World {
    tcp: UserTcp,
    now: Instant,
    streams: BTreeMap<ConnectionId, Stream>,
    /// Sequence and acknowledgement numbers of the last packet to each port: packets with numbers
    /// near them pass the first checks.
    last: BTreeMap<u16, (u32, u32)>,
    space: u64,
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input(bytes);
    let mut world = World {
        tcp: UserTcp::new(UserTcpSettings {
            listeners: vec![([192, 0, 2, 10], 4_059).into()],
            mtu: 1_500,
            receive_window: 8_000,
            connections_max: CONNECTIONS_MAX,
            half_open_max: HALF_OPEN_MAX,
            receive_only: false,
            secret: [1, 2],
        }),
        now: Instant::from_nanos(1_000_000),
        streams: BTreeMap::new(),
        last: BTreeMap::new(),
        space: 20_000,
    };
    while world.step(&mut input).is_some() {
        world.check();
    }
});

impl World {
    fn step(&mut self, input: &mut Input<'_>) -> Option<()> {
        match input.byte()? % 16 {
            0 => {
                let length = usize::from(input.byte()?).min(input.0.len());
                let (packet, rest) = input.0.split_at(length);
                input.0 = rest;
                self.tcp.handle_packet(self.now, &packet.to_vec().into());
            }
            1..=8 => {
                let packet = self.packet(input)?;
                self.tcp.handle_packet(self.now, &packet.into());
            }
            9 => self.advance(input)?,
            10 => self.space = u64::from(input.short()?),
            action => {
                let row = usize::from(input.byte()?);
                let ids: Vec<ConnectionId> = self.streams.keys().copied().collect();
                if !ids.is_empty() {
                    self.act(action, ids[row % ids.len()], input)?;
                }
            }
        }
        Some(())
    }

    fn act(&mut self, action: u8, id: ConnectionId, input: &mut Input<'_>) -> Option<()> {
        let stream = self.streams.get_mut(&id)?;
        match action {
            11 | 12 => {
                let mut buffer = vec![0; usize::from(input.byte()?) * 40];
                match self.tcp.read(id, &mut buffer) {
                    ReadResult::Data(length) => stream.read += length as u64,
                    ReadResult::Nothing | ReadResult::End | ReadResult::Failed => {}
                }
            }
            13 => {
                let position = stream.confirmed + u64::from(input.short()?);
                stream.confirmed = position.min(stream.read);
                self.tcp.confirm(id, stream.confirmed);
                if input.byte()? == 0 {
                    stream.confirmed = stream.read;
                    self.tcp.confirm_end(id);
                }
            }
            14 => {
                let bytes = vec![7; usize::from(input.byte()?) * 300];
                self.tcp.write(id, &bytes);
            }
            _ => match input.byte()? % 3 {
                0 => self.tcp.finish(id),
                1 => self.tcp.reset(id),
                _ => {
                    self.tcp.release(id);
                    self.streams.remove(&id);
                }
            },
        }
        Some(())
    }

    fn advance(&mut self, input: &mut Input<'_>) -> Option<()> {
        let scale =
            [10_000, 1_000_000, 100_000_000, 10_000_000_000][usize::from(input.byte()? & 3)];
        let end = self.now + Duration::from_nanos(u64::from(input.byte()?) * scale);
        for _ in 0..20 {
            let next = self.tcp.next_deadline();
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            self.tcp.handle_timeout(self.now);
            self.drain();
            assert!(self.tcp.next_deadline() > self.now, "the deadline does not advance");
        }
        self.now = end;
        Some(())
    }

    /// A packet with correct checksums.
    fn packet(&self, input: &mut Input<'_>) -> Option<Vec<u8>> {
        let port = 1_024 + u16::from(input.byte()? % 8);
        let (_, ack) = self.last.get(&port).copied().unwrap_or_default();
        let bits = input.byte()?;
        let mut flags = Flags::from_bits(bits & 0x1f);
        if bits & 0x80 != 0 {
            flags = flags.with(Flags::ACK);
        }
        let shape = input.byte()?;
        let mut near =
            |number: u32| Some(number.wrapping_add(input.short()?).wrapping_sub(1 << 15));
        let seq = if shape & 1 == 0 { ack } else { near(ack)? };
        let ack = if shape & 2 == 0 { seq_or(seq, self.last.get(&port)) } else { near(seq)? };
        let mut sack = SackBlocks::default();
        if shape & 4 != 0 {
            sack.push(near(ack)?, near(ack)?);
        }
        let payload = if shape & 8 == 0 { 0 } else { usize::from(input.byte()?) * 12 };
        let segment = Segment {
            seq,
            ack,
            flags,
            window: input.short()?,
            sack,
            sack_permitted: shape & 16 != 0,
            timestamps: if shape & 32 == 0 { None } else { Some((input.short()?, 0)) },
            ..Segment::default()
        };
        let mut header = TcpHeader::from_segment(&segment, port, 4_059);
        if flags.has(Flags::SYN) {
            header.options.mss = (shape & 64 != 0).then_some(u16::from(input.byte()?) * 8);
            header.options.window_scale = (shape & 128 != 0).then_some(input.byte()?);
        }
        let addresses = Addresses::new([192, 0, 2, 99].into(), [192, 0, 2, 10].into()).ok()?;
        let mut packet = Vec::new();
        let data = vec![9; payload];
        write_tcp(&mut packet, &IpHeader::new(addresses), &header, Payload::Bytes(&data)).ok()?;
        Some(packet)
    }

    fn check(&mut self) {
        while let Some(event) = self.tcp.poll_event() {
            if let UserTcpEvent::Opened { connection, .. } = event {
                self.streams.insert(connection, Stream::default());
            }
        }
        self.drain();
        assert!(self.tcp.len() <= CONNECTIONS_MAX && self.tcp.half_open() <= HALF_OPEN_MAX);
        for (id, stream) in &self.streams {
            if let Some(acknowledged) = self.tcp.acknowledged(*id) {
                assert!(acknowledged <= stream.confirmed, "{id:?}: {acknowledged}, {stream:?}");
            }
        }
    }

    fn drain(&mut self) {
        let (streams, space) = (&self.streams, self.space);
        let limit = |id: ConnectionId| {
            space.saturating_sub(streams.get(&id).map_or(0, |stream| stream.read))
        };
        self.tcp.open_windows(&limit);
        let mut packet = Vec::new();
        let mut count = 0;
        while self.tcp.poll_packet(self.now, &limit, &mut packet) {
            count += 1;
            assert!(count <= PACKETS_MAX, "{count} packets for one event");
            let ip = IpPacket::parse(&packet).expect("a packet that is sent is valid");
            ip.verify().expect("its checksums are correct");
            let word = |at: usize| u32::from_be_bytes(packet[at..at + 4].try_into().expect("four"));
            let port = u16::from_be_bytes([packet[22], packet[23]]);
            self.last.insert(port, (word(24), word(28)));
        }
    }
}

/// The acknowledgement number that the last packet to a port asks for.
fn seq_or(seq: u32, last: Option<&(u32, u32)>) -> u32 {
    last.map_or(seq, |(seq, _)| seq.wrapping_add(1))
}

/// Bytes that are interpreted as steps.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn short(&mut self) -> Option<u32> {
        Some(u32::from(u16::from_le_bytes([self.byte()?, self.byte()?])))
    }
}
