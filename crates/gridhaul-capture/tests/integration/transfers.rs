//! Transfers packet by packet, as public captures have them.

use std::io::Cursor;

use gridhaul_capture::{CaptureFile, ConnectionExplanation, Limit, Position, explain};
use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{Addresses, IpHeader, Payload, TcpHeader, write_tcp};

/// A capture file (pcap, raw IP) of a client and a server.
struct Capture {
    file: Vec<u8>,
    /// Next sequence numbers of the client and the server.
    next: [u32; 2],
    now_us: u32,
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

impl Capture {
    fn new() -> Self {
        let header = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 262_144, 101].map(u32::to_le_bytes);
        Self { file: header.concat(), next: [100, 500], now_us: 0 }
    }

    /// A connection whose ends offer the same maximum segment size, and the time until SYN-ACK.
    fn opened(mss: u16, round_trip_us: u32) -> Self {
        let mut capture = Self::new();
        capture.syn(CLIENT, mss);
        capture.wait(round_trip_us);
        capture.syn(SERVER, mss);
        capture.segment(CLIENT, 60_000, 0);
        capture
    }

    fn wait(&mut self, micros: u32) {
        self.now_us += micros;
    }

    /// A SYN with the option of the maximum segment size.
    fn syn(&mut self, sender: usize, mss: u16) {
        let flags = if sender == CLIENT { Flags::SYN } else { Flags::SYN.with(Flags::ACK) };
        let mut header = self.header(sender, flags, 60_000);
        header.options.mss = Some(mss);
        self.write(sender, &header, 0);
        self.next[sender] += 1;
    }

    /// A segment with this window and payload.
    fn segment(&mut self, sender: usize, window: u16, payload: usize) {
        let header = self.header(sender, Flags::ACK, window);
        self.write(sender, &header, payload);
        self.next[sender] += payload as u32;
    }

    /// Segments of 1,000 B of the client, each acknowledged after 50 ms.
    fn acknowledged_segments(&mut self, number: u32) {
        for _ in 0..number {
            self.segment(CLIENT, 60_000, 1_000);
            self.wait(50_000);
            self.segment(SERVER, 60_000, 0);
        }
    }

    fn header(&self, sender: usize, flags: Flags, window: u16) -> TcpHeader<'static> {
        let ports = if sender == CLIENT { [40_000, 80] } else { [80, 40_000] };
        let ack = if flags == Flags::SYN { 0 } else { self.next[1 - sender] };
        TcpHeader {
            source_port: ports[0],
            destination_port: ports[1],
            seq: self.next[sender],
            ack,
            flags,
            window,
            ..TcpHeader::default()
        }
    }

    fn write(&mut self, sender: usize, header: &TcpHeader<'_>, payload: usize) {
        let hosts = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
        let addresses = Addresses::new(hosts[sender], hosts[1 - sender]).unwrap();
        let mut packet = Vec::new();
        let payload = vec![1; payload];
        let ip = IpHeader::new(addresses);
        write_tcp(&mut packet, &ip, header, Payload::Bytes(&payload)).unwrap();
        let length = packet.len() as u32;
        let (seconds, micros) = (self.now_us / 1_000_000, self.now_us % 1_000_000);
        let record = [seconds, micros, length, length].map(u32::to_le_bytes);
        self.file.extend(record.concat());
        self.file.extend(packet);
    }

    fn explained(self) -> ConnectionExplanation {
        let file = CaptureFile::new("test.pcap", Cursor::new(self.file));
        let mut explanation = explain(vec![file], &mut |_| true).unwrap();
        assert_eq!(explanation.connections.len(), 1);
        explanation.connections.swap_remove(0)
    }
}

/// A server behind a tunnel sends segments of its own MTU, which is smaller than the client's; a
/// full segment is no end of a message.
#[test]
fn a_segment_of_the_senders_own_mtu_is_full() {
    let mut capture = Capture::new();
    capture.syn(CLIENT, 1_460);
    capture.wait(90_000);
    capture.syn(SERVER, 1_406);
    capture.wait(50);
    capture.segment(CLIENT, 60_000, 0);
    capture.segment(CLIENT, 60_000, 300);
    // Slow start at the receiver: each round trip twice the segments.
    for round in 1..=5 {
        capture.wait(90_000 - (1 << round) * 1_000);
        for segment in 0..1 << round {
            capture.wait(1_000);
            capture.segment(SERVER, 60_000, 1_406);
            if segment % 2 == 1 {
                capture.segment(CLIENT, 60_000, 0);
            }
        }
    }
    let found = capture.explained();
    assert_eq!(found.position, Position::Receiver);
    assert_eq!(found.counters.short_segments, 0, "{}", found.details());
    assert_eq!(found.verdict.limit, Some(Limit::CongestionWindow), "{}", found.details());
}

