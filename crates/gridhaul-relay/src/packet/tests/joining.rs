//! Segments that are joined into large frames.

use gridhaul_core::tcp::Flags;
use gridhaul_core::wire::{IpPacket, TcpHeader, TcpOptions};
use gridhaul_scenario::units::Instant;

use super::frames::{data, engine, frame, on_link, open};
use crate::packet::{BridgePort, ChecksumState, Engine, Frame};

/// Handles a frame of the client, whose checksum is not filled in.
fn handle(engine: &mut Engine, bytes: &[u8], segment_size: u16) {
    let segment_size = Some(segment_size);
    let frame = Frame { checksum: ChecksumState::Pending, segment_size, ..Frame::new(bytes) };
    engine.handle_frame(Instant::ZERO, BridgePort::First, &frame);
}

/// Number of segments in each frame to the server.
fn segments(engine: &mut Engine) -> Vec<usize> {
    let frames = engine.outgoing().over(BridgePort::Second).iter();
    frames.map(|frame| on_link(frame).len()).collect()
}

#[test]
fn a_large_frame_of_a_host_is_forwarded_as_a_large_frame() {
    for mode in ["reflect", "spoof", "snoop", "ack"] {
        let mut engine = engine(mode);
        open(&mut engine);
        let unknown = gridhaul_core::wire::UnknownOptions::new(&[77, 4, 1, 2]).unwrap();
        let options = TcpOptions { unknown, ..TcpOptions::default() };
        let flags = Flags::ACK.with(Flags::PSH);
        let payload: Vec<u8> = (0..10_000).map(|at| (at >> 4) as u8).collect();
        let sent = frame(true, TcpHeader { flags, options, ..data(101) }, &payload);
        handle(&mut engine, &sent, 1_448);
        let frames = engine.outgoing().over(BridgePort::Second).iter();
        let frames: Vec<_> = frames.flat_map(on_link).collect();
        let joined: Vec<u8> = frames
            .iter()
            .flat_map(|bytes| {
                let ip = IpPacket::parse(&bytes[14..]).unwrap();
                ip.verify().unwrap();
                let Ok(gridhaul_core::wire::Transport::Tcp(tcp)) = ip.transport() else {
                    panic!("no TCP")
                };
                tcp.payload().to_vec()
            })
            .collect();
        assert_eq!(joined, payload, "{mode}");
        assert_eq!(segments(&mut engine), [7], "{mode}");
        if mode == "snoop" || mode == "ack" {
            // As the sender's own interface divides it, with all options.
            let mut expected = Vec::new();
            let segmenter = gridhaul_core::wire::TcpSegmenter::new(&sent[14..], 1_448).unwrap();
            segmenter.write(6, &mut expected);
            assert_eq!(frames[6][14..], expected, "{mode}");
        }
    }
}

#[test]
fn consecutive_frames_are_joined_up_to_the_largest_packet() {
    let mut engine = engine("ack");
    open(&mut engine);
    for index in 0..40 {
        let sent = frame(true, data(101 + index * 1_400), &[index as u8; 1_400]);
        handle(&mut engine, &sent, 1_400);
    }
    assert_eq!(segments(&mut engine), [40]);
    for index in 40..50 {
        let sent = frame(true, data(101 + index * 1_400), &[index as u8; 1_400]);
        handle(&mut engine, &sent, 1_400);
    }
    // 46 segments of 1,400 bytes and a header of 40 bytes are 64,440 bytes.
    assert_eq!(segments(&mut engine), [46, 4]);
}

#[test]
fn segments_with_different_headers_are_not_joined() {
    let next = TcpHeader { seq: 201, ..data(101) };
    let cases = [
        ("gap", TcpHeader { seq: 301, ..next }, 100, 2),
        ("acknowledgement", TcpHeader { ack: 500, ..next }, 100, 2),
        ("window", TcpHeader { window: 60_001, ..next }, 100, 2),
        ("FIN", TcpHeader { flags: Flags::ACK.with(Flags::FIN), ..next }, 100, 2),
        ("urgent", TcpHeader { flags: Flags::ACK.with(Flags::URG), urgent: 1, ..next }, 100, 2),
        ("larger", next, 101, 2),
        ("smaller", next, 99, 1),
        ("PSH", TcpHeader { flags: Flags::ACK.with(Flags::PSH), ..next }, 100, 1),
    ];
    for (name, header, length, frames) in cases {
        // The filter of acknowledgements forwards the headers of hosts; large frames are written
        // by the bridge.
        let mut engine = engine("snoop");
        open(&mut engine);
        handle(&mut engine, &frame(true, data(101), &[1; 100]), 1_000);
        handle(&mut engine, &frame(true, header, &vec![2; length]), 1_000);
        assert_eq!(segments(&mut engine).len(), frames, "{name}");
    }
}
