//! Captures at both ends of links with known delays and losses, and receive times of the kernel.

use gridhaul_measure::method::{Message, Phase, Stage, Summary};
use gridhaul_measure::place::{Carrier, Sites};
use gridhaul_measure::protocol::{DataSet, FrameIdentity, Protocol, SampledValueStream, Udp};
use gridhaul_measure::transfer::{Outcome, Plan};
use gridhaul_protocols::capture::{CapturePoint, Route};
use gridhaul_protocols::iec104;
use gridhaul_protocols::settings::{Direct, DirectKind, ReconnectPolicy};

use crate::mqtt::{mosquitto, mqtt};
use crate::{millis, on_links, on_network, plan, run, scenario, turn, undisturbed};

fn captured(rate: f64, messages: u64, route: Route) -> Plan {
    Plan { capture: Some(route), ..plan(rate, messages) }
}

/// Median of a part of the path in milliseconds.
fn median(summary: &Summary, stage: Stage) -> f64 {
    let quantile = summary.path.as_deref().and_then(|path| path.stage(stage).quantile(0.5));
    quantile.map_or(f64::NAN, |quantile| millis(quantile.value))
}

/// Asserts that the captures are complete and their times in order.
fn assert_consistent(outcome: &Outcome, rows: &[Message]) {
    let report = outcome.capture.as_ref().unwrap();
    assert_eq!((report.dropped_packets, report.unusable_packets), (0, 0), "{report:?}");
    assert_eq!((report.counters.missed_bytes, &report.fault), (0, &None), "{report:?}");
    assert_eq!(outcome.summary.path.as_deref().unwrap().contradictory, 0);
    for row in rows.iter().filter(|row| row.received.is_some()) {
        let seen = CapturePoint::ALL.map(|point| row.captured.at(point));
        assert!(seen.iter().flatten().is_sorted(), "{row:?}");
        assert!(seen[0].is_some() && seen[3].is_some(), "{row:?}");
    }
}

/// The legs of MQTT over a link whose directions differ: 20 ms to the broker and 30 ms from it.
#[test]
fn the_legs_have_the_delays_of_their_links_and_add_up_to_the_latency() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let scenario = scenario("delay = \"20 ms\"", "delay = \"30 ms\"");
    let measured = |sites: &Sites<'_>| {
        let broker = mosquitto(&sites.to, true);
        let plan = captured(100.0, 200, Route::Broker(broker.address().address));
        run(&plan, &mqtt(&broker, true), sites)
    };
    let is_expected = |summary: &Summary| {
        (20.0..21.0).contains(&median(summary, Stage::ToBroker))
            && (30.0..31.0).contains(&median(summary, Stage::FromBroker))
            && median(summary, Stage::Broker) < 1.0
    };
    let (outcome, rows) =
        undisturbed(is_expected, || on_network(&scenario, "test", measured).unwrap());
    assert_consistent(&outcome, &rows);
    assert_eq!(outcome.summary.path.as_deref().unwrap().captured, 200);
    let medians = Stage::ALL.map(|stage| median(&outcome.summary, stage));
    assert!(is_expected(&outcome.summary), "{medians:?}");
    for row in &rows {
        let seen = CapturePoint::ALL.map(|point| row.captured.at(point).unwrap());
        assert!(millis(seen[1].since(seen[0])) >= 20.0 && millis(seen[3].since(seen[2])) >= 30.0);
        // The captures are a second measurement: both clients can only add to their time.
        let latency = row.latency_from_send().unwrap();
        assert!(latency.as_secs_f64() >= seen[3].since(seen[0]).as_secs_f64() - 1e-4, "{row:?}");
    }
}

#[test]
fn on_the_loopback_device_both_legs_are_told_apart() {
    let Some(_turn) = turn(&["mosquitto"]) else { return };
    let sites = Sites::loopback();
    let broker = mosquitto(&sites.to, true);
    for one_connection in [false, true] {
        let plan = captured(200.0, 200, Route::Broker(broker.address().address));
        let mut protocol = mqtt(&broker, true);
        protocol.clients.one_connection = one_connection;
        let (outcome, rows) = run(&plan, &protocol, &sites);
        assert_consistent(&outcome, &rows);
        let path = outcome.summary.path.as_deref().unwrap();
        assert_eq!(path.stage(Stage::Broker).count(), 200, "one connection: {one_connection}");
    }
}

