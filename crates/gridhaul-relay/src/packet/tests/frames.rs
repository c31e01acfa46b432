//! Single frames: what passes unchanged, and large or incomplete frames of offloads.

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{
    Addresses, EtherType, EthernetFrame, EthernetHeader, IpHeader, IpPacket, Payload, TcpHeader,
    TcpOptions, TcpSegmenter, Transport, UnknownOptions, VlanTag, checksum, write_tcp,
};
use gridhaul_scenario::units::{Duration, Instant};

use super::world::{rule, settings};
use crate::packet::{
    BridgePort, ChecksumState, ComposedFrame, Engine, Frame, FrameDropCause, Handling,
    UntouchedCause,
};

const CLIENT: [u8; 4] = [10, 0, 0, 1];
const SERVER: [u8; 4] = [10, 0, 0, 2];

pub(super) fn engine(mode: &str) -> Engine {
    Engine::new(settings(&rule(mode)), || 7)
}

/// A frame of the client, or of the server.
pub(super) fn frame(is_client: bool, header: TcpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let (source, destination) = if is_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let (source_port, destination_port) = if is_client { (4_000, 7) } else { (7, 4_000) };
    let addresses = Addresses::V4 { source: source.into(), destination: destination.into() };
    let mut bytes = Vec::new();
    let ether_type = EtherType::IPV4;
    let (destination, source) = ([2; 6], [3; 6]);
    EthernetHeader { destination, source, tags: [None; 2], ether_type }.write(&mut bytes);
    let header = TcpHeader { source_port, destination_port, ..header };
    write_tcp(&mut bytes, &IpHeader::new(addresses), &header, Payload::Bytes(payload)).unwrap();
    bytes
}

/// The same with an option whose length is zero.
fn with_malformed_option(is_client: bool, header: TcpHeader<'_>, payload: &[u8]) -> Vec<u8> {
    let unknown = UnknownOptions::new(&[253, 4, 0, 1]).unwrap();
    let options = TcpOptions { unknown, ..TcpOptions::default() };
    let mut bytes = frame(is_client, TcpHeader { options, ..header }, payload);
    let option = bytes.windows(4).position(|word| word == [253, 4, 0, 1]).unwrap();
    // The sum of the words, and thereby the checksum, stays as it is.
    bytes[option..option + 4].copy_from_slice(&[253, 0, 0, 5]);
    bytes
}

/// A segment after the handshake with one more option; `None` for other frames, and without space.
pub(super) fn with_unknown_option(bytes: &[u8]) -> Option<Vec<u8>> {
    let frame = EthernetFrame::parse(bytes).ok()?;
    let ip = IpPacket::parse(frame.payload).ok()?;
    let Ok(Transport::Tcp(tcp)) = ip.transport() else { return None };
    let mut header = tcp.header().ok()?;
    if header.flags.has(Flags::SYN) {
        return None;
    }
    header.options.unknown = UnknownOptions::new(&[253, 6, 0xab, 0xcd, 0, 1]).ok()?;
    let mut longer = Vec::new();
    frame.header.write(&mut longer);
    write_tcp(&mut longer, &ip.header(), &header, Payload::Bytes(tcp.payload())).ok()?;
    Some(longer)
}

fn syn(options: TcpOptions<'_>) -> TcpHeader<'_> {
    TcpHeader { seq: 100, flags: Flags::SYN, window: 60_000, options, ..TcpHeader::default() }
}

fn plain_syn() -> TcpHeader<'static> {
    syn(TcpOptions { mss: Some(1_460), ..TcpOptions::default() })
}

/// Opens a connection with the sequence numbers 101 and 501.
pub(super) fn open(engine: &mut Engine) {
    let mss = TcpOptions { mss: Some(1_460), ..TcpOptions::default() };
    let flags = Flags::SYN.with(Flags::ACK);
    let answer = TcpHeader {
        seq: 500,
        ack: 101,
        flags,
        window: 60_000,
        options: mss,
        ..TcpHeader::default()
    };
    let (first, second) = (BridgePort::First, BridgePort::Second);
    for (from, bytes) in [
        (first, frame(true, plain_syn(), &[])),
        (second, frame(false, answer, &[])),
        (first, frame(true, data(101), &[])),
    ] {
        let handling = engine.handle_frame(Instant::ZERO, from, &Frame::new(&bytes));
        assert_eq!(handling, Handling::Handled);
    }
    engine.outgoing().clear();
}

pub(super) fn data(seq: u32) -> TcpHeader<'static> {
    TcpHeader { seq, ack: 501, flags: Flags::ACK, window: 60_000, ..TcpHeader::default() }
}

