//! Verdicts of synthetic measurements.

use crate::experiment::reserve::paper::{Column, Protocol};
use crate::traffic::{Phases, Traffic};

use super::super::extent::Extent;
use super::super::outages::{Client, Fault, OutageCase};
use super::super::test_8::Measured;
use super::*;
use crate::experiment::cells::CellResult;
use crate::settings::Settings;

/// A measurement with these means in seconds.
fn cell(key: CellKey, means: &[f64]) -> Cell {
    let repetition = |&mean_s: &f64| CellResult {
        messages: 100,
        missing: 0,
        mean_s,
        deviation_s: mean_s,
        p2_s: mean_s,
        p25_s: mean_s,
        p50_s: None,
        p75_s: mean_s,
        p98_s: mean_s,
        p999_s: None,
        max_s: mean_s,
        invalid: Vec::new(),
        settings: Settings::default(),
    };
    let repetitions = means.iter().map(repetition).collect();
    Cell { repetitions, ..Cell::new(key, &Extent::new(true, 6)) }
}

/// Six repetitions around a mean, 1 % from the lowest to the highest.
fn around(mean: f64) -> [f64; 6] {
    [0.995, 0.997, 0.999, 1.001, 1.003, 1.005].map(|share| share * mean)
}

fn of_cells(cells: &[Cell], name: &str) -> Verdict {
    of(&Measurements { cells, ..Measurements::default() }, name)
}

fn of(measurements: &Measurements<'_>, name: &str) -> Verdict {
    let claims = claims(measurements, &Tables::published(), true);
    claims.into_iter().find(|claim| claim.recorded.name == name).unwrap().measured_verdict
}

#[test]
fn each_recorded_claim_has_a_comparison_that_is_open_without_measurements() {
    let without_results =
        |is_whole| claims(&Measurements::default(), &Tables::published(), is_whole);
    for claim in without_results(false) {
        assert_ne!(claim.measured, UNKNOWN, "{}", claim.recorded.name);
        let needs_no_measurement = claim.recorded.name == "corruption-is-detected";
        let expected = if needs_no_measurement { Verdict::Agrees } else { Verdict::Unknown };
        assert_eq!(claim.measured_verdict, expected, "{}", claim.recorded.name);
        assert!(claim.as_recorded, "{}", claim.recorded.name);
    }
    // A whole run whose measurements have all failed confirms nothing.
    assert_eq!(without_results(true).iter().filter(|claim| claim.as_recorded).count(), 1);
}

#[test]
fn means_are_compared_with_their_intervals() {
    let ethernet = |udp: &[f64], mqtt: &[f64]| {
        [("udp", udp), ("mqtt", mqtt)]
            .map(|(protocol, means)| cell(CellKey::uplink("ethernet", protocol, 100), means))
    };
    let verdict =
        |udp: &[f64], mqtt: &[f64]| of_cells(&ethernet(udp, mqtt), "ethernet-udp-below-mqtt");
    assert_eq!(verdict(&around(1e-4), &around(5e-4)), Verdict::Agrees);
    assert_eq!(verdict(&around(5e-4), &around(1e-4)), Verdict::Differs);
    assert_eq!(verdict(&around(4.9e-4), &around(5e-4)), Verdict::Undecided, "the margin");
    let wide = [1e-4, 2e-4, 3e-4, 4e-4, 5e-4, 6e-4];
    assert_eq!(verdict(&wide, &around(5e-4)), Verdict::Undecided, "intervals overlap");
    assert_eq!(verdict(&around(1e-4)[..5], &around(5e-4)), Verdict::Undecided, "too few");
}

