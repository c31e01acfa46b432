//! Peculiarities of captures: several devices, ports that are used again, clocks that are set back,
//! and errors of reading.

use std::io::{self, Read};

use gridhaul_capture::{CaptureFile, ConnectionExplanation, Limit, Position, explain};
use gridhaul_core::tcp::Flags;

use crate::recording::{Conversation, Packet, Segment, explained, pcap, pcapng};
use crate::support::{captures, explained as explained_links, simulate};

fn transfer() -> Conversation {
    let mut conversation = Conversation::new();
    conversation.open();
    conversation.transfer(20_100, 20);
    conversation
}

fn only(packets: &[Packet]) -> ConnectionExplanation {
    let mut explanation = explained(vec![("test.pcap", pcap(packets))]);
    assert_eq!(explanation.connections.len(), 1);
    explanation.connections.swap_remove(0)
}

#[test]
fn copies_of_packets_at_several_devices_count_once() {
    let mut packets = transfer().packets;
    let expected = only(&packets);
    assert_eq!((expected.position, expected.counters.retransmissions), (Position::Sender, 0));
    // A bridge forwards each burst after it has received all of it.
    let copies = packets.clone().into_iter();
    packets.extend(copies.map(|packet| Packet { at: packet.at + 100, device: 3, ..packet }));
    packets.sort_by_key(|packet| packet.at);
    let found = only(&packets);
    assert_eq!((found.position, &found.counters), (expected.position, &expected.counters));
    assert_eq!(found.link, expected.link);
}

#[test]
fn a_retransmission_over_the_same_device_is_no_copy() {
    let mut conversation = Conversation::new();
    conversation.open();
    for at in [30_000, 30_500] {
        conversation.send(at, 0, Segment { seq: 1, ack: 1, length: 1_000, ..Segment::default() });
    }
    assert_eq!(only(&conversation.packets).counters.retransmissions, 1);
}

#[test]
fn times_after_a_clock_was_set_back_continue() {
    let packets = transfer().packets;
    let expected = only(&packets).goodput_bit_per_s.unwrap();
    let half = packets.len() / 2;
    let shifted = |(index, packet): (usize, Packet)| {
        let ahead = if index < half { 3_600_000_000 } else { 0 };
        Packet { at: packet.at + ahead, ..packet }
    };
    let found = only(&packets.into_iter().enumerate().map(shifted).collect::<Vec<_>>());
    let ratio = found.goodput_bit_per_s.unwrap() / expected;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    assert!(found.notes.iter().any(|note| note.contains("set back")), "{:?}", found.notes);
}

#[test]
fn records_that_are_slightly_out_of_order_do_not_set_the_clock_back() {
    let mut packets = transfer().packets;
    packets.iter_mut().step_by(3).for_each(|packet| packet.at += 500);
    assert!(only(&packets).notes.is_empty());
}

#[test]
fn a_syn_begins_another_connection_also_if_that_of_the_first_one_was_not_captured() {
    let mut first = transfer();
    first.packets.drain(..3);
    let mut second = transfer();
    second.packets.iter_mut().for_each(|packet| packet.at += 60_000_000);
    let both = [first.packets, second.packets].concat();
    let explanation = explained(vec![("test.pcap", pcap(&both))]);
    let payload: Vec<_> =
        explanation.connections.iter().map(|found| found.counters.payload_byte).collect();
    assert_eq!(payload, [80_000, 80_000]);
    assert_eq!(explanation.connections[1].position, Position::Sender);
}

/// RFC 7413: TCP Fast Open.
#[test]
fn data_in_syn_is_no_retransmission() {
    let mut conversation = Conversation::new();
    conversation.send(0, 0, Segment { flags: Flags::SYN, length: 100, ..Segment::default() });
    let flags = Flags::SYN.with(Flags::ACK);
    conversation.send(20_000, 1, Segment { flags, ack: 101, ..Segment::default() });
    conversation.send(20_010, 0, Segment { seq: 101, ack: 1, length: 50, ..Segment::default() });
    conversation.send(40_010, 1, Segment { seq: 1, ack: 151, ..Segment::default() });
    let counters = only(&conversation.packets).counters;
    let counted = (counters.payload_byte, counters.retransmissions, counters.timeouts);
    assert_eq!(counted, (150, 0, 0));
}

#[test]
fn a_retransmission_of_one_byte_is_no_keep_alive() {
    let mut conversation = Conversation::new();
    conversation.open();
    let byte = Segment { seq: 1, ack: 1, length: 1, ..Segment::default() };
    conversation.send(30_000, 0, byte);
    conversation.send(230_000, 0, byte);
    conversation.send(250_000, 1, Segment { seq: 1, ack: 2, ..Segment::default() });
    // RFC 9293, section 3.8.4: the byte has been acknowledged.
    conversation.send(9_000_000, 0, byte);
    let counters = only(&conversation.packets).counters;
    assert_eq!((counters.payload_byte, counters.retransmissions, counters.timeouts), (1, 1, 1));
}

#[test]
fn devices_of_the_same_name_are_points_of_their_own_and_sections_of_a_file_are_not() {
    let packets = transfer().packets;
    let (early, late) = packets.split_at(packets.len() / 2);
    let file = [pcapng("eth0", early), pcapng("eth0", late)].concat();
    let explanation = explained(vec![("a.pcapng", file.clone()), ("b.pcapng", file)]);
    let points: Vec<_> = explanation.connections.iter().map(|found| &*found.point).collect();
    assert_eq!(points, ["eth0", "b.pcapng (eth0)"]);
    assert!(explanation.connections.iter().all(|found| found.counters.payload_byte == 80_000));
}

/// A link whose receive window is full, captured at both ends and on the line.
#[test]
fn an_undivided_connection_that_was_captured_at_several_points_has_no_proxy() {
    let answer = simulate(
        "title = 'window'\nduration = '15 s'\nwarmup = '0 s'\nreplications = 1\n\
         record = { pcap = ['access', 'line', 'exit'] }\n\
         [node]\na = {}\nm = {}\nn = {}\nb = {}\n\
         [link.access]\nfrom = 'a'\nto = 'm'\nboth = { rate = '1 Gbit/s', delay = '20 us' }\n\
         [link.line]\nfrom = 'm'\nto = 'n'\nboth = { rate = '20 Mbit/s', delay = '40 ms' }\n\
         [link.exit]\nfrom = 'n'\nto = 'b'\nboth = { rate = '1 Gbit/s', delay = '20 us' }\n\
         [stack.t]\nreceive_window = '40000 B'\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\nstack = 't'\nload = 'bulk'\n",
    );
    let explanation = explained_links(captures(&answer, &["access", "line", "exit"]));
    let limits: Vec<_> = explanation.connections.iter().map(|found| found.verdict.limit).collect();
    assert_eq!(limits, [Some(Limit::ReceiveWindow); 3]);
}

/// A disk that fails.
struct Failing {
    bytes: io::Cursor<Vec<u8>>,
}

impl Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.bytes.read(buffer)? {
            0 => Err(io::Error::other("the disk fails")),
            read => Ok(read),
        }
    }
}

#[test]
fn an_error_of_reading_within_a_large_packet_ends_the_analysis() {
    let mut file = pcap(&transfer().packets);
    for word in [60_u32, 0, 10 << 20, 10 << 20] {
        file.extend(word.to_le_bytes());
    }
    file.resize(file.len() + (3 << 20), 0);
    let file = CaptureFile::new("disk.pcap", Failing { bytes: io::Cursor::new(file) });
    let error = explain(vec![file], &mut |_| true).unwrap_err();
    assert!(error.to_string().contains("check the disk"), "{error}");
}
