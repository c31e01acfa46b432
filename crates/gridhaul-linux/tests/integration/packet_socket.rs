//! Frames between two packet sockets over a veth pair in a separate namespace.

#![expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]

use std::process::Command;
use std::time::{Duration, Instant};

use gridhaul_linux::{FrameBatch, Namespace, PacketSocket, VlanTag, disable_offloads, run_batch};

/// EtherType of Sampled Values (IEC 61850-9-2).
const SAMPLED_VALUES: u16 = 0x88ba;

/// Runs in a namespace with the devices `left` and `right`, which are connected.
fn with_pair(work: impl FnOnce() + Send) {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        let lines =
            "link add left type veth peer name right\nlink set left up\nlink set right up\n";
        run_batch("ip", lines, "test").unwrap();
        wait_until_up(&["left", "right"]);
        work();
    };
    namespace.enter(inside).unwrap();
}

/// Waits for the operational state of devices (RFC 2863). The kernel activates the queueing
/// discipline of a device after its carrier is detected, on a thread of the kernel, and drops
/// frames until then.
pub(crate) fn wait_until_up(devices: &[&str]) {
    let is_up = |device: &&str| {
        let output =
            Command::new("ip").args(["-oneline", "link", "show", device]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).contains("state UP")
    };
    let begun = Instant::now();
    while !devices.iter().all(is_up) {
        assert!(begun.elapsed() < LIMIT, "the devices are not up after 10 s");
    }
}