#[test]
fn a_repetition_with_a_late_generator_is_not_evaluated() {
    let mut cells = vec![cell(CellKey::uplink("5g-ready", "sv", 100), &around(18e-3))];
    assert_eq!(of_cells(&cells, "ready-sv-range"), Verdict::Agrees);
    cells[0].repetitions[2].invalid.push("late".into());
    assert_eq!(of_cells(&cells, "ready-sv-range"), Verdict::Undecided);
    let mut late = cells[0].repetitions[2].clone();
    late.mean_s = 1.0;
    cells[0].repetitions.push(late);
    let on_time = cells[0].repetitions[0].clone();
    cells[0].repetitions.push(on_time);
    assert_eq!((cells[0].disturbed(), of_cells(&cells, "ready-sv-range")), (2, Verdict::Agrees));
}

#[test]
fn a_rate_that_is_missing_leaves_a_claim_open() {
    let at = |rate| CellKey::uplink("5g-ready", "sv", rate);
    let mut cells = vec![cell(at(10), &around(18e-3)), cell(at(100), &around(15e-3))];
    assert_eq!(of_cells(&cells, "ready-sv-decreases"), Verdict::Agrees);
    cells[1].repetitions.clear();
    assert_eq!(of_cells(&cells, "ready-sv-decreases"), Verdict::Undecided);
    assert_eq!(of_cells(&cells, "ready-sv-range"), Verdict::Undecided);
}

#[test]
fn udp_is_not_the_fastest_if_one_other_protocol_is_faster_somewhere() {
    let cells = |sv: f64| {
        [("udp", 1e-3), ("sv", sv), ("mqtt", 2e-3)]
            .map(|(protocol, mean)| cell(CellKey::uplink("ethernet", protocol, 100), &around(mean)))
    };
    assert_eq!(of_cells(&cells(1.5e-3), "udp-fastest-on-every-system"), Verdict::Agrees);
    assert_eq!(of_cells(&cells(0.5e-3), "udp-fastest-on-every-system"), Verdict::Differs);
}

#[test]
fn a_due_comparison_without_enough_repetitions_leaves_a_claim_open() {
    let at = |system, protocol, rate| CellKey::uplink(system, protocol, rate);
    let mut cells = vec![
        cell(at("ethernet", "udp", 100), &around(1e-3)),
        cell(at("ethernet", "mqtt", 100), &around(2e-3)),
    ];
    assert_eq!(of_cells(&cells, "udp-fastest-on-every-system"), Verdict::Agrees);
    cells[1].repetitions.pop();
    assert_eq!(of_cells(&cells, "udp-fastest-on-every-system"), Verdict::Undecided);
}

#[test]
fn systems_are_ordered_at_every_rate() {
    let cells = |slow: f64| -> Vec<_> {
        let means = [("ethernet", 1e-3), ("5g-prototype", 4e-3), ("5g-ready", 20e-3)];
        let at = |(system, mean)| {
            [(10, mean), (1_000, slow * mean)]
                .map(|(rate, mean)| cell(CellKey::uplink(system, "mqtt", rate), &around(mean)))
        };
        means.into_iter().flat_map(at).collect()
    };
    let mut measured = cells(1.0);
    assert_eq!(of_cells(&measured, "order-of-systems-mqtt"), Verdict::Agrees);
    measured[1].repetitions.clear();
    assert_eq!(of_cells(&measured, "order-of-systems-mqtt"), Verdict::Undecided);
    measured[1] = cell(measured[1].key, &around(5e-3));
    assert_eq!(of_cells(&measured, "order-of-systems-mqtt"), Verdict::Differs, "at 1,000/s");
}

#[test]
fn a_loss_in_a_disturbed_repetition_decides_nothing() {
    let mut cells = vec![
        cell(CellKey::uplink("ethernet", "sv", 10), &around(1e-3)),
        cell(CellKey::uplink("5g-ready", "sv", 10), &around(1e-3)),
    ];
    let verdict = |cells: &[Cell]| of_cells(cells, "nothing-lost");
    cells[0].repetitions[0].invalid.push("late".into());
    assert_eq!(verdict(&cells), Verdict::Agrees);
    cells[0].repetitions[0].missing = 1;
    assert_eq!(verdict(&cells), Verdict::Undecided);
    cells[1].repetitions[0].missing = 1;
    assert_eq!(verdict(&cells), Verdict::Differs);
    cells[1].repetitions.clear();
    cells[0].repetitions[0].missing = 0;
    assert_eq!(verdict(&cells), Verdict::Undecided, "nothing is known of 5G-ready");
}

