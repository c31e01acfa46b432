//! Frames between packet sockets in two namespaces, which a veth pair connects.

use std::process::Command;
use std::time::{Duration, Instant};

use gridhaul_core::wire::VlanTag;
use gridhaul_linux::{FrameBatch, Namespace, PacketSocket, run_batch};
use gridhaul_measure::frame::goose::{Data, GooseReceiver, Reception};
use gridhaul_measure::frame::sampled_values::{SampleCounter, float_values, write_float_values};
use gridhaul_measure::frame::{Frame, FrameError, GOOSE, Pdu};
use gridhaul_scenario::units;

use crate::{asdu, encoded, goose, sampled_values};

/// Frames that are sent before they are received; the socket's buffer has space for them.
const FRAMES: u32 = 100;

#[test]
fn samples_arrive_with_their_tag_and_number() {
    let tag = VlanTag { id: 7, priority: 4, ..VlanTag::default() };
    // The 16 bits of the number wrap within the frames.
    let first = u64::from(u16::MAX) - 50;
    let frames = (first..first + u64::from(FRAMES)).map(|number| {
        let mut samples = Vec::new();
        write_float_values(&mut samples, &[number as f32; 10]);
        let mut asdu = asdu("1234", Some("node"), samples);
        asdu.sample_count = number as u16;
        sampled_values(Some(tag), vec![asdu])
    });
    let received = transfer(PacketSocket::ALL_PROTOCOLS, frames);
    let mut counter = SampleCounter::new();
    let mut numbers = Vec::new();
    for frame in received {
        assert_eq!(frame.address.vlan, Some(tag));
        let Pdu::SampledValues(samples) = frame.pdu else { panic!("expected Sampled Values") };
        let number = counter.unwrap(samples.asdus[0].sample_count).unwrap();
        assert_eq!(float_values(&samples.asdus[0].samples), Ok(vec![number as f32; 10]));
        numbers.push(number);
    }
    assert!(numbers.into_iter().eq(first..first + u64::from(FRAMES)));
}

#[test]
fn events_arrive_with_their_retransmissions() {
    let frames = (0..FRAMES).map(|number| {
        let mut frame = goose(None, false, vec![Data::Boolean(number % 2 == 0)]);
        let Pdu::Goose(pdu) = &mut frame.pdu else { unreachable!() };
        // Four messages for each event.
        (pdu.state_number, pdu.sequence_number) = (1 + number / 4, number % 4);
        frame
    });
    let received = transfer(GOOSE.0, frames);
    let mut receiver = GooseReceiver::default();
    let classified = received.into_iter().map(|frame| {
        let Pdu::Goose(pdu) = frame.pdu else { panic!("expected GOOSE") };
        let (state, sequence) = (pdu.state_number, pdu.sequence_number);
        let now = units::Instant::ZERO;
        receiver.handle_message(now, state, sequence, pdu.time_allowed_to_live_ms)
    });
    let expected = (0..FRAMES).map(|number| match number % 4 {
        0 => Reception::Event { events_lost: 0, messages_lost: 0 },
        _ => Reception::Retransmission { messages_lost: 0 },
    });
    assert!(classified.eq(expected));
}

/// Sends frames from one namespace to another, and returns the received ones. The kernel removes the tag of a frame, and
/// reports it to sockets of all protocols only.
fn transfer(ether_type: u16, frames: impl Iterator<Item = Frame>) -> Vec<Frame> {
    let frames: Vec<_> = frames.map(|frame| encoded(&frame)).collect();
    let [left, right] = [(); 2].map(|()| Namespace::new().expect("the tests run as root"));
    let path = right.path();
    let made = left.enter(|| {
        let path = path.display();
        let lines = format!(
            "link add near type veth peer name far\nlink set far netns {path}\nlink set near up\n"
        );
        run_batch("ip", &lines, "test").unwrap();
    });
    made.unwrap();
    let receiver = right.enter(|| {
        run_batch("ip", "link set far up\n", "test").unwrap();
        wait_until_up("far");
        PacketSocket::open("far", ether_type).unwrap()
    });
    let receiver = receiver.unwrap();
    let sender = left.enter(|| {
        wait_until_up("near");
        PacketSocket::open("near", ether_type).unwrap()
    });
    let sender = sender.unwrap();
    let slices: Vec<_> = frames.iter().map(Vec::as_slice).collect();
    let mut sent = 0;
    while sent < slices.len() {
        sent += sender.send(&slices[sent..]).unwrap();
    }
    receive(&receiver, frames.len())
}

/// Receives until there are `count` frames or five seconds have passed.
#[expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]
fn receive(socket: &PacketSocket, count: usize) -> Vec<Frame> {
    let mut batch = FrameBatch::new(8, 2_048);
    let mut received = Vec::new();
    let begun = Instant::now();
    while received.len() < count && begun.elapsed() < Duration::from_secs(5) {
        socket.receive(&mut batch).unwrap();
        received.extend(batch.frames().filter_map(|arrived| {
            let mut frame = match Frame::decode(arrived.bytes) {
                // The kernel sends neighbour discovery over the devices as well.
                Err(FrameError::EtherType(_)) => return None,
                decoded => decoded.unwrap(),
            };
            frame.address.vlan = arrived.vlan.map(|tag| VlanTag {
                id: tag.control & 0xfff,
                priority: (tag.control >> 13) as u8,
                drop_eligible: tag.control & 0x1000 != 0,
                service: tag.protocol == 0x88a8,
            });
            Some(frame)
        }));
    }
    received
}

/// Waits for the operational state of a device (RFC 2863): the kernel drops frames until then.
#[expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]
fn wait_until_up(device: &str) {
    let begun = Instant::now();
    loop {
        let output =
            Command::new("ip").args(["-oneline", "link", "show", device]).output().unwrap();
        if String::from_utf8_lossy(&output.stdout).contains("state UP") {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{device} is not up after 10 s");
    }
}
