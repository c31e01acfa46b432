//! Attacks: the packets on which an attacker acts, computed by hand.

use std::fmt::Write;

use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::{Answer, ColumnData, Metric, Series};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::units::{Duration, Instant};
use gridhaul_sim::{MessageFate, Session, Sim};

use crate::support::{run, try_run, two_nodes};

/// A message of 100 B each second; a datagram takes 1.024 ms at 1 Mbit/s, and 10 ms to arrive.
const MESSAGES: &str = "[flow.up]\nfrom = 'a'\nto = 'b'\nstart_spread = '0 s'\n\
                        load.periodic = { size = '100 B', every = '1 s', synchronised = true }";
const LINK: &str = "rate = '1 Mbit/s', delay = '10 ms'";
const KEYS: &str = "duration = '10500 ms'\nrecord.interval = '1 s'";

/// The scenario of a flow, under an attack from 3.5 s to 5.5 s: on messages 4 and 5 of 0 to 10.
fn under_attack(link: &str, flow: &str, action: &str) -> String {
    let attack = format!("[attack.x]\nstart = '3500 ms'\nlength = '2 s'\naction.{action}\n");
    two_nodes(KEYS, link, &format!("{flow}\n{attack}"))
}

fn datagrams() -> String {
    format!("{MESSAGES}\ntransport = 'datagram'")
}

fn series<'a>(answer: &'a Answer, name: &str) -> &'a Series {
    answer.series.iter().find(|series| series.name == name).expect(name)
}

fn column(series: &Series, name: &str) -> Vec<f64> {
    let index = series.columns.iter().position(|column| column.name == name).unwrap();
    match series.values(index, 0..series.row_count()).unwrap() {
        ColumnData::Real(values) => values,
        other => panic!("{other:?}"),
    }
}

fn reasons(answer: &Answer) -> Vec<String> {
    let losses = series(answer, "losses");
    let index = losses.columns.iter().position(|column| column.name == "reason").unwrap();
    match losses.values(index, 0..losses.row_count()).unwrap() {
        ColumnData::Text { words, rows } => {
            rows.iter().map(|row| words[*row as usize].clone()).collect()
        }
        other => panic!("{other:?}"),
    }
}

fn flow(answer: &Answer, row: &str, metric: Metric) -> Option<f64> {
    let row = answer.points[0].flows.iter().find(|flow| flow.name == row).expect(row);
    row.mean(metric)
}

fn link(answer: &Answer, row: &str, metric: Metric) -> Option<f64> {
    let row = answer.points[0].links.iter().find(|link| link.name == row).expect(row);
    row.mean(metric)
}

#[test]
fn dropped_messages_are_lost_by_the_attack() {
    let answer = run(&under_attack(LINK, &datagrams(), "drop.link = 'line'"));
    assert_eq!(column(series(&answer, "losses"), "time_s"), [4.0, 5.0]);
    assert_eq!(reasons(&answer), ["attack", "attack"]);
    assert_eq!(link(&answer, "line.forward", Metric::DropsAttack), Some(2.0));
    assert_eq!(link(&answer, "line.forward", Metric::LossRatio), Some(2.0 / 11.0));
    assert_eq!(link(&answer, "line.reverse", Metric::DropsAttack), Some(0.0));
    assert_eq!(flow(&answer, "up", Metric::Messages), Some(9.0));
    assert_eq!(flow(&answer, "up", Metric::AlteredMessages), None);
}

