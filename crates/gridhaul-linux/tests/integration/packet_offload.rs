//! Frames with pending checksums and large frames over packet sockets with metadata.

#![expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use gridhaul_linux::{
    Checksum, FrameBatch, FrameMetadata, Namespace, OutgoingFrame, PacketSocket, Segmentation,
    SegmentationKind, SendRejection, SendResult, VlanTag, run_batch,
};

use crate::bridged_hosts::{
    BridgedHosts, IPV4_SERVER, IPV6_SERVER, LIMIT, forward, sockets, transfer,
};
use crate::packet_socket::wait_until_up;

/// Properties of the forwarded frames.
#[derive(Debug, Default)]
struct Observed {
    bytes_max: usize,
    pending: u64,
    segmented: u64,
}

/// Transfers data between hosts, the frames of which are forwarded unchanged.
fn forwarded() -> Observed {
    let hosts = BridgedHosts::new(false);
    let ended = AtomicBool::new(false);
    let mut observed = Observed::default();
    let forward = || {
        let sockets = sockets();
        let rejected = forward(
            &sockets,
            || ended.load(Ordering::Relaxed),
            |_, frame| {
                observed.bytes_max = observed.bytes_max.max(frame.bytes.len());
                let pending = matches!(frame.checksum, Checksum::Pending { .. });
                observed.pending += u64::from(pending);
                observed.segmented += u64::from(frame.segmentation.is_some());
            },
        );
        assert_eq!(rejected, []);
        let dropped = sockets.map(|socket| socket.dropped().unwrap());
        assert_eq!(dropped, [0, 0]);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| hosts.middle.enter(forward).unwrap());
        for server in [IPV4_SERVER, IPV6_SERVER] {
            let mut connection = hosts.connect(server);
            transfer(&mut connection, 4 << 20);
            connection.reverse();
            transfer(&mut connection, 1 << 20);
        }
        ended.store(true, Ordering::Relaxed);
    });
    observed
}

#[test]
fn large_frames_with_pending_checksums_pass_unchanged() {
    let observed = forwarded();
    println!("{observed:?}");
    assert!(observed.bytes_max > 10_000, "{observed:?}");
    assert!(observed.pending > 100 && observed.segmented > 50, "{observed:?}");
}

/// Two connected devices, `left` and `right`, in the namespace of the calling thread.
fn make_pair() {
    let lines = "link add left type veth peer name right\nlink set left up\nlink set right up\n";
    run_batch("ip", lines, "test").unwrap();
}

/// An Ethernet frame with a TCP segment of 4,000 bytes, the checksum of which is pending.
fn large_frame() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 0x99, 2, 0, 0, 0, 0, 0x88, 8, 0];
    frame.extend([0x45, 0, 0x0f, 0xc8, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 88, 0, 1, 10, 88, 0, 9]);
    frame.extend([0x1b, 0x58, 0x1b, 0x58, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0, 0, 0, 0, 0, 0]);
    frame.resize(14 + 20 + 20 + 4_000, 7);
    frame
}

#[test]
fn a_large_frame_with_a_vlan_tag_is_received_as_it_was_sent() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        make_pair();
        wait_until_up(&["left", "right"]);
        let [sender, receiver] = sockets();
        let segmentation =
            Segmentation { kind: SegmentationKind::Tcp4, size: 1_000, header_len: 54, ecn: false };
        let metadata = FrameMetadata {
            vlan: Some(VlanTag { protocol: 0x8100, control: 5 << 13 | 7 }),
            checksum: Checksum::Pending { start: 34, offset: 16 },
            segmentation: Some(segmentation),
        };
        let bytes = large_frame();
        let sent = sender.send_frames(&[OutgoingFrame { bytes: &bytes, metadata }]).unwrap();
        assert_eq!(sent, SendResult { sent: 1, rejected: None });
        let mut batch = FrameBatch::new(8, 8_192);
        let begun = Instant::now();
        let mut received = None;
        while received.is_none() {
            assert!(begun.elapsed() < LIMIT, "the frame has not arrived");
            receiver.receive(&mut batch).unwrap();
            let tagged = batch.frames().find(|frame| frame.vlan.is_some());
            received = tagged.map(|frame| (frame.bytes.to_vec(), frame.metadata()));
        }
        let (received, mut same) = received.unwrap();
        assert!(received == bytes);
        // The kernel reports how much of the frame is in the first piece of memory.
        same.segmentation.as_mut().unwrap().header_len = 54;
        assert_eq!(same, metadata);
    };
    namespace.enter(inside).unwrap();
}

#[test]
fn a_rejected_frame_is_reported_with_its_reason_and_the_next_frames_are_sent() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        make_pair();
        let socket = PacketSocket::open_with_metadata("left", PacketSocket::ALL_PROTOCOLS).unwrap();
        let frame = |length: usize| {
            let mut bytes = vec![0xff; 12];
            bytes.extend([0x88, 0xba]);
            bytes.resize(length, 0);
            bytes
        };
        let plain = FrameMetadata::default();
        let outside =
            FrameMetadata { checksum: Checksum::Pending { start: 2_000, offset: 16 }, ..plain };
        let segmentation =
            Segmentation { kind: SegmentationKind::Tcp4, size: 1_448, header_len: 66, ecn: false };
        // No TCP header is in this frame.
        let contradiction = FrameMetadata { segmentation: Some(segmentation), ..plain };
        let (short, long) = (frame(100), frame(3_000));
        let expected = [
            (&long, plain, SendRejection::TooLong),
            (&short, outside, SendRejection::Malformed),
            (&short, contradiction, SendRejection::Malformed),
        ];
        for (bytes, metadata, reason) in expected {
            let good = OutgoingFrame { bytes: &short, metadata: plain };
            let frames = [good, good, OutgoingFrame { bytes, metadata }, good];
            let result = socket.send_frames(&frames).unwrap();
            assert_eq!(result, SendResult { sent: 2, rejected: Some(reason) });
            let result = socket.send_frames(&frames[3..]).unwrap();
            assert_eq!(result, SendResult { sent: 1, rejected: None });
        }
        run_batch("ip", "link set left down\n", "test").unwrap();
        let good = OutgoingFrame { bytes: &short, metadata: plain };
        let result = socket.send_frames(&[good]).unwrap();
        assert_eq!(result.rejected, Some(SendRejection::InterfaceDown));
        run_batch("ip", "link del left\n", "test").unwrap();
        assert!(socket.send_frames(&[good]).is_err(), "the device was deleted");
    };
    namespace.enter(inside).unwrap();
}

#[test]
fn metadata_need_a_socket_that_reports_them() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        let socket = PacketSocket::open("lo", PacketSocket::ALL_PROTOCOLS).unwrap();
        let frame = OutgoingFrame { bytes: &[0; 60], metadata: FrameMetadata::default() };
        let error = socket.send_frames(&[frame]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::Unsupported);
    };
    namespace.enter(inside).unwrap();
}
