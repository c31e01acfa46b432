//! MQTT with the broker behind a link of 20 ms, with and without Nagle's algorithm.

use std::process::Command;
use std::{thread, time};

use gridhaul_measure::broker::Broker;
use gridhaul_measure::method::{Message, Summary};
use gridhaul_measure::place::{Site, Sites};
use gridhaul_measure::protocol::{Protocol, ProtocolError, ThroughBroker};
use gridhaul_measure::transfer::Plan;
use gridhaul_protocols::mqtt::{QualityOfService, Version};
use gridhaul_protocols::settings::{
    BrokerProgram, BrokerProtocol, BrokerSettings, ClientSettings, Mqtt,
};
use gridhaul_scenario::units::{Duration, Instant};

use crate::{
    Measured, longest_gap_ms, median, millis, on_network, plan, repeated, run, scenario, turn,
};

pub(crate) fn mqtt(broker: &Broker, nodelay: bool) -> ThroughBroker {
    with_qos(broker, nodelay, QualityOfService::AtMostOnce)
}

fn with_qos(broker: &Broker, nodelay: bool, qos: QualityOfService) -> ThroughBroker {
    let mqtt = BrokerProtocol::Mqtt(Mqtt { version: Version::V3, qos });
    let clients = ClientSettings { nodelay, ..ClientSettings::new(mqtt, "test-topic") };
    ThroughBroker { clients, broker: broker.address() }
}

/// mosquitto at an end of the network.
pub(crate) fn mosquitto(site: &Site<'_>, nodelay: bool) -> Broker {
    Broker::start(BrokerProgram::Mosquitto, site, BrokerSettings { nodelay, tls: false }).unwrap()
}

/// Mean latency in milliseconds.
fn mean(summary: &Summary) -> f64 {
    summary.from_send.mean().map_or(f64::NAN, millis)
}

/// Publisher and subscriber at one end, the broker at the other; `nodelay` at all three.
fn behind_20_ms(nodelay: bool, expected: impl Fn(&Summary) -> bool) -> Measured {
    let scenario = scenario("delay = \"20 ms\"", "delay = \"20 ms\"");
    let measured = |sites: &Sites<'_>| {
        let broker = mosquitto(&sites.to, nodelay);
        run(&plan(100.0, 400), &mqtt(&broker, nodelay), sites)
    };
    repeated(expected, || on_network(&scenario, "test", measured).unwrap())
}

#[test]
fn without_nagle_a_message_takes_two_link_delays() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let is_expected = |summary: &Summary| (40.0..42.0).contains(&mean(summary));
    let Measured { outcome, is_disturbed, .. } = behind_20_ms(true, is_expected);
    let summary = &outcome.summary;
    assert_eq!((summary.counts.messages, summary.counts.lost), (400, 0), "{:?}", summary.counts);
    assert!(is_expected(summary) || is_disturbed, "{} ms", mean(summary));
    // A busy machine delays some messages. Nagle's algorithm, even at one of the connections only,
    // would delay nearly all of them, by 20 ms on average: half a round trip.
    assert!((40.0..60.0).contains(&median(summary)), "{} ms", median(summary));
}

#[test]
fn nagle_at_clients_and_broker_more_than_doubles_the_latency() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    // Each of the two connections holds messages back until the previous segment is acknowledged.
    let is_expected = |summary: &Summary| (85.0..120.0).contains(&mean(summary));
    let Measured { outcome, is_disturbed, .. } = behind_20_ms(false, is_expected);
    let summary = &outcome.summary;
    assert!(is_expected(summary) || is_disturbed, "{} ms", mean(summary));
    assert!(mean(summary) >= 85.0, "{} ms", mean(summary));
    assert_eq!(summary.counts.lost, 0);
}

#[test]
fn a_missing_broker_is_an_error_with_its_address() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let sites = Sites::loopback();
    let mut broker = mosquitto(&sites.to, true);
    broker.kill().unwrap();
    let protocol = mqtt(&broker, true);
    let error = protocol.connect(&sites).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, ProtocolError::Connect { .. }), "{text}");
    assert!(text.contains(&broker.address().address.to_string()), "{text}");
    assert!(text.to_lowercase().contains("refused"), "{text}");
}

/// The broker is killed in the middle of a run and is back half a second later.
#[test]
#[expect(clippy::disallowed_methods, reason = "a fault in the middle of a run in real time")]
fn a_broker_that_is_killed_and_restarted_is_a_marked_gap_and_no_error() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let sites = Sites::loopback();
    let mut broker = mosquitto(&sites.to, true);
    let protocol = mqtt(&broker, true);
    let plan = plan(100.0, 400);
    let (outcome, rows) = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(time::Duration::from_millis(2_500));
            broker.kill().unwrap();
            thread::sleep(time::Duration::from_millis(500));
            broker.restart(&sites.to).unwrap();
        });
        run(&plan, &protocol, &sites)
    });
    assert_eq!(rows.len(), 500, "every message has a row");
    let counts = outcome.summary.counts;
    // Publisher and subscriber have connections of their own.
    assert!(outcome.reconnections.len() >= 2 && counts.refused > 10, "{counts:?}");
    assert!(outcome.refusal.is_some_and(|reason| reason.contains("no connection")));
    assert!(counts.after_reconnection > 0 && outcome.summary.from_send.count() > 0, "{counts:?}");
    assert!(longest_gap_ms(&outcome.summary) >= 450.0);
}

