//! Frames between packet sockets in two namespaces, which a veth pair connects.

use std::process::Command;
use std::time::{Duration, Instant};

use gridhaul_core::wire::VlanTag;
use gridhaul_linux::{FrameBatch, Namespace, PacketSocket, run_batch};
use gridhaul_protocols::goose::{Data, GoosePdu, GooseReceiver, Reception};
use gridhaul_protocols::iec61850::{Application, FrameError, UtcTime};
use gridhaul_protocols::process_bus::{Frame, FrameAddress, GOOSE, Pdu};
use gridhaul_protocols::sampled_values::{
    Asdu, SampleCounter, SampledValues, Synchronisation, float_values, write_float_values,
};
use gridhaul_scenario::units;

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
        sampled_values(tag, number as u16, samples)
    });
    let received = transfer(PacketSocket::ALL_PROTOCOLS, frames);
    let mut counter = SampleCounter::new();
    let mut numbers = Vec::new();
    for frame in received {
        assert_eq!(frame.address.vlan, Some(tag));
        let Pdu::SampledValues(samples) = frame.pdu else { panic!("expected Sampled Values") };
        let number = counter.extend(samples.asdus[0].sample_count).unwrap();
        assert_eq!(float_values(&samples.asdus[0].samples), Ok(vec![number as f32; 10]));
        numbers.push(number);
    }
    assert!(numbers.into_iter().eq(first..first + u64::from(FRAMES)));
}

#[test]
fn events_arrive_with_their_retransmissions() {
    let frames = (0..FRAMES).map(|number| {
        // Four messages for each event.
        goose(1 + number / 4, number % 4)
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

fn sampled_values(tag: VlanTag, sample_count: u16, samples: Vec<u8>) -> Frame {
    let asdu = Asdu {
        id: "1234".into(),
        data_set: Some("node".into()),
        sample_count,
        revision: 1,
        refresh_time: None,
        synchronisation: Synchronisation::None,
        sample_rate: None,
        samples,
        sample_mode: None,
    };
    Frame {
        address: FrameAddress {
            destination: [0x01, 0x0c, 0xcd, 0x04, 0, 1],
            source: [2, 0, 0, 0, 0, 1],
            vlan: Some(tag),
        },
        application: Application { id: 0x4000, simulated: false },
        pdu: Pdu::SampledValues(SampledValues { asdus: vec![asdu] }),
    }
}

fn goose(state_number: u32, sequence_number: u32) -> Frame {
    Frame {
        address: FrameAddress {
            destination: [0x01, 0x0c, 0xcd, 0x01, 0, 1],
            source: [2, 0, 0, 0, 0, 1],
            vlan: None,
        },
        application: Application { id: 0x1000, simulated: false },
        pdu: Pdu::Goose(GoosePdu {
            control_block: "IED1LD0/LLN0$GO$trip".into(),
            time_allowed_to_live_ms: 2_000,
            data_set: "IED1LD0/LLN0$trip".into(),
            id: Some("trip".into()),
            time: UtcTime { seconds: 1_534_000_000, fraction: 0x20_0000, quality: 0x0a },
            state_number,
            sequence_number,
            simulation: false,
            revision: 1,
            needs_commissioning: false,
            values: vec![Data::Boolean(state_number.is_multiple_of(2))],
        }),
    }
}

/// Sends frames from one namespace to another, and returns the received ones. The kernel removes
/// the tag of a frame, and reports it to sockets of all protocols only.
fn transfer(ether_type: u16, frames: impl Iterator<Item = Frame>) -> Vec<Frame> {
    let encoded = |frame: Frame| {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).expect("the frame is permitted");
        bytes
    };
    let frames: Vec<_> = frames.map(encoded).collect();
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