#[test]
fn a_latency_decreases_from_each_rate_to_the_next() {
    let verdict = |means: [f64; 3]| {
        let at =
            |(rate, mean): (u32, f64)| cell(CellKey::uplink("ethernet", AMQP, rate), &around(mean));
        let cells: Vec<_> = RATES.into_iter().zip(means).map(at).collect();
        of_cells(&cells, "ethernet-amqp-decreases")
    };
    assert_eq!(verdict([3e-3, 2e-3, 1e-3]), Verdict::Agrees);
    assert_eq!(verdict([3e-3, 4e-3, 1e-3]), Verdict::Differs);
}

#[test]
fn the_largest_latency_is_that_of_the_slowest_rate() {
    let verdict = |ready: [f64; 2]| {
        let mut cells = vec![cell(CellKey::uplink("5g-prototype", AMQP, 10), &around(33e-3))];
        let at =
            |(rate, max): (u32, f64)| cell(CellKey::uplink("5g-ready", AMQP, rate), &around(max));
        cells.extend([10, 1_000].into_iter().zip(ready).map(at));
        of_cells(&cells, "amqp-worst-380-and-33")
    };
    assert_eq!(verdict([50e-3, 380e-3]), Verdict::Agrees);
    assert_eq!(verdict([50e-3, 200e-3]), Verdict::Differs);
}

#[test]
fn udp_loses_at_least_what_exceeds_the_capacity() {
    let verdict = |missing| {
        let key = CellKey::uplink("5g-ready", "udp", 100).with(Variant::AboveCapacity);
        let mut cells = vec![cell(key, &[0.1])];
        cells[0].repetitions[0].missing = missing;
        of_cells(&cells, "congestion-udp-loses")
    };
    assert_eq!((verdict(4), verdict(5)), (Verdict::Differs, Verdict::Agrees));
}

fn outage(fault: Fault, client: Client, [later_with_arrivals, later]: [usize; 2]) -> OutageCell {
    let case =
        OutageCase { protocol: "mqtt".into(), mosquitto: false, fault, client, length_s: 10.0 };
    OutageCell {
        case,
        command: String::new(),
        interval_s: 0.01,
        unavailable_s: Some(10.0),
        without_arrival_s: None,
        first_arrival_after_end_s: (later_with_arrivals > 0).then_some(1.0),
        later_with_arrivals,
        later,
        lost: 0,
        refused: 0,
        reconnections: 0,
        error: None,
    }
}

#[test]
fn a_client_recovers_if_later_messages_arrive() {
    let verdict = |cells: &[OutageCell], name| {
        of(&Measurements { outages: cells, ..Measurements::default() }, name)
    };
    let lost = outage(Fault::Broker, Client::StaysLost, [0, 50]);
    let back = outage(Fault::Broker, Client::Reconnects, [49, 50]);
    let stays = "outage-broker-mqtt-stays-lost";
    assert_eq!(verdict(&[lost.clone(), back.clone()], stays), Verdict::Agrees);
    let recovers = outage(Fault::Broker, Client::StaysLost, [49, 50]);
    assert_eq!(verdict(&[recovers], stays), Verdict::Differs);
    let over = outage(Fault::Broker, Client::StaysLost, [0, 0]);
    assert_eq!(verdict(&[over], stays), Verdict::Unknown, "no message was sent later");
    assert_eq!(verdict(&[lost, back], "outage-any-client-stays-lost"), Verdict::Differs);
}