#[test]
fn delayed_messages_arrive_later_by_the_delay() {
    let action = "delay = { link = 'line.forward', by = '1250 ms' }";
    let answer = run(&under_attack(LINK, &datagrams(), action));
    let delays = series(&answer, "delays");
    let late: Vec<_> = column(delays, "time_s")
        .into_iter()
        .zip(column(delays, "delay_s"))
        .map(|(due, delay)| (due, (delay * 1e9).round()))
        .collect();
    // Message 6 overtakes message 5, and messages are recorded in the order of their arrival.
    let expected = [0, 1, 2, 3, 4, 6, 5, 7, 8, 9, 10].map(|due| {
        let held = if matches!(due, 4 | 5) { 1_250_000_000.0 } else { 0.0 };
        (f64::from(due), 11_024_000.0 + held)
    });
    assert_eq!(late, expected);
    assert_eq!(link(&answer, "line.forward", Metric::DelayedAttack), Some(2.0));
    assert_eq!(link(&answer, "line.reverse", Metric::DelayedAttack), None);
}

#[test]
fn altered_datagrams_arrive_or_are_rejected() {
    let action = |checksum: &str| format!("alter = {{ link = 'line', checksum = '{checksum}' }}");
    let valid = run(&under_attack(LINK, &datagrams(), &action("valid")));
    assert_eq!(flow(&valid, "up", Metric::Messages), Some(11.0));
    assert_eq!(flow(&valid, "up", Metric::AlteredMessages), Some(2.0));
    assert_eq!(link(&valid, "line.forward", Metric::AlteredAttack), Some(2.0));
    let invalid = run(&under_attack(LINK, &datagrams(), &action("invalid")));
    assert_eq!(flow(&invalid, "up", Metric::Messages), Some(9.0));
    assert_eq!(flow(&invalid, "up", Metric::AlteredMessages), None);
    assert_eq!(reasons(&invalid), ["corrupted", "corrupted"]);
}

#[test]
fn tcp_delivers_altered_data_with_a_valid_checksum_only() {
    let action = |checksum: &str| format!("alter = {{ link = 'line', checksum = '{checksum}' }}");
    let valid = run(&under_attack(LINK, MESSAGES, &action("valid")));
    assert_eq!(flow(&valid, "up", Metric::AlteredMessages), Some(2.0));
    assert_eq!(flow(&valid, "up", Metric::Retransmissions), Some(0.0));
    assert_eq!(link(&valid, "line.forward", Metric::AlteredAttack), Some(2.0));
    // Acknowledgements have no payload.
    assert_eq!(link(&valid, "line.reverse", Metric::AlteredAttack), Some(0.0));
    let invalid = run(&under_attack(LINK, MESSAGES, &action("invalid")));
    assert_eq!(flow(&invalid, "up", Metric::Messages), Some(11.0));
    assert!(flow(&invalid, "up", Metric::Retransmissions) >= Some(2.0));
    assert!(flow(&invalid, "up", Metric::DelayMax) > Some(0.2));
}

#[test]
fn a_response_is_altered_with_its_request() {
    let dialogue = "[flow.up]\nfrom = 'a'\nto = 'b'\n\
                    load.request_response = { request = '100 B', response = '100 B', \
                    pause = '1 s' }";
    // Exchanges begin about 1.02 s after each other: two requests pass the attacker.
    for direction in ["line", "line.forward", "line.reverse"] {
        let action = format!("alter.link = '{direction}'");
        let answer = run(&under_attack(LINK, dialogue, &action));
        assert_eq!(flow(&answer, "up", Metric::AlteredMessages), Some(2.0), "{direction}");
    }
}

#[test]
fn a_flood_reaches_each_member_of_a_group_at_its_rate() {
    let text = "title = 'flood'\nduration = '10 s'\n[node]\nm.count = 3\nbot = {}\nh = {}\n\
                [link.a]\nfrom = 'm'\nto = 'h'\nboth.rate = '1 Mbit/s'\n\
                [link.b]\nfrom = 'bot'\nto = 'h'\nboth.rate = '1 Mbit/s'\n\
                [flow.d]\nfrom = 'h'\nto = 'm'\nload.periodic = { size = '97 B', every = '1 s' }\n\
                [attack.f]\nstart = '2 s'\nlength = '5 s'\n\
                action.flood = { from = 'bot', to = 'm', rate = '30 kbit/s', size = '125 B' }\n";
    // 30 datagrams each second for 5 s, to each of three.
    assert_eq!(flow(&run(text), "f", Metric::MessagesDue), Some(450.0));
}

