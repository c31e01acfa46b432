//! Bytes of messages: the formulas against the recorded bytes, which tshark dissects without a
//! warning.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use gridhaul_measure::broker::Broker;
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::ThroughBroker;
use gridhaul_protocols::iec104;
use gridhaul_protocols::mqtt::Version;
use gridhaul_protocols::overhead::{LowerLayers, direct, mqtt, tls};

use gridhaul_protocols::settings::{
    BrokerProgram, BrokerProtocol, BrokerSettings, ClientSettings, DirectKind, Mqtt, Pattern,
};
use gridhaul_testing::has_program;
use rustix::process::{Pid, Signal, kill_process};

use crate::endpoints::Conversation;
use crate::recorder::{Recorder, Segment, dissect, pieces};
use crate::{MESSAGES, assert_complete, plan, run, turn};

/// Bytes that the publisher sends for a message, after one that was sent before.
fn bytes_of_message(kind: DirectKind, payload: usize) -> u64 {
    let mut ends = Conversation::open(kind, 1_000).ends;
    ends[0].publish(&vec![0x55; payload], gridhaul_scenario::units::Instant::ZERO).unwrap();
    let mut bytes = Vec::new();
    ends[0].poll_output(&mut bytes);
    bytes.len() as u64
}

#[test]
fn the_formulas_are_the_lengths_of_messages() {
    // Longer messages of IEC 60870-5-104 wait for the window.
    for payload in 0..700_u64 {
        let pairs = [
            (DirectKind::Iec104(iec104::Window::STANDARD), direct::iec104(payload)),
            (DirectKind::ZeroMq(Pattern::Pipeline), direct::zeromq(payload)),
            (DirectKind::ZeroMq(Pattern::PublishSubscribe), direct::zeromq(payload)),
            (DirectKind::Nanomsg, direct::nanomsg(payload)),
            (DirectKind::Dnp3 { poll: None }, direct::dnp3(payload)),
            (DirectKind::Synchrophasor(payload as usize), direct::synchrophasor(payload)),
        ];
        for (kind, overhead) in pairs {
            assert_eq!(
                bytes_of_message(kind, payload as usize),
                payload + overhead,
                "{kind:?} {payload}"
            );
        }
    }
}

/// A conversation with messages of several lengths.
fn conversation(kind: DirectKind) -> Vec<Segment> {
    let mut conversation = Conversation::open(kind, 100_000);
    for payload in [0, 4, 33, 132, 300] {
        conversation.publish(&vec![0x41; payload]).unwrap();
    }
    conversation.segments
}

#[test]
fn tshark_dissects_protocols_without_a_broker() {
    if !has_program("tshark") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let dissected = |port, name, kind, fields: &[&str]| {
        dissect(path, port, name, &conversation(kind), fields).concat().join(" ").replace(',', " ")
    };
    let fields = ["iec60870_asdu.typeid", "iec60870_asdu.causetx", "iec60870_asdu.numix"];
    let text =
        dissected(2404, "iec60870_104", DirectKind::Iec104(iec104::Window::STANDARD), &fields);
    assert!(text.starts_with("36 3 1"), "{text}");
    let fields = ["synphasor.frtype", "synphasor.frsize"];
    let text = dissected(4712, "synphasor", DirectKind::Synchrophasor(300), &fields);
    assert!(text.contains("0x0003 "), "the configuration: {text}");
    assert!(text.contains(&format!("0x0000 {}", 24 + 300)), "the data: {text}");
    let text = dissected(20_000, "dnp3", DirectKind::Dnp3 { poll: None }, &["dnp3.al.func"]);
    // The master clears the restart bit (WRITE, 2) and enables unsolicited responses (20).
    assert!(text.starts_with("130 0 2 129 20 129 130 0"), "{text}");
}

/// Publishes by MQTT through a recorder.
fn record_mqtt(folder: &Path, version: Version) {
    let settings = BrokerSettings::default();
    let broker = Broker::start(BrokerProgram::Mosquitto, &Sites::loopback().to, settings).unwrap();
    let recorder = Recorder::start(broker.address().address);
    let mut address = broker.address();
    address.address = recorder.address;
    let mqtt = BrokerProtocol::Mqtt(Mqtt { version, ..Mqtt::default() });
    let clients = ClientSettings::new(mqtt, "test-topic");
    let protocol = ThroughBroker { clients, broker: address };
    assert_complete(&run(&plan(500.0, 50), &protocol), 50);
    let overhead =
        mqtt::Publish { topic: 10, version_5: version == Version::V5, identified: false };
    // tshark prints the remaining length: that after the fixed header of 1 + 2 bytes.
    let expected = (132 + overhead.overhead(132) - 3).to_string();
    let fields = ["mqtt.msgtype", "mqtt.topic", "mqtt.len"];
    let rows = dissect(folder, 1883, "mqtt", &recorder.segments(), &fields);
    let lengths: Vec<_> = rows.iter().flat_map(|row| row[2].split(',')).collect();
    let found = lengths.iter().filter(|&&length| length == expected).count();
    assert_eq!(found, 2 * MESSAGES, "both legs, {expected}: {lengths:?}");
}