#[test]
fn datagrams_are_lost_after_their_departure() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\", loss = { bernoulli = \"5 %\" }", "delay = \"5 ms\"");
    let plan = captured(1_000.0, 1_000, Route::Direct);
    let (outcome, rows) = on_network(&scenario, "test", |sites| run(&plan, &Udp, sites)).unwrap();
    assert_consistent(&outcome, &rows);
    let (path, counts) = (outcome.summary.path.as_deref().unwrap(), outcome.summary.counts);
    assert!(counts.lost > 0 && path.captured == 1_000, "{counts:?}");
    assert_eq!(path.lost_after(Some(CapturePoint::PublisherDeparture)), counts.lost);
}

#[test]
fn a_lost_segment_of_tcp_is_retransmitted_on_its_leg() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\", loss = { bernoulli = \"3 %\" }", "delay = \"5 ms\"");
    let reconnect = ReconnectPolicy::default();
    let protocol = Direct { kind: DirectKind::Nanomsg, port: 0, nodelay: true, reconnect };
    let plan = captured(200.0, 300, Route::Direct);
    let (outcome, rows) =
        on_network(&scenario, "test", |sites| run(&plan, &protocol, sites)).unwrap();
    assert_consistent(&outcome, &rows);
    assert_eq!(outcome.summary.counts.lost, 0);
    let counters = outcome.capture.unwrap().counters;
    assert!(counters.retransmissions > 0, "{counters:?}");
    let longest = outcome.summary.path.unwrap().stage(Stage::BetweenClients).max().unwrap();
    // A message waits for the retransmission of an earlier one, at least for a round trip.
    assert!(millis(longest) > 15.0, "{longest:?}");
}

#[test]
fn messages_that_a_protocol_divides_are_found_in_captures() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\"", "delay = \"5 ms\"");
    for kind in [DirectKind::Iec104(iec104::Window::STANDARD), DirectKind::Dnp3 { poll: None }] {
        let reconnect = ReconnectPolicy::default();
        let protocol = Direct { kind, port: 0, nodelay: true, reconnect };
        let plan = captured(50.0, 100, Route::Decoded(kind));
        let (outcome, rows) =
            on_network(&scenario, "test", |sites| run(&plan, &protocol, sites)).unwrap();
        assert_consistent(&outcome, &rows);
        let path = outcome.summary.path.unwrap();
        assert_eq!((path.captured, outcome.summary.counts.lost), (100, 0), "{kind:?}");
        let link = path.stage(Stage::BetweenClients).quantile(0.5).unwrap().value;
        assert!(millis(link) >= 5.0, "{kind:?}: {link:?}");
    }
}

#[test]
fn the_kernel_receives_datagrams_and_frames_before_the_program() {
    let Some(_turn) = turn(&[]) else { return };
    let scenario = scenario("delay = \"5 ms\"", "delay = \"5 ms\"");
    let identity = FrameIdentity { vlan: None, application: 0x4000 };
    let sampled_values =
        SampledValueStream { identity, id: "stream".into(), data_set: DataSet::Raw };
    let protocols: [(&dyn Protocol, Carrier); 2] =
        [(&Udp, Carrier::Packets), (&sampled_values, Carrier::Frames)];
    for (protocol, carrier) in protocols {
        let plan = captured(500.0, 200, Route::Direct);
        let work = |sites: &Sites<'_>| run(&plan, protocol, &sites.with_kernel_times());
        let ((outcome, rows), _) = on_links(&scenario, "test", carrier, work).unwrap();
        assert_consistent(&outcome, &rows);
        let kernel = outcome.summary.kernel.as_deref().unwrap();
        assert_eq!(kernel.to_program.count(), 200);
        assert!(
            kernel.from_send.quantile(0.5).is_some_and(|quantile| millis(quantile.value) >= 5.0)
        );
        for row in rows.iter().filter(|row| row.phase == Phase::Measured) {
            let (received, kernel) = (row.received.unwrap(), row.kernel_received.unwrap());
            assert!(received >= kernel, "{row:?}");
            // Two sockets of the kernel record the same packet.
            let seen = row.captured.at(CapturePoint::SubscriberArrival).unwrap();
            let difference = (seen.as_secs_f64() - kernel.as_secs_f64()).abs();
            assert!(difference < 5e-4, "{row:?}");
        }
    }
}