#[test]
fn a_flood_takes_the_place_of_other_packets_in_the_queue() {
    let flow_keys = "[flow.up]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
                     start_spread = '0 s'\n\
                     load.periodic = { size = '100 B', every = '20 s', synchronised = true }\n";
    let flood = "[attack.bots]\nstart = '2 s'\nlength = '1 s'\n\
                 action.flood = { from = 'a', to = 'b', rate = '2 Mbit/s', size = '1000 B' }";
    let link_keys = "rate = '1 Mbit/s', delay = '10 ms', queue = '10 packets'";
    let answer = run(&two_nodes("duration = '10 s'", link_keys, &format!("{flow_keys}{flood}")));
    // A datagram every 4 ms, of which the link transmits one in 8 ms. The queue is full after
    // 80 ms, with 21 accepted datagrams; then it accepts one of two, up to 992 ms: 114 more.
    assert_eq!(flow(&answer, "bots", Metric::MessagesDue), Some(250.0));
    assert_eq!(flow(&answer, "bots", Metric::Messages), Some(135.0));
    // Payload of 972 B each in 10 s: a flood has no end at which it is complete.
    assert_eq!(flow(&answer, "bots", Metric::Goodput), Some(135.0 * 972.0 * 8.0 / 10.0));
    assert_eq!(flow(&answer, "bots", Metric::LastCompletion), None);
    assert_eq!(link(&answer, "line.forward", Metric::DropsQueue), Some(115.0));
    assert_eq!(link(&answer, "line.forward", Metric::QueueMax), Some(10.0));
    assert_eq!(flow(&answer, "up", Metric::Messages), Some(1.0));
}

#[test]
fn an_aggregated_message_is_altered_on_either_side_of_the_aggregator() {
    for attacked in ["access", "wan"] {
        let text = format!(
            "title = 'aggregated'\nduration = '10500 ms'\n\
             [node]\na = {{ count = 2 }}\nhub = {{ aggregator = {{}} }}\nb = {{}}\n\
             [link.access]\nfrom = 'a'\nto = 'hub'\nboth = {{ {LINK} }}\n\
             [link.wan]\nfrom = 'hub'\nto = 'b'\nboth = {{ {LINK} }}\n{MESSAGES}\n\
             [attack.x]\nstart = '3500 ms'\nlength = '2 s'\naction.alter.link = '{attacked}'\n"
        );
        let answer = run(&text);
        assert_eq!(flow(&answer, "up", Metric::Messages), Some(22.0));
        // Two messages of each of two meters.
        assert_eq!(flow(&answer, "up", Metric::AlteredMessages), Some(4.0), "{attacked}");
    }
}

#[test]
fn an_attack_on_other_flows_changes_nothing() {
    let lossy = "rate = '100 kbit/s', delay = '10 ms', loss = { bernoulli = '5 %' }";
    let bulk = "[flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n\
                [flow.other]\nfrom = 'a'\nto = 'b'\nstart = '10 s'\nload.transfer.size = '1 B'\n";
    let plain = run(&two_nodes(KEYS, lossy, bulk));
    for action in [
        "drop = { link = 'line', flows = ['other'] }",
        "drop = { link = 'line', probability = '0 %' }",
        "delay = { link = 'line', by = '0 s' }",
    ] {
        let attacked = run(&under_attack(lossy, bulk, action));
        assert_eq!(attacked.points[0].flows, plain.points[0].flows, "{action}");
        assert_eq!(attacked.series.len(), plain.series.len());
    }
}

