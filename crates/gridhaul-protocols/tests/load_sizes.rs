//! The loads `modbus`, `dlms`, `iec_104` and `mqtt` have the sizes and times of the codecs.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpListener;

use gridhaul_core::load::{Demand, Iec104, MessageFrame, SessionRules};
use gridhaul_core::random::RandomStream;
use gridhaul_protocols::dlms::{tag, write_length};
use gridhaul_protocols::endpoint::Endpoint;
use gridhaul_protocols::framing::{DlmsWrapper, Framing, MessageFraming};
use gridhaul_protocols::iec104::{Role, Station, Window};
use gridhaul_protocols::mqtt::{Client, QualityOfService, Settings, Version};
use gridhaul_scenario::scenario::{self, FlowEnd, Load, MqttVersion, Scenario};
use gridhaul_scenario::units::{Bytes, Duration, Instant};
use tokio_modbus::client::{Reader, tcp};

/// Sizes of the request and the response of a poll.
fn sizes(load: &Load) -> [usize; 2] {
    let Load::Exchange(exchange) = load else { panic!("a poll is an exchange: {load:?}") };
    let sizes: Vec<_> = exchange.steps.iter().map(|step| step.size.get() as usize).collect();
    sizes.try_into().expect("a request and a response")
}

#[test]
fn a_modbus_client_sends_and_accepts_frames_of_these_sizes() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for registers in [1, 20, scenario::Modbus::REGISTERS_MAX] {
        let load =
            scenario::Modbus { registers, every: Duration::from_secs(1), think: Duration::ZERO };
        let [request_size, response_size] = sizes(&load.load());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = vec![0; request_size];
            stream.read_exact(&mut request).unwrap();
            // The length in the header counts the bytes after it.
            let length = u16::from_be_bytes([request[4], request[5]]);
            assert_eq!(request.len(), 6 + usize::from(length));
            assert_eq!(request[7], 3, "read holding registers");
            let mut response = vec![0; response_size];
            response[..4].copy_from_slice(&request[..4]);
            let length = u16::try_from(response_size - 6).unwrap();
            response[4..6].copy_from_slice(&length.to_be_bytes());
            (response[6], response[7]) = (request[6], request[7]);
            response[8] = (2 * registers) as u8;
            stream.write_all(&response).unwrap();
        });
        let read = runtime.block_on(async {
            let mut client = tcp::connect(address).await.unwrap();
            client.read_holding_registers(0, registers).await.unwrap().unwrap()
        });
        assert_eq!(read.len(), usize::from(registers));
        server.join().unwrap();
    }
}

/// An APDU in the wrapper, whose end the codec finds.
fn wrapped(apdu: &[u8]) -> usize {
    let mut unit: Vec<u8> = [1_u16, 16, 1].into_iter().flat_map(u16::to_be_bytes).collect();
    unit.extend((apdu.len() as u16).to_be_bytes());
    unit.extend(apdu);
    let mut framing = MessageFraming::DlmsWrapper(DlmsWrapper::new(u16::MAX));
    assert_eq!(framing.next_message_end(&unit), Ok(Framing::End(unit.len())));
    unit.len()
}

#[test]
fn dlms_requests_and_responses_have_the_sizes_of_their_encoding() {
    // The value of a register, and 24 rows of a load profile with two numbers each.
    let mut register = vec![tag::DOUBLE_LONG_UNSIGNED];
    register.extend(1_234_u32.to_be_bytes());
    let mut profile = vec![tag::ARRAY];
    write_length(&mut profile, 24);
    for _ in 0..24 {
        profile.push(tag::STRUCTURE);
        write_length(&mut profile, 2);
        profile.extend(register.iter().chain(&register));
    }
    for data in [register, profile] {
        // Get-Request-Normal: tag, choice, invoke-id-and-priority, class, instance, attribute, no
        // access selection. Get-Response-Normal: tag, choice, invoke-id-and-priority, data.
        let request = [0xc0, 1, 0xc1, 0, 3, 1, 0, 1, 8, 0, 255, 2, 0];
        let mut response = vec![0xc4, 1, 0xc1, 0];
        response.extend(&data);
        let load = scenario::Dlms {
            data: Bytes::new(data.len() as u64),
            every: Duration::from_secs(1),
            think: Duration::ZERO,
        };
        assert_eq!(sizes(&load.load()), [wrapped(&request), wrapped(&response)]);
    }
}

