//! AMQP 0-9-1 and 1.0 through RabbitMQ. One broker serves all checks: its start takes most of the
//! time.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{thread, time};

use gridhaul_measure::broker::Broker;
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::{Protocol, ProtocolError, ThroughBroker};
use gridhaul_measure::transfer::{Plan, measure};
use gridhaul_protocols::overhead::amqp_0_9_1;
use gridhaul_protocols::settings::{
    Amqp10, Amqp091, BrokerAddress, BrokerProgram, BrokerProtocol, BrokerSettings, ClientSettings,
    Credentials,
};
use gridhaul_scenario::units::Duration;
use gridhaul_testing::has_program;

use crate::peers::{Peer, messages, printed, python, receive};
use crate::recorder::{Recorder, dissect, pieces};
use crate::{MESSAGES, assert_complete, plan, run, turn};

const QUEUE: &str = "test-queue";

fn amqp_0_9_1(amqp: Amqp091, broker: BrokerAddress) -> ThroughBroker {
    ThroughBroker { clients: ClientSettings::new(BrokerProtocol::Amqp091(amqp), QUEUE), broker }
}

fn amqp_1_0(settled: bool, broker: BrokerAddress) -> ThroughBroker {
    let amqp = BrokerProtocol::Amqp10(Amqp10 { settled, ..Amqp10::default() });
    ThroughBroker { clients: ClientSettings::new(amqp, "test-node"), broker }
}

fn rabbitmq(tls: bool) -> Broker {
    let settings = BrokerSettings { tls, ..BrokerSettings::default() };
    Broker::start(BrokerProgram::RabbitMq, &Sites::loopback().to, settings).unwrap()
}

#[test]
fn messages_pass_through_rabbitmq_with_tls() {
    let _turn = turn();
    if !has_program("rabbitmq-server") {
        return;
    }
    let broker = rabbitmq(true);
    let protocols =
        [amqp_0_9_1(Amqp091::default(), broker.address()), amqp_1_0(true, broker.address())];
    for protocol in protocols {
        assert_complete(&run(&plan(1_000.0, 100), &protocol), 100);
    }
}

#[test]
fn messages_pass_through_rabbitmq() {
    let _turn = turn();
    if !has_program("rabbitmq-server") || !has_program("tshark") {
        return;
    }
    let mut broker = rabbitmq(false);
    every_setting_delivers_every_message(&broker);
    wrong_credentials_are_an_error(&broker);
    let folder = tempfile::tempdir().unwrap();
    the_bytes_are_those_of_the_formula(&broker, folder.path());
    other_clients_exchange_messages(&broker);
    a_killed_broker_is_a_marked_gap(&mut broker);
}

fn every_setting_delivers_every_message(broker: &Broker) {
    let address = || broker.address();
    let plain = amqp_0_9_1(Amqp091::default(), address());
    let acknowledging = Amqp091 { prefetch: 10, persistent: true, ..Amqp091::default() };
    let mut acknowledged = amqp_0_9_1(acknowledging, address());
    acknowledged.clients.one_connection = true;
    let fan_out = Amqp091 { fan_out: true, ..Amqp091::default() };
    let fan_out = amqp_0_9_1(fan_out, address());
    let settled = amqp_1_0(true, address());
    let mut unsettled = amqp_1_0(false, address());
    (unsettled.clients.one_connection, unsettled.clients.nodelay) = (true, false);
    let protocols: [&dyn Protocol; 5] = [&plain, &acknowledged, &fan_out, &settled, &unsettled];
    for protocol in protocols {
        assert_complete(&run(&plan(1_000.0, 100), protocol), 100);
    }
}

fn wrong_credentials_are_an_error(broker: &Broker) {
    let mut address = broker.address();
    address.credentials = Some(Credentials { user: "guest".into(), password: "wrong".into() });
    let protocols: [&dyn Protocol; 2] =
        [&amqp_0_9_1(Amqp091::default(), address.clone()), &amqp_1_0(true, address.clone())];
    for protocol in protocols {
        let error = protocol.connect(&Sites::loopback()).unwrap_err();
        assert!(matches!(error, ProtocolError::Connect { .. }), "{error}");
        let text = error.to_string().to_lowercase();
        let is_named = ["refused", "auth", "sasl"].iter().any(|word| text.contains(word));
        assert!(text.contains(&address.address.to_string()) && is_named, "{text}");
        assert!(!text.contains("wrong"), "the password is not printed: {text}");
    }
}