#[test]
fn mqtt_of_both_versions_is_dissected_and_has_the_bytes_of_the_formula() {
    let _turn = turn();
    if !has_program("tshark") || !has_program("mosquitto") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for version in [Version::V3, Version::V5] {
        record_mqtt(folder.path(), version);
    }
}

/// Captures packets of a TCP port on the loopback device while `work` runs, and returns these
/// fields of each packet.
#[expect(clippy::disallowed_methods, reason = "tshark captures in real time")]
fn capture(port: u16, fields: &[&str], work: impl FnOnce()) -> Vec<Vec<u64>> {
    let mut tshark = Command::new("tshark");
    tshark.args(["-i", "lo", "-n", "-l", "-f", &format!("tcp port {port}"), "-T", "fields"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let mut tshark = tshark.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut notes = BufReader::new(tshark.stderr.take().unwrap()).lines();
    assert!(notes.any(|line| line.unwrap().contains("Capturing on")), "tshark does not capture");
    let printed = thread::spawn({
        let stdout = tshark.stdout.take().unwrap();
        move || BufReader::new(stdout).lines().map(Result::unwrap).collect::<Vec<_>>()
    });
    // tshark says so before its child process has opened the device.
    thread::sleep(Duration::from_secs(1));
    work();
    thread::sleep(Duration::from_secs(1));
    kill_process(Pid::from_child(&tshark), Signal::INT).unwrap();
    tshark.wait().unwrap();
    let rows = printed.join().unwrap();
    rows.iter().map(|row| row.split('\t').map(|field| field.parse().unwrap()).collect()).collect()
}

/// The layers of captured packets: the messages and headers of MQTT, and the headers below for each
/// packet.
#[test]
fn captured_packets_have_the_layers_of_the_formula() {
    let _turn = turn();
    if !has_program("tshark") || !has_program("mosquitto") {
        return;
    }
    let settings = BrokerSettings::default();
    let broker = Broker::start(BrokerProgram::Mosquitto, &Sites::loopback().to, settings).unwrap();
    let port = broker.address().address.port();
    let clients = ClientSettings::new(BrokerProtocol::Mqtt(Mqtt::default()), "test-topic");
    let protocol = ThroughBroker { clients, broker: broker.address() };
    let fields = ["frame.len", "ip.len", "ip.hdr_len", "tcp.hdr_len", "tcp.len"];
    let packets = capture(port, &fields, || {
        assert_complete(&run(&plan(500.0, 50), &protocol), 50);
    });
    let publish = mqtt::Publish { topic: 10, version_5: false, identified: false };
    let message = 132 + publish.overhead(132);
    let lower = LowerLayers::TCP_IPV4;
    let mut messages = 0;
    for packet in &packets {
        let [frame, ip, ip_header, tcp_header, data] = packet[..] else { panic!("{packet:?}") };
        // The handshake has further options, and a busy machine joins messages in a packet.
        if data < message {
            continue;
        }
        let layers = [frame - ip, ip_header, tcp_header];
        assert_eq!(layers, [lower.ethernet, lower.ip, lower.transport], "{packet:?}");
        messages += data / message;
    }
    // Both legs.
    assert_eq!(messages, 2 * MESSAGES as u64, "{packets:?}");
}

#[test]
fn tls_adds_the_bytes_of_a_record_to_each_message() {
    let _turn = turn();
    if !has_program("mosquitto") {
        return;
    }
    let settings = BrokerSettings { tls: true, ..BrokerSettings::default() };
    let broker = Broker::start(BrokerProgram::Mosquitto, &Sites::loopback().to, settings).unwrap();
    let recorder = Recorder::start(broker.address().address);
    let mut address = broker.address();
    address.address = recorder.address;
    let clients = ClientSettings::new(BrokerProtocol::Mqtt(Mqtt::default()), "test-topic");
    let protocol = ThroughBroker { clients, broker: address };
    assert_complete(&run(&plan(500.0, 50), &protocol), 50);
    let publish = mqtt::Publish { topic: 10, version_5: false, identified: false };
    let expected = 132 + publish.overhead(132) + tls::RECORD_OVERHEAD;
    let segments = recorder.segments();
    // A record's header has the length of the rest in bytes 3 and 4 (RFC 8446, section 5.1).
    let first = |bytes: &[u8]| match bytes {
        [_, _, _, high, low, ..] => 5 + usize::from(u16::from_be_bytes([*high, *low])),
        _ => bytes.len(),
    };
    for from_client in [true, false] {
        let records = pieces(&segments, from_client, first);
        let found = records.iter().filter(|record| record.len() as u64 == expected).count();
        assert_eq!(found, MESSAGES, "from the client: {from_client}");
    }
    let text: Vec<u8> = segments.iter().flat_map(|segment| segment.bytes.clone()).collect();
    assert!(!text.windows(10).any(|bytes| bytes == b"test-topic"), "the topic is encrypted");
}