/// Sequence number, length and acknowledgement number of each frame over an interface, whose
/// checksums are verified.
fn sent(engine: &mut Engine, over: BridgePort) -> Vec<(u32, usize, u32)> {
    let frames = engine.outgoing().over(over).iter().flat_map(on_link);
    let found = frames.map(|bytes| {
        let frame = EthernetFrame::parse(&bytes).unwrap();
        let ip = IpPacket::parse(frame.payload).unwrap();
        ip.verify().unwrap();
        let Ok(Transport::Tcp(tcp)) = ip.transport() else { panic!("no TCP") };
        let header = tcp.header().unwrap();
        (header.seq, tcp.payload().len(), header.ack)
    });
    found.collect()
}

#[test]
fn frames_without_tcp_and_connections_in_their_middle_pass() {
    let mut engine = engine("reflect");
    let mut arp = vec![0xff; 12];
    arp.extend([0x08, 0x06, 0, 1]);
    let middle = frame(true, data(900), b"in the middle");
    // Soon after the start, the bridge observes such connections (`restart.rs`).
    let later = Instant::ZERO + Duration::from_secs(601);
    for (now, bytes) in
        [(Instant::ZERO, &arp), (later, &middle), (later, &vec![1, 2, 3]), (later, &Vec::new())]
    {
        let handling = engine.handle_frame(now, BridgePort::First, &Frame::new(bytes));
        assert_ne!(handling, Handling::Handled);
    }
    assert_eq!(engine.counters().passed, 4);
    assert_eq!(engine.totals().connections, 0);
}

#[test]
fn a_connection_in_its_middle_is_counted_once() {
    let mut engine = engine("reflect");
    for seq in [900, 905, 910] {
        let bytes = frame(true, data(seq), b"bytes");
        engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        let answer = frame(false, TcpHeader { seq: 7, ack: seq + 5, ..data(7) }, &[]);
        engine.handle_frame(Instant::ZERO, BridgePort::Second, &Frame::new(&answer));
    }
    assert_eq!(engine.counters().untouched(UntouchedCause::SynNotSeen), 1);
}

#[test]
fn connections_whose_syn_was_seen_are_not_counted_as_seen_in_their_middle() {
    // Forwarded because of the rule, and after the end of the proxy.
    for mode in ["none", "reflect"] {
        let mut engine = engine(mode);
        let syn = frame(true, plain_syn(), &[]);
        engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&syn));
        engine.drain(Instant::ZERO);
        let bytes = frame(true, data(101), b"bytes");
        let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        assert_eq!(handling, Handling::Forward, "{mode}");
        assert_eq!(engine.counters().untouched(UntouchedCause::SynNotSeen), 0, "{mode}");
    }
}

#[test]
fn fragments_pass_and_are_counted() {
    let mut engine = engine("reflect");
    open(&mut engine);
    let mut bytes = frame(true, data(101), b"data");
    // More fragments follow.
    bytes[14 + 6] = 0x20;
    let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
    assert_eq!(handling, Handling::Pass);
    assert_eq!(engine.counters().untouched(UntouchedCause::Fragment), 1);
}

#[test]
fn connections_with_options_that_a_proxy_cannot_keep_pass() {
    for mode in super::cases::MODES {
        for (option, cause) in [
            (&[19, 18, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1][..], UntouchedCause::Md5),
            (&[29, 4, 0, 0], UntouchedCause::TcpAo),
            (&[30, 4, 0, 0], UntouchedCause::Mptcp),
            (&[77, 2], UntouchedCause::UnknownOption),
        ] {
            let mut engine = engine(mode);
            let unknown = UnknownOptions::new(option).unwrap();
            let mss = Some(1_460);
            let bytes = frame(true, syn(TcpOptions { mss, unknown, ..TcpOptions::default() }), &[]);
            let handling =
                engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
            assert_eq!(handling, Handling::Forward);
            assert_eq!(engine.counters().untouched(cause), 1, "{mode}: {cause:?}");
        }
        let mut engine = engine(mode);
        let bytes = frame(true, plain_syn(), b"early data");
        engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        assert_eq!(engine.counters().untouched(UntouchedCause::DataInSyn), 1);
    }
}

#[test]
fn an_option_of_syn_ack_ends_the_proxy_before_it_has_begun() {
    let mut engine = engine("reflect");
    let bytes = frame(true, plain_syn(), &[]);
    engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
    assert_eq!(engine.totals().connections, 1);
    let unknown = UnknownOptions::new(&[30, 4, 0, 0]).unwrap();
    let flags = Flags::SYN.with(Flags::ACK);
    let options = TcpOptions { unknown, ..TcpOptions::default() };
    let answer = TcpHeader { seq: 500, ack: 101, flags, options, ..TcpHeader::default() };
    let bytes = frame(false, answer, &[]);
    let handling = engine.handle_frame(Instant::ZERO, BridgePort::Second, &Frame::new(&bytes));
    assert_eq!(handling, Handling::Forward);
    assert_eq!(engine.totals().connections, 0);
    assert_eq!(engine.counters().untouched(UntouchedCause::Mptcp), 1);
}

