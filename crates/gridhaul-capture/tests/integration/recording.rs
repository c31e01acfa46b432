//! Captures of conversations that are written packet by packet.

use std::io::Cursor;
use std::net::IpAddr;

use gridhaul_capture::{CaptureFile, Explanation, explain};
use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{Addresses, IpHeader, Payload, TcpHeader, write_tcp};

/// A packet of a conversation between a client and a server.
#[derive(Debug, Clone)]
pub(crate) struct Packet {
    /// Time in microseconds.
    pub(crate) at: u64,
    /// Number of the network device.
    pub(crate) device: u32,
    pub(crate) bytes: Vec<u8>,
}

/// Segments of one connection, in their order.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) packets: Vec<Packet>,
    ports: [u16; 2],
    hosts: [IpAddr; 2],
}

/// Initial sequence numbers of client and server.
pub(crate) const NUMBERS: [u32; 2] = [u32::MAX - 5_000, 899];

impl Conversation {
    pub(crate) fn new() -> Self {
        let hosts = [[10, 0, 0, 1], [10, 0, 0, 2]].map(IpAddr::from);
        Self { packets: Vec::new(), ports: [40_000, 502], hosts }
    }

    /// A segment of the client (0) or of the server (1), with numbers that count from SYN.
    pub(crate) fn send(&mut self, at: u64, from: usize, segment: Segment) {
        let (to, Segment { seq, ack, flags, length }) = (1 - from, segment);
        let header = TcpHeader {
            source_port: self.ports[from],
            destination_port: self.ports[to],
            seq: NUMBERS[from].wrapping_add(seq),
            ack: if flags == Flags::SYN { 0 } else { NUMBERS[to].wrapping_add(ack) },
            flags,
            window: 60_000,
            ..TcpHeader::default()
        };
        let addresses = Addresses::new(self.hosts[from], self.hosts[to]).unwrap();
        let (mut bytes, payload) = (Vec::new(), vec![1; length]);
        write_tcp(&mut bytes, &IpHeader::new(addresses), &header, Payload::Bytes(&payload))
            .unwrap();
        self.packets.push(Packet { at, device: 2, bytes });
    }

    /// The handshake, with a round trip of 20 ms.
    pub(crate) fn open(&mut self) {
        self.send(0, 0, Segment { flags: Flags::SYN, ..Segment::default() });
        let flags = Flags::SYN.with(Flags::ACK);
        self.send(20_000, 1, Segment { flags, ack: 1, ..Segment::default() });
        self.send(20_010, 0, Segment { seq: 1, ack: 1, ..Segment::default() });
    }

    /// Bursts of four segments of 1,000 bytes and their acknowledgements, each 25 ms.
    pub(crate) fn transfer(&mut self, begin: u64, bursts: u32) {
        for burst in 0..bursts {
            let at = begin + 25_000 * u64::from(burst);
            let first = 1 + 4_000 * burst;
            for index in 0..4 {
                let seq = first + 1_000 * index;
                let time = at + 10 * u64::from(index);
                self.send(time, 0, Segment { seq, ack: 1, length: 1_000, ..Segment::default() });
            }
            for index in 1..=2 {
                let ack = first + 2_000 * index;
                let time = at + 20_000 + 1_000 * u64::from(index);
                self.send(time, 1, Segment { seq: 1, ack, ..Segment::default() });
            }
        }
    }
}

/// A segment with numbers that count from SYN.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: Flags,
    pub(crate) length: usize,
}

impl Default for Segment {
    fn default() -> Self {
        Self { seq: 0, ack: 0, flags: Flags::ACK, length: 0 }
    }
}

/// A pcap file of all devices (Linux cooked capture, version 2).
pub(crate) fn pcap(packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 276] {
        file.extend(u32::to_le_bytes(word));
    }
    for Packet { at, device, bytes } in packets {
        let length = 20 + bytes.len() as u32;
        for word in [(at / 1_000_000) as u32, (at % 1_000_000) as u32, length, length] {
            file.extend(word.to_le_bytes());
        }
        file.extend([0x08, 0, 0, 0]);
        file.extend(device.to_be_bytes());
        file.extend([0; 12]);
        file.extend(bytes);
    }
    file
}

/// A section of a pcapng file with one device, whose packets have no link layer.
pub(crate) fn pcapng(device: &str, packets: &[Packet]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut block = |kind: u32, body: Vec<u8>| {
        let mut body = body;
        body.resize(body.len().next_multiple_of(4), 0);
        let length = (12 + body.len() as u32).to_le_bytes();
        file.extend([&kind.to_le_bytes()[..], &length, &body, &length].concat());
    };
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    block(0x0a0d_0d0a, words(&[0x1a2b_3c4d, 1, u32::MAX, u32::MAX]));
    let mut name = device.as_bytes().to_vec();
    name.resize(device.len().next_multiple_of(4), 0);
    let mut interface: Vec<u8> = words(&[101, 262_144, 2 | (device.len() as u32) << 16]);
    interface.extend(name);
    interface.extend([0; 4]);
    block(1, interface);
    for Packet { at, bytes, .. } in packets {
        let length = bytes.len() as u32;
        let mut body: Vec<u8> = words(&[0, (at >> 32) as u32, *at as u32, length, length]);
        body.extend(bytes);
        block(6, body);
    }
    file
}

/// Explains captures of these names.
pub(crate) fn explained(files: Vec<(&str, Vec<u8>)>) -> Explanation {
    let files =
        files.into_iter().map(|(name, bytes)| CaptureFile::new(name, Cursor::new(bytes))).collect();
    explain(files, &mut |_| true).unwrap()
}