/// Without the handshake the scale of windows is unknown, but not when a window of zero ends.
#[test]
fn a_window_of_zero_limits_a_connection_whose_handshake_is_missing() {
    let mut capture = Capture::new();
    for _ in 0..6 {
        for _ in 0..8 {
            capture.wait(200);
            capture.segment(SERVER, 500, 1_448);
            capture.wait(300);
            capture.segment(CLIENT, 500, 0);
        }
        capture.segment(SERVER, 500, 1_448);
        capture.wait(300);
        capture.segment(CLIENT, 0, 0);
        // The application of the receiver reads.
        capture.wait(3_000_000);
        capture.segment(CLIENT, 500, 0);
        capture.wait(100);
    }
    let found = capture.explained();
    assert_eq!(found.position, Position::Unknown);
    assert_eq!(found.verdict.limit, Some(Limit::ReceiveWindow), "{}", found.details());
}

#[test]
fn an_unknown_position_names_what_the_capture_lacks_of_the_handshake() {
    let notes = |syn: &[usize]| {
        let mut capture = Capture::new();
        for &sender in syn {
            // Of a retransmission, the number is the same again.
            capture.next[sender] = [100, 500][sender];
            capture.syn(sender, 1_460);
            capture.wait(1_000_000);
        }
        for _ in 0..3 {
            capture.segment(CLIENT, 500, 1_000);
            capture.wait(1_000);
        }
        let found = capture.explained();
        assert_eq!(found.position, Position::Unknown);
        found.notes.join("\n")
    };
    assert!(notes(&[]).starts_with("the handshake was not captured: "), "{}", notes(&[]));
    let one = notes(&[CLIENT]);
    assert!(one.starts_with("the SYN of only one end was captured: "), "{one}");
    assert!(one.contains("scale is unknown") && one.contains("only one direction"), "{one}");
    let twice = notes(&[CLIENT, CLIENT, SERVER]);
    assert!(twice.starts_with("the handshake shows no round trips, since a SYN was "), "{twice}");
    assert!(!twice.contains("scale is unknown"), "{twice}");
}

/// A capture that ends during a transfer: data in the queue of the link has not been delivered.
#[test]
fn the_goodput_is_that_of_acknowledged_data() {
    let mut capture = Capture::opened(1_460, 50_000);
    capture.acknowledged_segments(20);
    for _ in 0..40 {
        capture.segment(CLIENT, 60_000, 1_000);
    }
    let found = capture.explained();
    // 20,000 B in 1 s.
    assert_eq!(found.goodput_bit_per_s, Some(160_000.0), "{}", found.details());
    assert_eq!(found.counters.payload_byte, 60_000);
}

/// Twice, five segments fill the window, and the receiver closes it (RFC 9293, section 3.8.6). If
/// it closes before the last one, it drops that, and its retransmissions are probes.
#[test]
fn a_window_that_is_closed_limits_a_connection_and_what_it_refuses_is_not_lost() {
    for refused in [0, 1_000] {
        let mut capture = Capture::opened(1_000, 100_000);
        for _ in 0..2 {
            (0..5).for_each(|_| capture.segment(CLIENT, 60_000, 1_000));
            capture.next[CLIENT] -= refused;
            capture.wait(100_000);
            capture.segment(SERVER, 0, 0);
            for probe in 1..=3 {
                capture.wait(probe * 400_000);
                if refused > 0 {
                    capture.segment(CLIENT, 60_000, 1_000);
                    capture.next[CLIENT] -= 1_000;
                }
                capture.wait(100_000);
                capture.segment(SERVER, 0, 0);
            }
            capture.wait(1_000_000);
            capture.segment(SERVER, 5_000, 0);
            capture.wait(100);
        }
        capture.segment(CLIENT, 60_000, 1_000);
        let found = capture.explained();
        let counters = &found.counters;
        assert_eq!(found.verdict.limit, Some(Limit::ReceiveWindow), "{}", found.details());
        assert_eq!((counters.lost_packets, counters.timeouts), (0, 0), "{}", found.details());
        assert!(found.link.loss.is_none_or(|loss| loss.value == 0.0), "{}", found.details());
    }
}

/// The peer is gone: data is retransmitted for 9 s.
#[test]
fn the_goodput_includes_the_time_of_retransmissions_in_vain() {
    let mut capture = Capture::opened(1_460, 50_000);
    capture.acknowledged_segments(20);
    capture.segment(CLIENT, 60_000, 1_000);
    for _ in 0..3 {
        capture.wait(3_000_000);
        capture.next[CLIENT] -= 1_000;
        capture.segment(CLIENT, 60_000, 1_000);
    }
    let found = capture.explained();
    // 20,000 B in 10 s.
    assert_eq!(found.goodput_bit_per_s, Some(16_000.0), "{}", found.details());
    assert_eq!(found.verdict.limit, Some(Limit::Timeout), "{}", found.details());
}

#[test]
fn a_segment_without_the_handshake_is_one_packet() {
    let mut capture = Capture::new();
    capture.acknowledged_segments(20);
    assert_eq!(capture.explained().counters.packets, 20);
}