/// Bytes that an end has written at a time.
#[derive(Debug, PartialEq, Eq)]
struct Written {
    millis: u64,
    end: FlowEnd,
    bytes: u64,
}

const ENDS: [FlowEnd; 2] = [FlowEnd::From, FlowEnd::To];

fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// Everything that has arrived by now, with the times of arrival in milliseconds.
fn arrived<T>(in_transit: &mut VecDeque<(u64, T)>, millis: u64) -> Vec<T> {
    let count = in_transit.iter().take_while(|(due, _)| *due <= millis).count();
    in_transit.drain(..count).map(|(_, item)| item).collect()
}

fn station_keys(every: u64, [k, w]: [u16; 2]) -> scenario::Iec104 {
    scenario::Iec104 {
        controlled: FlowEnd::From,
        values: 4,
        every: Duration::from_millis(every),
        synchronised: true,
        k,
        w,
        t1: None,
        t2: Duration::from_secs(10),
        t3: Duration::from_secs(20),
    }
}

/// Everything that both stations of the codec write over a connection with this delay.
fn written_by_codec(keys: &scenario::Iec104, delay: u64, until: u64) -> Vec<Written> {
    let window = Window { k: keys.k, w: keys.w };
    let mut stations = [Role::Controlled, Role::Controlling].map(|role| Station::new(role, window));
    start(&mut stations);
    // One value is the length of the message.
    let message = vec![7; 4 * (usize::from(keys.values) - 1)];
    let mut written = Vec::new();
    let mut in_transit: [VecDeque<(u64, Vec<u8>)>; 2] = Default::default();
    for millis in 0..until {
        for (index, station) in stations.iter_mut().enumerate() {
            for bytes in arrived(&mut in_transit[1 - index], millis) {
                station.handle_input(&bytes, at(millis)).unwrap();
            }
        }
        if at(millis).as_nanos().is_multiple_of(keys.every.as_nanos()) {
            stations[0].publish(&message, at(millis)).unwrap();
        }
        for (index, station) in stations.iter_mut().enumerate() {
            station.handle_time(at(millis)).unwrap();
            let mut bytes = Vec::new();
            station.poll_output(&mut bytes);
            if !bytes.is_empty() {
                let count = bytes.len() as u64;
                written.push(Written { millis, end: ENDS[index], bytes: count });
                in_transit[index].push_back((millis + delay, bytes));
            }
        }
    }
    written
}

/// Starts the data transfer without delay.
fn start(stations: &mut [Station; 2]) {
    for station in stations.iter_mut() {
        station.open(at(0));
    }
    for [from, to] in [[1, 0], [0, 1]] {
        let mut bytes = Vec::new();
        stations[from].poll_output(&mut bytes);
        stations[to].handle_input(&bytes, at(0)).unwrap();
    }
}

/// The same for the load.
fn written_by_load(keys: &scenario::Iec104, delay: u64, until: u64) -> Vec<Written> {
    let mut load = Iec104::new(keys, at(0), RandomStream::named(1, 0, "values", 0, "load"));
    let (mut written, mut in_transit) = (Vec::new(), [VecDeque::new(), VecDeque::new()]);
    for millis in 0..until {
        for end in ENDS {
            for frame in arrived(&mut in_transit[1 - end as usize], millis) {
                load.handle_frame(at(millis), end, frame);
            }
        }
        while load.poll_ready(at(millis)).is_some() {}
        let mut bytes = [0; 2];
        while let Some((end, frame)) = load.poll_frame(at(millis)) {
            bytes[end as usize] += load.size(frame);
            in_transit[end as usize].push_back((millis + delay, frame));
        }
        let new = ENDS.map(|end| Written { millis, end, bytes: bytes[end as usize] });
        written.extend(new.into_iter().filter(|new| new.bytes > 0));
        assert!(load.next_deadline() > at(millis));
    }
    written
}