#[test]
fn a_segment_with_malformed_options_is_delivered() {
    let bytes = with_malformed_option(true, data(101), b"hello");
    for mode in ["reflect", "spoof", "snoop", "ack"] {
        let mut engine = engine(mode);
        open(&mut engine);
        let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        assert_eq!(handling, Handling::Handled, "{mode}");
        let frames: Vec<_> = engine.outgoing().over(BridgePort::Second).iter().collect();
        // `ack` forwards packets with data as they are.
        if mode == "ack" {
            assert_eq!(frames.iter().map(|frame| frame.bytes).collect::<Vec<_>>(), [&bytes[..]]);
        } else {
            assert_eq!(sent(&mut engine, BridgePort::Second), [(101, 5, 501)], "{mode}");
        }
    }
}

#[test]
fn a_malformed_option_of_syn_ack_ends_the_proxy_before_it_has_begun() {
    let mut engine = engine("reflect");
    let bytes = frame(true, plain_syn(), &[]);
    engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
    let flags = Flags::SYN.with(Flags::ACK);
    let answer = TcpHeader { seq: 500, ack: 101, flags, ..TcpHeader::default() };
    let bytes = with_malformed_option(false, answer, &[]);
    let handling = engine.handle_frame(Instant::ZERO, BridgePort::Second, &Frame::new(&bytes));
    assert_eq!(handling, Handling::Forward);
    assert_eq!(engine.counters().untouched(UntouchedCause::Malformed), 1);
}

#[test]
fn the_next_connection_with_the_same_ports_stays_at_risk() {
    let mut engine = engine("reflect");
    let send = |engine: &mut Engine, header, payload: &[u8]| {
        let bytes = frame(true, header, payload);
        engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
    };
    let reset = TcpHeader { flags: Flags::RST, ..data(106) };
    open(&mut engine);
    send(&mut engine, data(101), b"hello");
    assert_eq!(engine.take_newly_at_risk().len(), 1);
    send(&mut engine, reset, &[]);
    open(&mut engine);
    send(&mut engine, data(101), b"hello");
    assert_eq!(engine.take_newly_at_risk().len(), 1);
    // The end of the first connection must not end the protection of the second one.
    assert!(engine.take_no_longer_at_risk().is_empty());
    send(&mut engine, reset, &[]);
    assert_eq!(engine.take_no_longer_at_risk().len(), 1);
}

#[test]
fn a_large_frame_is_handled_as_its_segments() {
    for mode in ["reflect", "spoof"] {
        let mut engine = engine(mode);
        open(&mut engine);
        let bytes = frame(true, data(101), &[5; 4_000]);
        let large = Frame {
            segment_size: Some(1_460),
            checksum: ChecksumState::Pending,
            ..Frame::new(&bytes)
        };
        let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &large);
        assert_eq!(handling, Handling::Handled);
        let forwarded: Vec<_> = sent(&mut engine, BridgePort::Second)
            .iter()
            .map(|(seq, len, _)| (*seq, *len))
            .collect();
        assert_eq!(forwarded, [(101, 1_460), (1_561, 1_460), (3_021, 1_080)], "{mode}");
        let acknowledged: Vec<_> =
            sent(&mut engine, BridgePort::First).iter().map(|(_, _, ack)| *ack).collect();
        assert_eq!(acknowledged, [1_561, 3_021, 4_101], "{mode}");
        assert_eq!(engine.outgoing().over(BridgePort::Second).iter().count(), 1, "{mode}");
    }
}

#[test]
fn a_pending_checksum_is_filled_in_and_a_wrong_one_is_not() {
    let mut engine = engine("snoop");
    open(&mut engine);
    let mut bytes = frame(true, data(101), b"data");
    bytes[14 + 20 + 16] ^= 0xff;
    let pending = Frame { checksum: ChecksumState::Pending, ..Frame::new(&bytes) };
    engine.handle_frame(Instant::ZERO, BridgePort::First, &pending);
    assert_eq!(sent(&mut engine, BridgePort::Second), [(101, 4, 501)]);
    engine.outgoing().clear();
    let handling = engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
    assert_eq!(handling, Handling::Handled);
    assert!(engine.outgoing().over(BridgePort::Second).is_empty());
    assert_eq!(engine.counters().dropped(FrameDropCause::Checksum), 1);
}