/// A broker that is slow for less than the keep-alive interval delays messages, and the latency
/// says so. One that does not answer for longer has failed: the clients connect again, and messages
/// are refused meanwhile.
#[test]
#[expect(clippy::disallowed_methods, reason = "faults in the middle of a run in real time")]
fn a_slow_broker_is_a_latency_and_a_silent_one_a_lost_connection() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let sites = Sites::loopback();
    let broker = mosquitto(&sites.to, true);
    let protocol = mqtt(&broker, true);
    let clients = ClientSettings { keep_alive: Duration::from_secs(1), ..protocol.clients };
    let protocol = ThroughBroker { clients, ..protocol };
    let sleep = |millis| thread::sleep(time::Duration::from_millis(millis));
    let stopped = |millis| {
        let signal = |name: &str| {
            let process = broker.process_id().to_string();
            assert!(Command::new("kill").args(["-s", name, &process]).status().unwrap().success());
        };
        signal("STOP");
        sleep(millis);
        signal("CONT");
    };
    let (outcome, rows) = thread::scope(|scope| {
        scope.spawn(|| {
            sleep(1_300);
            stopped(500);
            // On a busy machine, the first message follows some time after the start of this
            // thread.
            sleep(1_500);
            stopped(2_500);
        });
        run(&plan(100.0, 550), &protocol, &sites)
    });
    // Sent before the second fault: nothing is lost, and the last message of the first fault waited
    // for nearly all of it.
    let first: Vec<_> = rows.iter().filter(|message| message.sequence < 200).collect();
    assert!(first.iter().all(|message| message.received.is_some()), "{:?}", outcome.summary.counts);
    let latency = |message: &&Message| {
        message.received.zip(message.sent).map(|(to, from)| millis(to.since(from)))
    };
    let longest = first.iter().filter_map(latency).fold(0.0, f64::max);
    assert!((450.0..2_000.0).contains(&longest), "{longest} ms");
    let summary = &outcome.summary;
    // Publisher and subscriber have connections of their own.
    assert!(outcome.reconnections.len() >= 2, "{:?}", outcome.reconnections);
    let before = |at: &&Instant| **at < Instant::ZERO + Duration::from_millis(3_000);
    assert_eq!(outcome.reconnections.iter().find(before), None);
    assert!(summary.counts.refused > 0, "{:?}", summary.counts);
    assert!(longest_gap_ms(summary) >= 2_400.0, "{} ms", longest_gap_ms(summary));
}

/// Data that does not fit into the send buffer waits in the client until TCP delivers it.
#[test]
fn an_outage_that_fills_the_send_buffer_loses_no_message() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let outage = "delay = \"5 ms\", outage = [{ start = \"2 s\", length = \"7 s\" }]";
    let scenario = scenario(outage, outage);
    let measured = |sites: &Sites<'_>| {
        let broker = mosquitto(&sites.to, true);
        // The backlog of 1.4 MB exceeds the send buffer; the retransmission timeout may double
        // until it exceeds the outage.
        let plan = Plan { bytes: 2_000, horizon: Duration::from_secs(20), ..plan(100.0, 900) };
        run(&plan, &mqtt(&broker, true), sites)
    };
    let outcome = on_network(&scenario, "test", measured).unwrap().0;
    let counts = outcome.summary.counts;
    assert_eq!((counts.lost, counts.refused), (0, 0), "{counts:?}");
    assert!(outcome.reconnections.is_empty(), "{:?}", outcome.reconnections);
    assert!(longest_gap_ms(&outcome.summary) >= 6_900.0);
}

#[test]
fn a_message_at_least_once_is_not_lost_on_a_link_with_losses() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let lossy = "delay = \"5 ms\", loss = { bernoulli = \"1 %\" }";
    let measured = |sites: &Sites<'_>| {
        let broker = mosquitto(&sites.to, true);
        let qos = QualityOfService::AtLeastOnce;
        run(&plan(100.0, 400), &with_qos(&broker, true, qos), sites)
    };
    let (outcome, _) = on_network(&scenario(lossy, lossy), "test", measured).unwrap();
    let summary = &outcome.summary;
    assert_eq!((summary.counts.messages, summary.counts.lost), (400, 0), "{:?}", summary.counts);
    // A lost segment waits for its retransmission, at least for a round trip.
    assert!(summary.from_send.max().is_some_and(|latency| millis(latency) > 30.0));
}
