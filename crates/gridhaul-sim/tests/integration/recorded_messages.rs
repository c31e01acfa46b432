//! Recorded messages, members of flows, and the completion of the last device.

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, ColumnData, Metric, Series};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_sim::Sim;

use crate::support::two_nodes;

fn run(keys: &str, link: &str, flows: &str) -> Answer {
    let text = two_nodes(keys, link, flows);
    let scenario = Scenario::from_toml(&text, "test.toml").unwrap();
    Sim { threads: 1 }.run(&scenario, &NoProgress).unwrap()
}

fn series<'a>(answer: &'a Answer, name: &str) -> &'a Series {
    answer.series.iter().find(|series| series.name == name).expect(name)
}

fn real(series: &Series, name: &str) -> Vec<f64> {
    let index = series.columns.iter().position(|column| column.name == name).unwrap();
    match series.values(index, 0..series.row_count()).unwrap() {
        ColumnData::Real(values) => values,
        other => panic!("{other:?}"),
    }
}

fn texts(series: &Series, name: &str) -> Vec<String> {
    let index = series.columns.iter().position(|column| column.name == name).unwrap();
    match series.values(index, 0..series.row_count()).unwrap() {
        ColumnData::Text { words, rows } => {
            rows.iter().map(|row| words[*row as usize].clone()).collect()
        }
        other => panic!("{other:?}"),
    }
}

const DATAGRAMS: &str = "[flow.up]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
                         load.periodic = { size = '100 B', every = '1 s' }\n\
                         start_spread = '0 s'";

#[test]
fn a_lost_datagram_has_a_row_with_time_and_reason() {
    let link = "rate = '1 Mbit/s', delay = '10 ms', outage = [{ start = '3500 ms', length = '2 s', \
                mode = 'drop' }]";
    let answer = run("duration = '10 s'\nrecord.interval = '1 s'", link, DATAGRAMS);
    let losses = series(&answer, "losses");
    assert_eq!(losses.row_count(), 2, "two messages were due in the outage");
    for (due, lost) in real(losses, "time_s").iter().zip(real(losses, "lost_s")) {
        assert!((3.5..5.5).contains(due) && (*due..due + 0.1).contains(&lost), "{due} {lost}");
    }
    assert_eq!(texts(losses, "reason"), ["outage", "outage"]);
    let flow = &answer.points[0].flows[0];
    let known = |metric| flow.mean(metric).unwrap();
    let arrived = series(&answer, "delays").row_count();
    assert_eq!(arrived as f64, known(Metric::Messages));
    let lost = known(Metric::MessageLoss) * known(Metric::MessagesDue);
    assert!((lost - 2.0).abs() < 1e-9, "{lost}");
}

/// Messages due that did not arrive, by row: all have a row of the losses.
fn assert_losses_are_complete(answer: &Answer) {
    for flow in &answer.points[0].flows {
        let count = |metric| flow.mean(metric).unwrap_or(0.0);
        let lost = count(Metric::MessagesDue) - count(Metric::Messages);
        let losses = answer.series.iter().find(|series| series.name == "losses");
        let names = losses.map_or_else(Vec::new, |losses| texts(losses, "flow"));
        let rows = names.iter().filter(|name| **name == flow.name).count();
        assert_eq!(rows as f64, lost, "{}", flow.name);
    }
}

#[test]
fn a_message_over_tcp_that_its_application_gives_up_has_a_row() {
    let link = "rate = '100 kbit/s', delay = '50 ms', \
                outage = [{ start = '15 s', length = '50 min' }]";
    let flow = "[flow.up]\nfrom = 'a'\nto = 'b'\n\
                load.periodic = { size = '500 B', every = '10 s', synchronised = true }\n\
                acknowledgement = { size = '20 B', timeout = '3 s', retransmissions = 1 }";
    let answer = run("duration = '120 s'\nrecord.interval = '1 s'", link, flow);
    assert_losses_are_complete(&answer);
    let losses = series(&answer, "losses");
    assert_eq!(texts(losses, "reason"), ["given_up"; 10]);
    let times = real(losses, "time_s").into_iter().zip(real(losses, "lost_s"));
    assert!(times.clone().all(|(due, lost)| (6.0..6.01).contains(&(lost - due))), "{times:?}");
}

#[test]
fn a_message_that_arrives_after_it_was_given_up_is_no_loss() {
    // Nothing arrives at the sender from 5.5 s on, and everything at the receiver, late.
    let late = "[flow.tcp]\nfrom = 'a'\nto = 'b'\n\
                load.periodic = { size = '200 B', every = '10 s', synchronised = true }\n\
                acknowledgement = { size = '20 B', timeout = '450 ms', retransmissions = 1 }\n\
                [flow.udp]\nfrom = 'a'\nto = 'b'\ntransport = 'coap'\n\
                load.periodic = { size = '50 B', every = '200 s', synchronised = true }\n\
                coap = { ack_timeout = '1 s', max_retransmit = 0 }";
    let link = "rate = '100 kbit/s', delay = '4 s'";
    let answer = run("duration = '190 s'\nrecord.interval = '1 s'", link, late);
    let given_up = |row: usize| answer.points[0].flows[row].mean(Metric::GivenUp).unwrap();
    assert!(given_up(0) > 0.0 && given_up(1) > 0.0);
    assert_losses_are_complete(&answer);
}