#[test]
fn the_tag_that_the_kernel_has_removed_is_in_the_frames_of_the_proxy() {
    let mut engine = engine("spoof");
    let tag = VlanTag { id: 9, priority: 5, ..VlanTag::default() };
    let bytes = frame(true, plain_syn(), &[]);
    let tagged = Frame { tag: Some(tag), ..Frame::new(&bytes) };
    engine.handle_frame(Instant::ZERO, BridgePort::First, &tagged);
    let sent = engine.outgoing().over(BridgePort::Second).iter().next().unwrap().bytes.to_vec();
    assert_eq!(EthernetFrame::parse(&sent).unwrap().header.tags, [Some(tag), None]);
}

#[test]
fn ecn_is_not_negotiated_through_a_proxy_that_acknowledges_data() {
    for (mode, expected) in [("reflect", false), ("spoof", false), ("snoop", true), ("ack", true)] {
        let mut engine = engine(mode);
        let ecn = Flags::ECE.with(Flags::CWR);
        let bytes = frame(true, TcpHeader { flags: Flags::SYN.with(ecn), ..plain_syn() }, &[]);
        engine.handle_frame(Instant::ZERO, BridgePort::First, &Frame::new(&bytes));
        let sent = engine.outgoing().over(BridgePort::Second).iter().next().unwrap().bytes.to_vec();
        assert_eq!(Flags::from_bits(sent[14 + 20 + 13]).has(ecn), expected, "{mode}");
    }
}

#[test]
fn an_acknowledgement_that_has_waited_keeps_its_options() {
    let mut engine = engine("ack");
    open(&mut engine);
    let second = BridgePort::Second;
    // Acknowledgements to the second interface are thinned.
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let unknown = UnknownOptions::new(&[77, 4, 1, 2]).unwrap();
    let options = TcpOptions { timestamps: Some((1, 2)), unknown, ..TcpOptions::default() };
    for (ms, ack) in [(1, 1_000), (2, 2_000), (3, 3_000)] {
        let bytes = frame(true, TcpHeader { ack, options, ..data(101) }, &[]);
        engine.handle_frame(at(ms), BridgePort::First, &Frame::new(&bytes));
    }
    assert!(engine.outgoing().over(second).is_empty());
    let due = engine.next_deadline();
    assert!(due <= at(20));
    engine.handle_timeout(due);
    let expected = frame(true, TcpHeader { ack: 3_000, options, ..data(101) }, &[]);
    let frames: Vec<_> = engine.outgoing().over(second).iter().flat_map(on_link).collect();
    assert_eq!(frames, [expected]);
}

/// The frames that an interface makes of a frame of the bridge.
pub(super) fn on_link(frame: ComposedFrame<'_>) -> Vec<Vec<u8>> {
    let Some(offload) = frame.offload else { return vec![frame.bytes.to_vec()] };
    let parsed = EthernetFrame::parse(frame.bytes).unwrap();
    let (header, packet) = frame.bytes.split_at(frame.bytes.len() - parsed.payload.len());
    let pseudo = &frame.bytes[offload.transport + 16..offload.transport + 18];
    let segment = &frame.bytes[offload.transport..];
    let expected = checksum::pseudo_header(
        &IpPacket::parse(packet).unwrap().addresses(),
        6,
        segment.len() as u32,
    );
    assert_eq!(pseudo, (expected as u16).to_be_bytes(), "the sum of the pseudo header");
    let segmenter = TcpSegmenter::new(packet, offload.segment_size.unwrap_or(u16::MAX)).unwrap();
    let write = |index| {
        let mut bytes = header.to_vec();
        segmenter.write(index, &mut bytes);
        bytes
    };
    (0..segmenter.count()).map(write).collect()
}

/// The report of a router that a packet is too big for a link.
pub(super) fn packet_too_big(dropped: &[u8], mtu: u16) -> Vec<u8> {
    let (ethernet, packet) = dropped.split_at(14);
    let quoted = &packet[..28.min(packet.len())];
    let mut message = vec![3, 4, 0, 0, 0, 0];
    message.extend(mtu.to_be_bytes());
    message.extend(quoted);
    let sum = checksum::internet(0, &message);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let length = (20 + message.len()) as u16;
    let mut ip = vec![0x45, 0];
    ip.extend(length.to_be_bytes());
    ip.extend([0, 0, 0, 0, 64, 1, 0, 0, 10, 255, 255, 1]);
    ip.extend(&packet[12..16]);
    let sum = checksum::internet(0, &ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let mut frame = ethernet[6..12].to_vec();
    frame.extend(&ethernet[..6]);
    frame.extend(&ethernet[12..14]);
    frame.extend(ip);
    frame.extend(message);
    frame
}