#[test]
fn iec_104_stations_write_the_frames_of_the_codec_at_the_same_times() {
    // The window is open; it is full, also with small windows; only timers cause frames of the
    // controlling station; test frames on an idle connection.
    let cases = [(100, [12, 8], 30_u64), (100, [12, 8], 400), (20, [3, 2], 250), (7, [5, 5], 33)];
    let slow = [(3_000, [12, 8], 300), (45_000, [12, 8], 300), (100_000, [12, 8], 2_000)];
    for (every, [k, w], delay) in cases.into_iter().chain(slow) {
        let keys = station_keys(every, [k, w]);
        let until = if every < 1_000 { 20_000 } else { 250_000 };
        let [codec, load] =
            [written_by_codec, written_by_load].map(|written| written(&keys, delay, until));
        assert!(codec.len() > 10, "{codec:?}");
        assert_eq!(load, codec, "every {every} ms, k = {k}, w = {w}, delay {delay} ms");
    }
}

/// The packets of a broker in answer to those of a client, each with its type and its body.
fn broker_answers(version: Version, mut packets: &[u8]) -> Vec<u8> {
    let mut answers = Vec::new();
    while let [kind, rest @ ..] = packets {
        let header = rest.iter().take_while(|byte| **byte >= 128).count() + 1;
        let bytes = rest[..header].iter().rev();
        let length = bytes.fold(0, |length, byte| length * 128 + usize::from(byte & 127));
        let body = &rest[header..header + length];
        match kind {
            0x10 if version == Version::V3 => answers.extend([0x20, 2, 0, 0]),
            0x10 => answers.extend([0x20, 3, 0, 0, 0]),
            0x30 => {}
            0x32 => {
                let topic = usize::from(u16::from_be_bytes([body[0], body[1]]));
                answers.extend([0x40, 2, body[2 + topic], body[3 + topic]]);
            }
            0xc0 => answers.extend([0xd0, 0]),
            _ => panic!("packet {kind:#x}"),
        }
        packets = &rest[header + length..];
    }
    answers
}

/// Everything that a client of the codec and a broker write over a connection with this delay.
fn written_by_client(
    version: Version,
    keys: &scenario::Mqtt,
    delay: u64,
    until: u64,
) -> Vec<Written> {
    let quality = [QualityOfService::AtMostOnce, QualityOfService::AtLeastOnce];
    let mut client = Client::new(Settings {
        version,
        quality: quality[usize::from(keys.qos)],
        client: "c".repeat(keys.client_id.get() as usize),
        topic: "t".repeat(keys.topic.get() as usize),
        subscribes: false,
        login: None,
        keep_alive: keys.keep_alive,
    });
    client.open(at(0));
    let message = vec![7; keys.size.get() as usize];
    let (mut written, mut waiting) = (Vec::new(), 0);
    let mut in_transit: [VecDeque<(u64, Vec<u8>)>; 2] = Default::default();
    for millis in 0..until {
        for bytes in arrived(&mut in_transit[1], millis) {
            client.handle_input(&bytes, at(millis)).unwrap();
        }
        waiting += u32::from(at(millis).as_nanos().is_multiple_of(keys.every.as_nanos()));
        while waiting > 0 && client.publish(&message, at(millis)).is_ok() {
            waiting -= 1;
        }
        client.handle_time(at(millis)).unwrap();
        let mut bytes = [Vec::new(), Vec::new()];
        client.poll_output(&mut bytes[0]);
        for packets in arrived(&mut in_transit[0], millis) {
            bytes[1].extend(broker_answers(version, &packets));
        }
        for (end, bytes) in ENDS.into_iter().zip(bytes).filter(|(_, bytes)| !bytes.is_empty()) {
            written.push(Written { millis, end, bytes: bytes.len() as u64 });
            in_transit[end as usize].push_back((millis + delay, bytes));
        }
    }
    written
}