fn frame(ether_type: u16, tag: Option<u16>, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff; 6];
    bytes.extend([2, 0, 0, 0, 0, 1]);
    if let Some(control) = tag {
        bytes.extend(0x8100_u16.to_be_bytes());
        bytes.extend(control.to_be_bytes());
    }
    bytes.extend(ether_type.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Time in which a frame must arrive, which a busy machine meets as well.
const LIMIT: Duration = Duration::from_secs(10);

/// Receives until there are `count` frames or [`LIMIT`] has passed.
fn receive(socket: &PacketSocket, count: usize) -> Vec<(Vec<u8>, Option<VlanTag>, bool)> {
    let mut batch = FrameBatch::new(8, 2_048);
    let mut received = Vec::new();
    let begun = Instant::now();
    while received.len() < count && begun.elapsed() < LIMIT {
        socket.receive(&mut batch).unwrap();
        received.extend(batch.frames().map(|frame| {
            assert!(frame.received_at.is_some(), "the kernel stamps each frame");
            (frame.bytes.to_vec(), frame.vlan, frame.truncated)
        }));
    }
    received
}

#[test]
fn frames_arrive_complete_and_in_order() {
    with_pair(|| {
        let sender = PacketSocket::open("left", SAMPLED_VALUES).unwrap();
        let receiver = PacketSocket::open("right", SAMPLED_VALUES).unwrap();
        let frames: Vec<_> = (0..50_u8).map(|n| frame(SAMPLED_VALUES, None, &[n; 100])).collect();
        let slices: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        let mut sent = 0;
        while sent < slices.len() {
            sent += sender.send(&slices[sent..]).unwrap();
        }
        let received = receive(&receiver, frames.len());
        assert_eq!(received.into_iter().map(|(bytes, ..)| bytes).collect::<Vec<_>>(), frames);
    });
}

#[test]
fn vlan_tags_are_reported() {
    with_pair(|| {
        let sender = PacketSocket::open("left", PacketSocket::ALL_PROTOCOLS).unwrap();
        let receiver = PacketSocket::open("right", PacketSocket::ALL_PROTOCOLS).unwrap();
        // Priority 4, VLAN 7.
        let tagged = frame(SAMPLED_VALUES, Some(4 << 13 | 7), &[1; 60]);
        while sender.send(&[&tagged]).unwrap() == 0 {}
        let untagged = frame(SAMPLED_VALUES, None, &[1; 60]);
        let received = loop {
            // The kernel sends neighbour discovery over the devices as well.
            let frames = receive(&receiver, 1);
            assert!(!frames.is_empty(), "the frame has not arrived");
            if let Some(found) = frames.into_iter().find(|(bytes, ..)| *bytes == untagged) {
                break found;
            }
        };
        assert_eq!(received.1, Some(VlanTag { protocol: 0x8100, control: 4 << 13 | 7 }));
    });
}

#[test]
fn a_frame_longer_than_the_space_is_marked() {
    with_pair(|| {
        let sender = PacketSocket::open("left", SAMPLED_VALUES).unwrap();
        let receiver = PacketSocket::open("right", SAMPLED_VALUES).unwrap();
        while sender.send(&[&frame(SAMPLED_VALUES, None, &[0; 1_400])]).unwrap() == 0 {}
        let mut batch = FrameBatch::new(1, 100);
        let begun = Instant::now();
        while receiver.receive(&mut batch).unwrap() == 0 {
            assert!(begun.elapsed() < LIMIT, "the frame has not arrived");
        }
        let received = batch.frames().next().unwrap();
        assert!(received.truncated);
        assert_eq!(received.bytes.len(), 100);
    });
}

#[test]
fn checksums_are_complete_without_transmit_offload() {
    with_pair(|| {
        for device in ["left", "right"] {
            disable_offloads(device).unwrap();
        }
        let lines = "address add 10.9.0.1/24 dev left\nneigh add 10.9.0.2 lladdr 02:00:00:00:00:02 \
                     dev left\n";
        run_batch("ip", lines, "test").unwrap();
        let receiver = PacketSocket::open("right", 0x0800).unwrap();
        let socket = std::net::UdpSocket::bind("10.9.0.1:0").unwrap();
        socket.send_to(b"reading", "10.9.0.2:4059").unwrap();
        let mut batch = FrameBatch::new(4, 2_048);
        let begun = Instant::now();
        while receiver.receive(&mut batch).unwrap() == 0 {
            assert!(begun.elapsed() < LIMIT, "the datagram has not arrived");
        }
        assert!(batch.frames().all(|frame| !frame.checksum_pending));
    });
}

/// Packets of a capture to this UDP port: whether the namespace sends them, and their bytes.
fn datagrams(capture: &PacketSocket, port: u16, count: usize) -> Vec<(bool, Vec<u8>)> {
    let mut batch = FrameBatch::new(8, 2_048);
    let mut found = Vec::new();
    let begun = Instant::now();
    while found.len() < count && begun.elapsed() < LIMIT {
        capture.receive(&mut batch).unwrap();
        let packets = batch.frames().filter(|frame| frame.ether_type == 0x0800);
        // A header of IPv4 without options has 20 bytes; the destination port of UDP follows two
        // bytes later.
        let datagrams =
            packets.filter(|frame| frame.bytes.get(22..24) == Some(&port.to_be_bytes()));
        found.extend(datagrams.map(|frame| {
            assert!(frame.received_at.is_some(), "the kernel stamps each packet");
            (frame.outgoing, frame.bytes[28..].to_vec())
        }));
    }
    found
}

#[test]
fn a_capture_has_the_packets_of_all_devices_from_the_network_header_on() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        let lines = "link set lo up\nlink add left type veth peer name right\nlink set left up\n\
                     link set right up\naddress add 10.9.0.1/24 dev left\n\
                     neigh add 10.9.0.2 lladdr 02:00:00:00:00:02 dev left\n";
        run_batch("ip", lines, "test").unwrap();
        wait_until_up(&["left", "right"]);
        let capture = PacketSocket::capture(1 << 20).unwrap();
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").unwrap();
        socket.send_to(b"local", "127.0.0.1:4059").unwrap();
        // The loopback device sends and receives.
        let expected = [true, false].map(|outgoing| (outgoing, b"local".to_vec()));
        assert_eq!(datagrams(&capture, 4059, 2), expected);
        // One device of the pair sends, the other one receives.
        socket.send_to(b"remote", "10.9.0.2:4060").unwrap();
        let expected = [true, false].map(|outgoing| (outgoing, b"remote".to_vec()));
        assert_eq!(datagrams(&capture, 4060, 2), expected);
        assert_eq!(capture.dropped().unwrap(), 0);
    };
    namespace.enter(inside).unwrap();
}

#[test]
fn packets_that_do_not_fit_into_the_buffer_of_a_capture_are_counted() {
    let namespace = Namespace::new().expect("the kernel tests run as root");
    let inside = || {
        run_batch("ip", "link set lo up\n", "test").unwrap();
        let capture = PacketSocket::capture(4_096).unwrap();
        let receiver = std::net::UdpSocket::bind("127.0.0.1:4059").unwrap();
        receiver.set_read_timeout(Some(LIMIT)).unwrap();
        for _ in 0..100 {
            receiver.send_to(&[0; 1_000], "127.0.0.1:4059").unwrap();
            // The capture gets a received packet before the socket does, on a busy machine on
            // another thread of the kernel.
            receiver.recv(&mut [0; 1_000]).unwrap();
        }
        let dropped = capture.dropped().unwrap();
        assert!((100..200).contains(&dropped), "{dropped} of 200");
        assert_eq!(capture.dropped().unwrap(), 0, "since the last call");
    };
    namespace.enter(inside).unwrap();
}

#[test]
fn a_device_that_does_not_exist_is_named() {
    let error = PacketSocket::open("absent0", SAMPLED_VALUES).unwrap_err().to_string();
    assert!(error.contains("device absent0"), "{error}");
}
