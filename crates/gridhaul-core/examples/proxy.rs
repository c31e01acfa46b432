//! A reflecting proxy (RFC 3135) between two UDP sockets, which carry IP packets as tunnels do:
//! ```text
//! client ──── left  proxy  right ──── server      (the second hop drops packets)
//! ```
//! The proxy acknowledges the client's data and retransmits it over the second hop by itself. It
//! handles segments only; this program stores their payload and converts between segments and
//! packets.
//!
//! `cargo run --release -p gridhaul-core --example proxy`

#![expect(clippy::disallowed_methods, reason = "sockets need the time of the machine")]

use std::error::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use std::{thread, time};

use bytes::Bytes;
use gridhaul_core::pep::{MssLimit, Origin, Outgoing, Payload as Store, Proxy, Reflect, Side};
use gridhaul_core::tcp::{Connection, Flags, Segment, StackParams};
use gridhaul_core::wire::{
    Addresses, IpHeader, IpPacket, Payload, TcpHeader, Transport, write_tcp,
};
use gridhaul_scenario::scenario::{Profile, Stack};
use gridhaul_scenario::units::{Bytes as Size, Instant, WindowSize};

/// Bytes that the client sends, the buffer of the proxy, and the period of packets that the second
/// hop drops.
const SIZE: u64 = 300_000;
const BUFFER: usize = 100_000;
const LOSS_PERIOD: u32 = 25;
/// A transfer takes about a second.
const TIME_LIMIT: Instant = Instant::from_nanos(60_000_000_000);

const ISNS: [u32; 2] = [1_000, 2_000];
const PORTS: [u16; 2] = [40_000, 7];
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    // A window of at most 65,535 bytes needs no scaling.
    let stack = Stack {
        profile: Profile::Linux,
        receive_window: Some(WindowSize::Bytes(Size::new(60_000))),
        ..Stack::default()
    };
    let params = Arc::new(StackParams::resolve(&stack));
    let ([client, left], [right, server]) = (tunnel()?, tunnel()?);
    let mut client = Host {
        side: Side::Client,
        connection: Connection::connect(Arc::clone(&params), ISNS[0]),
        socket: client,
    };
    let mut server = Host {
        side: Side::Server,
        connection: Connection::listen(Arc::clone(&params), ISNS[1]),
        socket: server,
    };
    client.connection.write(SIZE);
    let hosts = MssLimit::of_hosts([params.mss; 2]);
    let reflect = Reflect::new(params, hosts, Size::new(BUFFER as u64));
    let mut proxy = PacketProxy::new(reflect, [left, right]);

    let start = time::Instant::now();
    while server.connection.receiver().delivered() < SIZE || proxy.proxy.bytes_at_risk() > 0 {
        let now = Instant::from_nanos(start.elapsed().as_nanos() as u64);
        if now > TIME_LIMIT {
            return Err("the transfer has not ended in time".into());
        }
        client.serve(now)?;
        proxy.serve(now)?;
        server.serve(now)?;
        // A program for more than an example waits with `poll(2)` until the next deadline.
        thread::sleep(Duration::from_micros(100));
    }
    let statistics = proxy.proxy.statistics();
    println!(
        "{SIZE} bytes in {:.2} s; the second hop dropped {} packets, the proxy retransmitted {}",
        start.elapsed().as_secs_f64(),
        proxy.dropped,
        statistics.retransmissions[Side::Server.index()]
    );
    let by_client = client.connection.sender().map_or(0, |sender| sender.stats().retransmissions);
    println!("the client retransmitted {by_client}");
    Ok(())
}

/// Two sockets that are connected with each other.
fn tunnel() -> std::io::Result<[UdpSocket; 2]> {
    let sockets = [UdpSocket::bind("127.0.0.1:0")?, UdpSocket::bind("127.0.0.1:0")?];
    for (own, peer) in [(0, 1), (1, 0)] {
        sockets[own].connect(sockets[peer].local_addr()?)?;
        sockets[own].set_nonblocking(true)?;
    }
    Ok(sockets)
}

