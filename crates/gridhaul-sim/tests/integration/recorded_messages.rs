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