/// The same for the load.
fn written_by_session(
    version: &str,
    keys: &scenario::Mqtt,
    delay: u64,
    until: u64,
) -> Vec<Written> {
    let text = format!(
        "title = 't'\nduration = '1 h'\n[node]\na = {{}}\nb = {{}}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth.rate = '1 Mbit/s'\n\
         [flow.f]\nfrom = 'a'\nto = 'b'\nload.mqtt = {{ size = '{}', every = '{}', \
         qos = {}, keep_alive = '{}', synchronised = true, version = '{version}', \
         in_flight = {} }}",
        keys.size, keys.every, keys.qos, keys.keep_alive, keys.in_flight
    );
    let scenario = Scenario::from_toml(&text, "t.toml").unwrap();
    let flow = &scenario.flow["f"];
    let rules = SessionRules::of(&scenario, "f", flow);
    let random = RandomStream::named(1, 0, "f", 0, "load");
    let demand = Demand::new(&flow.load, at(0), random).acknowledged(rules.as_ref());
    let Demand::Messages(mut session) = demand else { panic!("{demand:?}") };
    session.handle_connection(at(0), Some(1));
    // The session of the codec ends with the connection: CONNECT of 5.0 has no expiry interval.
    let expiry = if version == "5.0" { 5 } else { 0 };
    let (mut written, mut in_transit) = (Vec::new(), [VecDeque::new(), VecDeque::new()]);
    for millis in 0..until {
        for end in ENDS {
            for frame in arrived(&mut in_transit[1 - end as usize], millis) {
                session.handle_frame(at(millis), end, frame);
            }
        }
        while session.poll_ready(at(millis)).is_some() {}
        let mut bytes = [0; 2];
        while let Some((end, frame)) = session.poll_frame(at(millis)) {
            let is_connect = frame == MessageFrame::Opening(0);
            bytes[end as usize] += session.size(frame) - if is_connect { expiry } else { 0 };
            in_transit[end as usize].push_back((millis + delay, frame));
        }
        let new = ENDS.map(|end| Written { millis, end, bytes: bytes[end as usize] });
        written.extend(new.into_iter().filter(|new| new.bytes > 0));
        assert!(session.next_deadline() > at(millis));
    }
    written
}

#[test]
fn mqtt_clients_write_the_packets_of_the_codec_at_the_same_times() {
    // Short and long packets, a slow round trip, and pings between rare messages.
    let cases = [(100, 50, 30_u64), (40, 20_000, 400), (25_000, 200, 300), (61_000, 70, 2_500)];
    for (every, size, delay) in cases {
        for (version, name) in [(Version::V3, "3.1.1"), (Version::V5, "5.0")] {
            for qos in [0, 1] {
                let keys = scenario::Mqtt {
                    size: Bytes::new(size),
                    every: Duration::from_millis(every),
                    synchronised: true,
                    qos,
                    version: if version == Version::V5 {
                        MqttVersion::V5
                    } else {
                        MqttVersion::V3_1_1
                    },
                    topic: Bytes::new(24),
                    client_id: Bytes::new(12),
                    in_flight: 1_000,
                    keep_alive: Duration::from_secs(10),
                };
                let until = if every < 1_000 { 5_000 } else { 200_000 };
                // The window is open for these delays.
                let codec = written_by_client(version, &keys, delay, until);
                let load = written_by_session(name, &keys, delay, until);
                assert!(codec.len() > 10, "{codec:?}");
                assert_eq!(load, codec, "every {every} ms, {size} B, QoS {qos}, {name}");
            }
        }
    }
}

/// Stations on a connection that begins at 0 s and is interrupted: the frames that they write, and
/// when each of them closes it, in milliseconds, until the `from` end has.
#[derive(Debug, PartialEq, Eq)]
struct Interrupted {
    written: Vec<Written>,
    closed: [Option<u64>; 2],
}