#[test]
fn altered_data_are_not_followed_through_proxies() {
    let text = format!(
        "title = 'proxy'\nduration = '10 s'\n\
         [node]\na = {{}}\nhub = {{ proxy = {{ mode = 'split' }} }}\nb = {{}}\n\
         [link.access]\nfrom = 'a'\nto = 'hub'\nboth = {{ {LINK} }}\n\
         [link.wan]\nfrom = 'hub'\nto = 'b'\nboth = {{ {LINK} }}\n{MESSAGES}\n\
         [attack.x]\nstart = '3500 ms'\nlength = '2 s'\n"
    );
    let Err(RunError::Unsupported(keys)) =
        try_run(&format!("{text}action.alter.link = 'wan'\n"), 1)
    else {
        panic!("refused")
    };
    assert_eq!(keys[0].key, "attack.x.action.alter");
    run(&format!("{text}action.alter = {{ link = 'wan', checksum = 'invalid' }}\n"));
}

/// The fates of messages that the members of a group send each second over two links, the last one
/// over TCP or as datagrams.
fn fates(transport: &str, attack: &str) -> String {
    let text = format!(
        "title = 'session'\nduration = '10 s'\n\
         [node]\nmeter = {{ count = 3 }}\nhub = {{}}\nhead = {{}}\n\
         [link.street]\nfrom = 'meter'\nto = 'hub'\nboth = {{ {LINK} }}\n\
         [link.uplink]\nfrom = 'hub'\nto = 'head'\nboth = {{ {LINK} }}\n\
         [flow.up]\nfrom = 'meter'\nto = 'head'\nload = 'external'\n{transport}\n\
         [attack.x]\nstart = '3500 ms'\nlength = '2 s'\n{attack}\n"
    );
    let scenario = Scenario::from_toml(&text, "session.toml").unwrap();
    let mut session = Session::open(&scenario, 0).unwrap();
    for second in 1..8 {
        for member in 0..3 {
            let at = Instant::ZERO + Duration::from_secs(second);
            session.send(&format!("meter[{member}]"), "head", 100, at).unwrap();
        }
    }
    let end = Instant::ZERO + Duration::from_secs(20);
    let mut reports = session.advance_to(end, || true).unwrap().reports;
    reports.sort_by_key(|report| report.id);
    let mut found = String::new();
    for report in reports.iter().filter(|report| report.fate != MessageFate::Delivered) {
        let (second, member) = (report.id.0 / 3 + 1, report.id.0 % 3);
        let _ = write!(found, "{second}.{member} {:?} ", report.fate);
    }
    found.trim_end().to_owned()
}

#[test]
fn a_session_reports_altered_and_dropped_messages() {
    let datagram = "transport = 'datagram'";
    for transport in ["", datagram] {
        let altered = fates(transport, "action.alter.link = 'street[1]'");
        assert_eq!(altered, "4.1 Altered 5.1 Altered", "{transport}");
        let all = fates(transport, "action.alter.link = 'uplink.forward'");
        assert_eq!(all.matches("Altered").count(), 6, "{transport}: {all}");
    }
    let dropped = fates(datagram, "action.drop.link = 'street.forward[2]'");
    assert_eq!(dropped, "4.2 Lost(Attack) 5.2 Lost(Attack)");
    let flooded = "action.flood = { from = 'hub', to = 'head', rate = '9 Mbit/s' }";
    assert!(fates(datagram, flooded).contains("Lost(QueueFull)"));
}

#[test]
fn points_of_a_sweep_differ_in_the_attack() {
    let text = under_attack(LINK, &datagrams(), "drop = { link = 'line', probability = '0 %' }");
    let sweep = "[[sweep]]\nvary.'attack.x.action.drop.probability' = ['0 %', '100 %']\n";
    let scenario = Scenario::from_toml(&format!("{text}\n{sweep}"), "sweep.toml").unwrap();
    let answer = Sim { threads: 1 }.run(&scenario, &NoProgress).unwrap();
    let delivered = answer.points.iter().map(|point| point.flows[0].mean(Metric::Messages));
    assert_eq!(delivered.collect::<Vec<_>>(), [Some(11.0), Some(9.0)]);
}