/// A packet that has arrived, if any.
fn receive(socket: &UdpSocket) -> std::io::Result<Option<Bytes>> {
    let mut buffer = [0; 2048];
    match socket.recv(&mut buffer) {
        Ok(length) => Ok(Some(Bytes::copy_from_slice(&buffer[..length]))),
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// The segment and the payload of a packet.
fn parse(packet: &[u8]) -> Result<(Segment, &[u8]), Box<dyn Error>> {
    let ip = IpPacket::parse(packet)?;
    ip.verify()?;
    match ip.transport()? {
        Transport::Tcp(tcp) => Ok((tcp.segment(ip.header_len())?, tcp.payload())),
        _ => Err("not a TCP segment".into()),
    }
}

/// The packet of a segment that `from` sends.
fn packet_of(from: Side, segment: &Segment, data: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let (own, peer) = (from.index(), from.other().index());
    let addresses = Addresses::V4 { source: ADDRESSES[own], destination: ADDRESSES[peer] };
    let header = TcpHeader::from_segment(segment, PORTS[own], PORTS[peer]);
    let mut packet = Vec::new();
    write_tcp(&mut packet, &IpHeader::new(addresses), &header, Payload::Bytes(data))?;
    Ok(packet)
}

/// Sequence number of the first payload byte of a segment.
fn first_of(segment: &Segment) -> u32 {
    segment.seq.wrapping_add(u32::from(segment.flags.has(Flags::SYN)))
}

/// The bytes that the client sends, from an offset on.
fn pattern(offset: u32, length: u32) -> Vec<u8> {
    (offset..offset + length).map(|position| (position % 251) as u8).collect()
}

/// One end of the connection.
struct Host {
    side: Side,
    connection: Connection,
    socket: UdpSocket,
}

impl Host {
    fn serve(&mut self, now: Instant) -> Result<(), Box<dyn Error>> {
        while let Some(packet) = receive(&self.socket)? {
            let (segment, data) = parse(&packet)?;
            if segment.len > 0 {
                let offset = segment.seq - ISNS[self.side.other().index()] - 1;
                assert_eq!(data, pattern(offset, segment.len), "the payload has arrived unchanged");
            }
            self.connection.handle_segment(now, &segment);
        }
        if self.connection.next_deadline() <= now {
            self.connection.handle_timeout(now);
        }
        while let Some(segment) = self.connection.poll_transmit(now) {
            let offset = first_of(&segment) - ISNS[self.side.index()] - 1;
            let data = pattern(offset, segment.len);
            self.socket.send(&packet_of(self.side, &segment, &data)?)?;
        }
        Ok(())
    }
}

/// A proxy with its sockets and the payload that it has accepted.
struct PacketProxy {
    proxy: Reflect,
    sockets: [UdpSocket; 2],
    stores: [Store; 2],
    /// Packets with data to the server, and those of them that were dropped.
    sent: u32,
    dropped: u32,
}

impl PacketProxy {
    fn new(proxy: Reflect, sockets: [UdpSocket; 2]) -> Self {
        let stores = [Store::new(BUFFER), Store::new(BUFFER)];
        Self { proxy, sockets, stores, sent: 0, dropped: 0 }
    }

    fn serve(&mut self, now: Instant) -> Result<(), Box<dyn Error>> {
        for from in Side::BOTH {
            while let Some(packet) = receive(&self.sockets[from.index()])? {
                let (segment, data) = parse(&packet)?;
                // The proxy acknowledges these bytes, so they must be stored.
                if let Some((seq, length)) = self.proxy.accepts(from, &segment) {
                    let start = seq.wrapping_sub(first_of(&segment)) as usize;
                    let accepted = packet.slice_ref(&data[start..start + length as usize]);
                    self.stores[from.index()].insert(seq, &accepted);
                }
                self.proxy.handle_segment(now, from, &segment);
                self.transmit(now, Some(&packet))?;
            }
        }
        if self.proxy.next_deadline() <= now {
            self.proxy.handle_timeout(now);
            self.transmit(now, None)?;
        }
        Ok(())
    }

    /// Sends all segments of the proxy; `incoming` is the packet that it has just handled.
    fn transmit(&mut self, now: Instant, incoming: Option<&Bytes>) -> Result<(), Box<dyn Error>> {
        while let Some(Outgoing { to, segment, origin }) = self.proxy.poll_transmit(now) {
            let from = to.other();
            let (first, length) = (first_of(&segment), segment.len as usize);
            let packet = match (origin, incoming) {
                (Origin::Forwarded, Some(packet)) => packet.to_vec(),
                (Origin::Rewritten, Some(incoming)) => {
                    let (header, data) = parse(incoming)?;
                    let start = first.wrapping_sub(first_of(&header)) as usize;
                    packet_of(from, &segment, &data[start..start + length])?
                }
                _ => {
                    let store = &self.stores[from.index()];
                    let slices = store.read(first, length).into_iter().flatten();
                    let data: Vec<u8> = slices.flatten().copied().collect();
                    packet_of(from, &segment, &data[..length])?
                }
            };
            if to == Side::Server && length > 0 {
                self.sent += 1;
                if self.sent.is_multiple_of(LOSS_PERIOD) {
                    self.dropped += 1;
                    continue;
                }
            }
            self.sockets[to.index()].send(&packet)?;
        }
        for from in Side::BOTH {
            // Data that the next hop has acknowledged is not retransmitted any more.
            let released = self.proxy.buffer_status(from).released as u32;
            let first = ISNS[from.index()] + 1;
            self.stores[from.index()].release_to(first.wrapping_add(released));
        }
        Ok(())
    }
}