/// A connection with this delay, which carries nothing from `cut` on.
#[derive(Debug, Clone, Copy)]
struct Outage {
    delay: u64,
    cut: u64,
}

impl Outage {
    /// When a frame arrives that is written at a time.
    fn arrival(self, millis: u64) -> u64 {
        let arrival = millis + self.delay;
        if arrival < self.cut { arrival } else { u64::MAX }
    }
}

fn interrupted_codec(keys: &scenario::Iec104, outage: Outage) -> Interrupted {
    let window = Window { k: keys.k, w: keys.w };
    let mut stations = [Role::Controlling, Role::Controlled].map(|role| Station::new(role, window));
    stations.iter_mut().for_each(|station| station.open(at(0)));
    let message = vec![7; 4 * (usize::from(keys.values) - 1)];
    let (mut written, mut closed) = (Vec::new(), [None; 2]);
    // Values that are ready before the start of data transfer.
    let mut early = 0;
    let mut in_transit: [VecDeque<(u64, Vec<u8>)>; 2] = Default::default();
    let mut millis = 0;
    while closed[0].is_none() {
        for (index, station) in stations.iter_mut().enumerate() {
            let bytes = arrived(&mut in_transit[1 - index], millis).concat();
            station.handle_input(&bytes, at(millis)).unwrap();
        }
        early += usize::from(at(millis).as_nanos().is_multiple_of(keys.every.as_nanos()));
        while early > 0 && stations[1].publish(&message, at(millis)).is_ok() {
            early -= 1;
        }
        for (index, station) in stations.iter_mut().enumerate() {
            if closed[index].is_some() {
                continue;
            }
            closed[index] = station.handle_time(at(millis)).is_err().then_some(millis);
            let mut bytes = Vec::new();
            station.poll_output(&mut bytes);
            if !bytes.is_empty() && closed[index].is_none() {
                let count = bytes.len() as u64;
                written.push(Written { millis, end: ENDS[index], bytes: count });
                in_transit[index].push_back((outage.arrival(millis), bytes));
            }
        }
        millis += 1;
    }
    Interrupted { written, closed }
}

fn interrupted_load(keys: &scenario::Iec104, outage: Outage) -> Interrupted {
    let mut load = Iec104::new(keys, at(0), RandomStream::named(1, 0, "values", 0, "load"));
    load.handle_connection(at(0), Some(1));
    let (mut written, mut closed) = (Vec::new(), [None; 2]);
    let mut in_transit = [VecDeque::new(), VecDeque::new()];
    let mut millis = 0;
    while closed[0].is_none() {
        for end in ENDS {
            for frame in arrived(&mut in_transit[1 - end as usize], millis) {
                load.handle_frame(at(millis), end, frame);
            }
        }
        while load.poll_ready(at(millis)).is_some() {}
        let mut bytes = [0; 2];
        while let Some((end, frame)) = load.poll_frame(at(millis)) {
            bytes[end as usize] += load.size(frame);
            in_transit[end as usize].push_back((outage.arrival(millis), frame));
        }
        while let Some(end) = load.poll_abort() {
            closed[end as usize] = Some(millis);
        }
        let new = ENDS.map(|end| Written { millis, end, bytes: bytes[end as usize] });
        written.extend(new.into_iter().filter(|new| new.bytes > 0));
        millis += 1;
    }
    Interrupted { written, closed }
}

#[test]
fn iec_104_stations_start_and_end_a_connection_like_the_codec() {
    // Frames are in transit; the connection is idle; STARTDT is lost.
    for (every, cut) in [(1_000, 9_000), (700, 30_500), (60_000, 45_000), (1_000, 100)] {
        let keys = station_keys(every, [12, 8]);
        let t1 = Some(Duration::from_secs(15));
        let keys = scenario::Iec104 { controlled: FlowEnd::To, t1, ..keys };
        let outage = Outage { delay: 200, cut };
        let [codec, load] = [interrupted_codec, interrupted_load].map(|run| run(&keys, outage));
        assert_eq!(load, codec, "every {every} ms, cut at {cut} ms");
    }
}
