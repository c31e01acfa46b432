//! Arbitrary frames from both interfaces of a bridge, at any time: the engine never panics, stays
//! within its memory, sends a bounded number of well-formed frames, and its deadlines advance.

#![no_main]

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{
    Addresses, EtherType, EthernetFrame, EthernetHeader, IpHeader, IpPacket, Payload, TcpHeader,
    TcpOptions, UnknownOptions, write_tcp,
};
use gridhaul_relay::packet::{BridgePort, ChecksumState, Engine, EngineSettings, Frame, Rule};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::units::{Bytes, Duration, Instant};
use libfuzzer_sys::fuzz_target;

const RULES: &str = "name = \"fuzz\"\n[bridge]\ninterfaces = [\"a\", \"b\"]\nfail_open = false\n\
    [bridge.rule.one]\nmode = \"reflect\"\nports = [1]\nbuffer = \"4 kB\"\n\
    [bridge.rule.two]\nmode = \"spoof\"\nports = [2]\nbuffer = \"4 kB\"\n\
    [bridge.rule.three]\nmode = \"snoop\"\nports = [3]\ntoward = \"a\"\nbuffer = \"4 kB\"\n\
    [bridge.rule.four]\nmode = \"ack\"\nports = [4]\ntoward = \"b\"\n\
    [bridge.rule.five]\nmode = \"split\"\nports = [5]\nbuffer = \"4 kB\"\n";

/// Largest memory: that of the configuration, and one frame.
const MEMORY: u64 = 20_000;
const FRAME: usize = 70_000;

/// Largest number of frames for one event: all buffers in segments of one byte.
const OUTGOING_MAX: usize = 70_000;

fuzz_target!(|bytes: &[u8]| {
    let config = RelayConfig::from_toml(RULES, "fuzz").expect("the configuration is valid");
    let config = config.bridge.expect("the configuration has a bridge");
    let mut engine = Engine::new(
        EngineSettings {
            rules: Rule::all(&config),
            connections: 3,
            memory: Bytes::new(MEMORY),
            idle_timeout: Duration::from_secs(300),
            mtus: [1_500, 576],
            detects_losses: true,
        },
        || 0,
    );
    let (mut input, mut now) = (Input(bytes), Instant::ZERO);
    while let Some((wait, from, frame, kind)) = input.step() {
        let at = now + wait;
        for _ in 0..3 {
            if engine.next_deadline() <= at {
                now = now.max(engine.next_deadline());
                engine.handle_timeout(now);
                check(&mut engine);
                assert!(engine.next_deadline() > now, "the deadline does not advance");
            }
        }
        now = at;
        let checksum = match kind & 3 {
            0 => ChecksumState::Pending,
            1 => ChecksumState::Verified,
            _ => ChecksumState::Unverified,
        };
        let segment_size = (kind & 12 == 0).then_some(u16::from(kind >> 4) * 50);
        let frame = Frame { checksum, segment_size, ..Frame::new(&frame) };
        engine.handle_frame(now, from, &frame);
        check(&mut engine);
    }
    engine.stop(now);
    check(&mut engine);
    assert_eq!((engine.totals().connections, engine.totals().memory), (0, 0));
});

fn check(engine: &mut Engine) {
    let totals = engine.totals();
    assert!(totals.memory as u64 <= MEMORY + FRAME as u64 && totals.connections <= 3, "{totals:?}");
    let mut count = 0;
    for port in BridgePort::BOTH {
        for frame in engine.outgoing().over(port).iter() {
            count += 1;
            let frame = EthernetFrame::parse(frame.bytes).expect("an Ethernet header");
            IpPacket::parse(frame.payload).expect("an IP header");
        }
    }
    assert!(count <= OUTGOING_MAX, "{count} frames for one event");
    engine.outgoing().clear();
}

/// Bytes that are interpreted as frames.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn short(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte()?, self.byte()?]))
    }

    fn step(&mut self) -> Option<(Duration, BridgePort, Vec<u8>, u8)> {
        let shape = self.byte()?;
        let resolution = [10_000, 1_000_000, 100_000_000, 10_000_000_000][usize::from(shape & 3)];
        let wait = Duration::from_nanos(u64::from(self.byte()?) * resolution);
        let from = if shape & 4 == 0 { BridgePort::First } else { BridgePort::Second };
        let kind = self.byte()?;
        let mut frame = match shape & 0xe0 {
            0 => self.raw()?,
            _ => self.segment(from, shape)?,
        };
        if shape & 0x18 == 0x18 {
            // A byte anywhere has another value.
            let (at, value) = (usize::from(self.short()?), self.byte()?);
            let length = frame.len().max(1);
            if let Some(place) = frame.get_mut(at % length) {
                *place = value;
            }
        }
        Some((wait, from, frame, kind))
    }

    fn raw(&mut self) -> Option<Vec<u8>> {
        let length = usize::from(self.byte()?).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(bytes.to_vec())
    }

    /// A segment of one of few connections, with numbers that are often close to 0.
    fn segment(&mut self, from: BridgePort, shape: u8) -> Option<Vec<u8>> {
        let (service, bits) = (self.byte()?, self.byte()?);
        let is_server = (from == BridgePort::Second) != (service & 8 != 0);
        let (client_port, server_port) = (u16::from(service >> 6), u16::from(service & 7));
        let hosts = [[10, 0, 0, 1], [10, 0, 0, 2]];
        let [source, destination] = if is_server { [hosts[1], hosts[0]] } else { hosts };
        let addresses = Addresses::V4 { source: source.into(), destination: destination.into() };
        let mut flags = Flags::NONE;
        for flag in [Flags::FIN, Flags::SYN, Flags::RST, Flags::ACK, Flags::URG, Flags::ECE] {
            if bits & flag.bits() != 0 {
                flags = flags.with(flag);
            }
        }
        let number = |low: u16| u32::from(low).wrapping_sub(100);
        let options = self.options(shape)?;
        let header = TcpHeader {
            source_port: if is_server { server_port } else { client_port },
            destination_port: if is_server { client_port } else { server_port },
            seq: number(self.short()?),
            ack: number(self.short()?),
            flags,
            window: self.short()?,
            urgent: 0,
            options: TcpOptions { unknown: UnknownOptions::default(), ..options },
        };
        let length = if bits & 0x08 == 0 { 0 } else { usize::from(self.short()?) % 9_000 };
        let mut frame = Vec::new();
        let ether_type = EtherType::IPV4;
        EthernetHeader { destination: [2; 6], source: [3; 6], tags: [None; 2], ether_type }
            .write(&mut frame);
        let ip = IpHeader::new(addresses);
        write_tcp(&mut frame, &ip, &header, Payload::Bytes(&vec![7; length])).ok()?;
        Some(frame)
    }

    fn options(&mut self, shape: u8) -> Option<TcpOptions<'static>> {
        let mut options = TcpOptions::default();
        if shape & 0x80 != 0 {
            options.mss = Some(self.short()?);
            options.window_scale = Some(self.byte()?);
            options.sack_permitted = true;
        }
        if shape & 0x40 != 0 {
            let low = |number: u16| u32::from(number).wrapping_sub(100);
            options.sack.push(low(self.short()?), low(self.short()?));
        }
        Some(options)
    }
}