/// Segments with 32 B of TCP header.
fn traffic(packets: u64, application: u64) -> Traffic {
    Traffic {
        packets,
        ethernet: 14 * packets,
        ip: 20 * packets,
        transport: 32 * packets,
        application,
        ..Traffic::default()
    }
}

/// The series of all columns with the counts of the report.
fn series(messages: u64) -> Vec<Measured> {
    let series = |column: &Column| {
        let each = (column.packets / 10_000.0).floor() as u64;
        let opening = traffic(column.packets as u64 - each * 10_000, 0);
        let application = (column.bytes.protocol + column.bytes.payload) as u64 * messages;
        Measured {
            column: column.name.clone(),
            broker: "RabbitMQ".into(),
            messages,
            delivered: messages,
            payload_bytes: column.bytes.payload,
            first_payload_bytes: 0,
            phases: Phases {
                opening,
                messages: traffic(each * messages, application),
                closing: Traffic::default(),
            },
            missed: 0,
            fault: None,
        }
    };
    Tables::published().column.iter().map(series).collect()
}

fn of_series(series: &[Measured], name: &str) -> Verdict {
    of(&Measurements { series, ..Measurements::default() }, name)
}

#[test]
fn table_4_contains_the_packets_that_open_and_close_connections() {
    for messages in [200, 10_000] {
        let series = series(messages);
        assert_eq!(of_series(&series, "table-4-packets-mqtt"), Verdict::Agrees, "{messages}");
        assert_eq!(of_series(&series, "mqtt-twice-the-packets"), Verdict::Differs);
        assert_eq!(of_series(&series, "tcp-twice-the-bandwidth"), Verdict::Agrees);
    }
    let mut lost = series(200);
    lost[0].delivered -= 1;
    assert_eq!(of_series(&lost, "table-4-packets-mqtt"), Verdict::Unknown);
}

#[test]
fn acknowledgements_of_a_loaded_machine_decide_nothing() {
    // Acknowledgements of AMQP vary with the load of the machine.
    let columns = Tables::published().column;
    let with_ip_bytes_of_amqp = |share: f64| {
        let mut series = series(10_000);
        let of_amqp = series.iter_mut().zip(&columns);
        for (measured, column) in of_amqp.filter(|(_, column)| column.protocol == Protocol::Amqp) {
            let lower = column.bytes.ethernet + column.bytes.ip + column.bytes.transport;
            let traffic = &mut measured.phases.messages;
            traffic.ip = (share * lower * 10_000.0) as u64 - traffic.ethernet - traffic.transport;
        }
        of_series(&series, "table-5-lower-layers-amqp")
    };
    let shares = [0.92, 0.902, 0.898, 0.88].map(with_ip_bytes_of_amqp);
    use Verdict::{Agrees, Differs, Undecided};
    assert_eq!(shares, [Agrees, Undecided, Undecided, Differs]);
    // So do the few acknowledgements of MQTT that are sent alone.
    let mqtt = ["table-4-packets-mqtt", "table-5-lower-layers-mqtt", "mqtt-twice-the-packets"];
    let with_acknowledgements = |alone: u64, others: i64| {
        let mut series = series(200);
        for measured in &mut series {
            let messages = &mut measured.phases.messages;
            let packets = messages.packets.checked_add_signed(others).unwrap() + alone;
            *messages = traffic(packets, messages.application);
            messages.acknowledgements = alone;
        }
        mqtt.map(|name| of_series(&series, name))
    };
    assert_eq!(with_acknowledgements(1, 0), [Agrees, Agrees, Differs]);
    assert_eq!(with_acknowledgements(6, 0), [Undecided; 3]);
    // Ten acknowledgements alone, and five segments that carry two messages each.
    assert_eq!(with_acknowledgements(10, -5)[..2], [Undecided; 2]);
    assert_eq!(with_acknowledgements(0, 6), [Differs, Differs, Agrees], "packets with data");
}