#[test]
fn a_publication_that_does_not_reach_its_broker_is_a_loss_of_the_subscription() {
    let answer = crate::schedulers::run(
        "title = 't'\nduration = '60 s'\nrecord.interval = '1 s'\n\
         [node]\na = {}\nb = {}\nc = {}\n\
         [link.l]\nfrom = 'a'\nto = 'b'\nboth = { rate = '100 kbit/s', delay = '50 ms', \
         outage = [{ start = '45 s', length = '5 min' }] }\n\
         [link.m]\nfrom = 'c'\nto = 'b'\nboth = { rate = '100 kbit/s', delay = '50 ms' }\n\
         [flow.pub]\nfrom = 'a'\nto = 'b'\n\
         load.mqtt = { size = '100 B', every = '10 s', qos = 1, synchronised = true }\n\
         [flow.sub]\nfrom = 'c'\nto = 'b'\n\
         load.mqtt_subscription = { publications = 'pub', qos = 1 }",
    );
    assert_losses_are_complete(&answer);
    assert_eq!(texts(series(&answer, "losses"), "flow"), ["pub", "sub"]);
}

/// Messages with QoS 0 are lost with their connection.
#[test]
fn messages_of_every_quality_of_service_arrive_or_have_a_row() {
    let text = include_str!("../../../../scenarios/mqtt-qos.toml");
    let text = text.replacen("\nduration", "\nrecord.interval = \"1 s\"\nduration", 1);
    let answer = crate::schedulers::run(&text);
    assert_losses_are_complete(&answer);
    let reasons = texts(series(&answer, "losses"), "reason");
    assert!(reasons.iter().all(|reason| reason == "connection_closed"), "{reasons:?}");
}

#[test]
fn a_message_over_tcp_that_is_late_at_the_end_has_a_row() {
    // The outage lasts until the end: messages wait in the sender.
    let link = "rate = '1 Mbit/s', delay = '10 ms', outage = [{ start = '4 s', length = '20 s', \
                mode = 'drop' }]";
    let flow = "[flow.up]\nfrom = 'a'\nto = 'b'\n\
                load.periodic = { size = '100 B', every = '1 s' }\nstart_spread = \
                '0 s'";
    let answer = run("duration = '10 s'\nrecord.interval = '1 s'", link, flow);
    let losses = series(&answer, "losses");
    let row = &answer.points[0].flows[0];
    let missing =
        row.mean(Metric::MessagesDue).unwrap() - row.mean(Metric::Messages).unwrap_or(0.0);
    assert!(missing >= 5.0);
    assert_eq!(losses.row_count() as f64, missing);
    assert!(real(losses, "lost_s").iter().all(|lost| lost.is_nan()));
    assert!(texts(losses, "reason").iter().all(|reason| reason == "unfinished"));
}

#[test]
fn any_replication_can_be_recorded() {
    let run = |keys: &str| {
        let link = "rate = '1 Mbit/s', delay = '10 ms', loss = { bernoulli = '5 %' }";
        let flow = "[flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'";
        let keys = format!("duration = '10 s'\nreplications = 3\nrecord.interval = '1 s'\n{keys}");
        run(&keys, link, flow)
    };
    let (first, third) = (run(""), run("record.replication = 2"));
    let windows = |answer: &Answer| real(series(answer, "windows"), "cwnd_byte");
    assert_ne!(windows(&first), windows(&third));
    assert_eq!(series(&third, "windows").replication, 2);
    // The recording does not change the results.
    assert_eq!(first.points, third.points);
}

#[test]
fn the_members_of_a_group_have_rows_that_add_up_to_that_of_the_group() {
    let keys = "duration = '20 s'\nwarmup = '2 s'\nreplications = 2\nrecord.members = ['up']";
    let link = "rate = '1 Mbit/s', delay = '10 ms', loss = { bernoulli = '1 %' }";
    let flow = "[flow.up]\nfrom = 'a'\nto = 'b'\ncount = 4\nload = 'bulk'\n\
                [flow.other]\nfrom = 'a'\nto = 'b'\nload = 'bulk'";
    let answer = run(keys, link, flow);
    let point = &answer.points[0];
    assert_eq!(point.members.len(), 2, "one entry for each replication");
    for rows in &point.members {
        assert_eq!(rows.flow, "up");
        let replication = rows.replication as usize;
        for metric in [Metric::Goodput, Metric::SegmentsSent, Metric::Retransmissions] {
            let members: Vec<f64> = rows.metrics[&metric].iter().map(|one| one.unwrap()).collect();
            assert_eq!(members.len(), 4);
            let group = point.flows[0].replications[&metric][replication].unwrap();
            let sum: f64 = members.iter().sum();
            assert!((sum - group).abs() <= 1e-9 * group.max(1.0), "{metric}: {sum} {group}");
        }
    }
}

#[test]
fn the_last_device_completes_after_all_have_started() {
    let keys = "duration = '60 s'";
    let link = "rate = '1 Mbit/s', delay = '10 ms'";
    let flow = "[flow.firmware]\nfrom = 'a'\nto = 'b'\ncount = 5\n\
                load.transfer = { size = '100 kB' }\nstart_spread = '5 s'";
    let answer = run(keys, link, flow);
    let row = &answer.points[0].flows[0];
    let last = row.mean(Metric::LastCompletion).unwrap();
    // Five transfers of 100 kB need 4 s of 1 Mbit/s; the starts are spread over 5 s.
    assert!(last >= row.mean(Metric::CompletionTimeMax).unwrap() && (4.0..10.0).contains(&last));
    let short = run("duration = '3 s'", link, flow);
    assert_eq!(short.points[0].flows[0].mean(Metric::LastCompletion), None);
}