fn the_bytes_are_those_of_the_formula(broker: &Broker, folder: &Path) {
    let through = |recorder: &Recorder| {
        let mut address = broker.address();
        address.address = recorder.address;
        address
    };
    let recorder = Recorder::start(broker.address().address);
    assert_complete(
        &run(&plan(500.0, 50), &amqp_0_9_1(Amqp091::default(), through(&recorder))),
        50,
    );
    let segments = recorder.segments();
    dissect(folder, 5672, "amqp", &segments, &[]);
    let names =
        amqp_0_9_1::Names { exchange: 0, routing_key: QUEUE.len() as u64, consumer_tag: 31 };
    let with = |from_client, length: u64| {
        let pieces = pieces(&segments, from_client, first_message_or_frame);
        pieces.iter().filter(|piece| piece.len() as u64 == length).count()
    };
    let published = with(true, 132 + names.publish_overhead());
    let delivered = with(false, 132 + names.deliver_overhead());
    assert_eq!((published, delivered), (MESSAGES, MESSAGES));
    let recorder = Recorder::start(broker.address().address);
    assert_complete(&run(&plan(500.0, 50), &amqp_1_0(true, through(&recorder))), 50);
    dissect(folder, 5672, "amqp", &recorder.segments(), &[]);
}

/// Length of the message that the bytes begin with (its method, header and body are three frames),
/// or of another frame, or of the protocol's header (AMQP 0-9-1, sections 2.3.5 and 4.2.2).
fn first_message_or_frame(bytes: &[u8]) -> usize {
    let frame = |at: usize| match bytes[at..] {
        [b'A', b'M', b'Q', b'P', ..] => 8,
        [_, _, _, b3, b2, b1, b0, ..] => 8 + u32::from_be_bytes([b3, b2, b1, b0]) as usize,
        _ => bytes.len() - at,
    };
    // `basic.publish` and `basic.deliver` (class 60) have contents.
    let has_contents = bytes[0] == 1 && matches!(bytes.get(7..11), Some([0, 60, 0, 40 | 60]));
    let frames = if has_contents { 3 } else { 1 };
    (0..frames).fold(0, |at, _| if at < bytes.len() { at + frame(at) } else { at })
}

fn other_clients_exchange_messages(broker: &Broker) {
    let Some(python) = python() else { return };
    let port = broker.address().address.port();
    let both = Peer::start(&python, "amqp_0_9_1", port, "queue-of-pika");
    let protocols: [(&dyn Protocol, _, _); 2] = [
        (&amqp_0_9_1(Amqp091::default(), broker.address()), "amqp_0_9_1_sender", QUEUE),
        (&amqp_1_0(true, broker.address()), "amqp_1_0_sender", "/topic/test-node"),
    ];
    for (protocol, role, name) in protocols {
        let mut connected = protocol.connect(&Sites::loopback()).unwrap();
        let peer = Peer::start(&python, role, port, name);
        assert_eq!(receive(&mut *connected.subscriber, 4), messages(), "{role}");
        peer.end();
    }
    assert_eq!(both.end(), printed());
}

#[expect(clippy::disallowed_methods, reason = "a fault in the middle of a run in real time")]
fn a_killed_broker_is_a_marked_gap(broker: &mut Broker) {
    let protocol = amqp_0_9_1(Amqp091::default(), broker.address());
    let plan = Plan { horizon: Duration::from_secs(1), ..plan(100.0, 400) };
    let (sites, stop, sent) = (Sites::loopback(), AtomicBool::new(false), AtomicU64::new(0));
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            // The first hundred messages are warm-up.
            while sent.load(Ordering::Relaxed) < 200 {
                thread::sleep(time::Duration::from_millis(10));
            }
            broker.kill().unwrap();
        });
        let observe = |number| sent.store(number, Ordering::Relaxed);
        measure(&plan, &protocol, &sites, &mut |_| Ok(()), &observe, &stop).unwrap()
    });
    let counts = outcome.summary.counts;
    assert_eq!((outcome.fault, counts.messages), (None, 400));
    // 300 messages are left, fewer on a busy machine.
    assert!(counts.refused > 50 && counts.refused < 350, "{counts:?}");
    assert!(outcome.refusal.is_some_and(|reason| reason.contains("no connection")));
    assert!(outcome.summary.from_send.count() > 50, "messages before the fault are measured");
    // The port is closed now.
    let error = protocol.connect(&Sites::loopback()).unwrap_err().to_string();
    assert!(error.contains(&broker.address().address.to_string()), "{error}");
}
