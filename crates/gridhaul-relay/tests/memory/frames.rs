//! Frames of many connections, each of which carries data in one direction and is idle then.

use std::net::Ipv4Addr;

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{
    Addresses, EtherType, EthernetHeader, IpHeader, Payload, TcpHeader, TcpOptions, write_tcp,
};

/// A segment of each connection.
pub(crate) struct Step {
    /// 0 for the client, 1 for the server.
    pub(crate) host: usize,
    header: TcpHeader<'static>,
    payload: &'static [u8],
}

const DATA: [u8; 200] = [7; 200];

/// Initial sequence numbers of client and server.
const ISNS: [u32; 2] = [1_000, 5_000];

/// SYN, SYN-ACK, acknowledgement, data and its acknowledgement.
pub(crate) fn steps() -> [Step; 5] {
    let [client, server] = ISNS.map(|isn| isn + 1);
    let plain = TcpHeader { flags: Flags::ACK, window: 60_000, ..TcpHeader::default() };
    let options = TcpOptions {
        mss: Some(1_460),
        window_scale: Some(7),
        sack_permitted: true,
        ..TcpOptions::default()
    };
    let syn = TcpHeader { seq: ISNS[0], flags: Flags::SYN, options, ..plain };
    let flags = Flags::SYN.with(Flags::ACK);
    let syn_ack = TcpHeader { seq: ISNS[1], ack: client, flags, ..syn };
    let ack = TcpHeader { seq: client, ack: server, ..plain };
    let received = client + DATA.len() as u32;
    let answer = TcpHeader { seq: server, ack: received, ..plain };
    let step = |host, header, payload| Step { host, header, payload };
    [
        step(0, syn, &[]),
        step(1, syn_ack, &[]),
        step(0, ack, &[]),
        step(0, ack, &DATA),
        step(1, answer, &[]),
    ]
}

/// Segments of a bulk transfer, and their length.
const SEGMENTS: u32 = 45;
const SEGMENT: &[u8] = &[9; 1_400];

/// Ends of the data that the server acknowledges, in bytes: not more than a proxy has sent by then,
/// which begins with ten segments and sends at least three more for two that are acknowledged.
const ACKNOWLEDGED: [u32; 3] = [14_000, 40_000, SEGMENTS * SEGMENT.len() as u32];

/// Data of the server after [`steps`], and its acknowledgement.
pub(crate) fn reply() -> [Step; 2] {
    let plain = TcpHeader { flags: Flags::ACK, window: 60_000, ..TcpHeader::default() };
    let (client, server) = (ISNS[0] + 1 + DATA.len() as u32, ISNS[1] + 1);
    let data = TcpHeader { seq: server, ack: client, ..plain };
    let answer = TcpHeader { seq: client, ack: server + DATA.len() as u32, ..plain };
    [Step { host: 1, header: data, payload: &DATA }, Step { host: 0, header: answer, payload: &[] }]
}

/// A bulk transfer after [`reply`]: all segments of the client, and three acknowledgements.
pub(crate) fn transfer() -> impl Iterator<Item = Step> {
    let plain = TcpHeader { flags: Flags::ACK, window: 60_000, ..TcpHeader::default() };
    let [client, server] = ISNS.map(|isn| isn + 1 + DATA.len() as u32);
    let data = (0..SEGMENTS).map(move |index| {
        let seq = client + index * SEGMENT.len() as u32;
        Step { host: 0, header: TcpHeader { seq, ack: server, ..plain }, payload: SEGMENT }
    });
    let answers = ACKNOWLEDGED.map(|end| {
        let header = TcpHeader { seq: server, ack: client + end, ..plain };
        Step { host: 1, header, payload: &[] }
    });
    data.chain(answers)
}

impl Step {
    /// The frame of the connection with this number.
    pub(crate) fn frame(&self, number: u32) -> Vec<u8> {
        let client = Ipv4Addr::from(FIRST_CLIENT + number / PORTS);
        let port = (10_000 + number % PORTS) as u16;
        let mut ends = [(client, port, [2, 0, 0, 0, 1, 1]), (SERVER, 7_000, [2, 0, 0, 0, 1, 2])];
        ends.rotate_left(self.host);
        let [(source, source_port, own), (destination, destination_port, peer)] = ends;
        let mut frame = Vec::new();
        let ether_type = EtherType::IPV4;
        EthernetHeader { destination: peer, source: own, tags: [None; 2], ether_type }
            .write(&mut frame);
        let ip = IpHeader::new(Addresses::V4 { source, destination });
        let header = TcpHeader { source_port, destination_port, ..self.header };
        write_tcp(&mut frame, &ip, &header, Payload::Bytes(self.payload)).expect("a short packet");
        frame
    }
}

/// 10.80.0.1, and the number of ports of each client.
const FIRST_CLIENT: u32 = 0x0a50_0001;
const PORTS: u32 = 50_000;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 81, 0, 1);
