//! Stepped simulation: the deliveries are those of a run, in however many steps.

use std::fmt::Write;
use std::fs;

use gridhaul_scenario::answer::{ColumnData, LossReason, Series};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::{Duration, Instant};
use gridhaul_sim::{LinkChange, MessageFate, MessageReport, Session, SessionError, Sim, Step};

/// A message of member `member`.
#[derive(Debug, Clone, Copy)]
struct Sent {
    at: Instant,
    member: u64,
    bytes: u64,
}

/// Five meters that send reports to a head over a shared uplink, with these keys of the links, and
/// a load.
fn meters(street: &str, uplink: &str, flow: &str) -> Scenario {
    let text = format!(
        "title = 'meters'\nduration = '100 s'\nseed = 7\n\
         [node]\nmeter = {{ count = 5 }}\nhead = {{}}\nconcentrator = {{}}\n\
         [link.street]\nfrom = 'meter'\nto = 'concentrator'\n\
         both = {{ rate = '64 kbit/s', delay = '20 ms', {street} }}\n\
         [link.uplink]\nfrom = 'concentrator'\nto = 'head'\n\
         both = {{ rate = '200 kbit/s', delay = '40 ms', {uplink} }}\n\
         [flow.reports]\nfrom = 'meter'\nto = 'head'\n{flow}\n"
    );
    Scenario::from_toml(&text, "meters.toml").unwrap_or_else(|error| panic!("{error}"))
}

const LOSSY: &str = "loss = { bernoulli = '3 %' }";
const EXTERNAL: &str = "load = 'external'";

/// Messages whose times often coincide, with each other and with timers.
fn messages(count: u64) -> Vec<Sent> {
    let message = |number: u64| Sent {
        at: Instant::ZERO + Duration::from_millis(number / 3 * 100),
        member: number * number % 5,
        bytes: 50 + number * 97 % 2_000,
    };
    let mut messages: Vec<_> = (0..count).map(message).collect();
    messages.sort_by_key(|sent| (sent.at, sent.member));
    messages
}

/// The messages of a run whose flow plays these messages as a trace: time, member and delay.
fn played(scenario: impl Fn(&str) -> Scenario, messages: &[Sent]) -> Vec<(u64, u64, u64)> {
    let folder = tempfile::tempdir().unwrap();
    let mut rows = "time_ns,bytes,member\n".to_owned();
    for Sent { at, member, bytes } in messages {
        let _ = writeln!(rows, "{},{bytes},{member}", at.as_nanos());
    }
    let path = folder.path().join("messages.csv");
    fs::write(&path, rows).unwrap();
    let mut scenario = scenario(&format!("load.trace.file = '{}'", path.display()));
    scenario.record.interval = Some(Duration::from_secs(50));
    let answer = Sim { threads: 1 }.run(&scenario, &NoProgress).unwrap();
    let delays = answer.series.iter().find(|series| series.name == "delays").unwrap();
    delivered(delays)
}

fn delivered(delays: &Series) -> Vec<(u64, u64, u64)> {
    let rows = 0..delays.row_count();
    let nanos = |column: &str| {
        let index = delays.columns.iter().position(|info| info.name == column).unwrap();
        let ColumnData::Real(values) = delays.values(index, rows.clone()).unwrap() else {
            panic!("seconds")
        };
        let in_nanos = |seconds: f64| Instant::from_secs_f64(seconds).as_nanos();
        values.into_iter().map(in_nanos).collect::<Vec<_>>()
    };
    let members = delays.members(rows.clone()).unwrap();
    let mut found: Vec<_> = nanos("time_s")
        .into_iter()
        .zip(members)
        .zip(nanos("delay_s"))
        .map(|((at, member), delay)| (at, member, delay))
        .collect();
    found.sort_unstable();
    found
}

fn open(scenario: &Scenario) -> Session {
    Session::open(scenario, 0).unwrap_or_else(|error| panic!("{error}"))
}

fn at(seconds: f64) -> Instant {
    Instant::from_secs_f64(seconds)
}

fn advance(session: &mut Session, until: Instant) -> Vec<MessageReport> {
    session.advance_to(until, || true).unwrap().reports
}

/// The messages of a session in steps of this length: time, member and delay.
fn stepped(session: &mut Session, messages: &[Sent], step: Duration) -> Vec<(u64, u64, u64)> {
    let (mut waiting, mut members) = (messages.iter().peekable(), Vec::new());
    let mut found = Vec::new();
    let end = at(100.0);
    while session.now() < end {
        let until = (session.now() + step).min(end);
        while let Some(sent) = waiting.next_if(|sent| sent.at <= until) {
            let from = format!("meter[{}]", sent.member);
            session.send(&from, "head", sent.bytes, sent.at).unwrap();
            members.push(sent.member);
        }
        for report in advance(session, until) {
            assert_eq!(report.fate, MessageFate::Delivered);
            let delay = report.at.since(report.sent).as_nanos();
            found.push((report.sent.as_nanos(), members[report.id.0 as usize], delay));
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn deliveries_are_those_of_a_run_that_plays_the_messages() {
    for (street, uplink) in
        [("", ""), (LOSSY, "aqm = { codel = {} }"), ("", "jitter = { size = '5 ms' }")]
    {
        let (scenario, messages) = (|flow: &str| meters(street, uplink, flow), messages(300));
        let expected = played(scenario, &messages);
        assert!(expected.len() > 290, "{}", expected.len());
        for step in [100_000, 100, 37, 3] {
            let session = &mut open(&scenario(EXTERNAL));
            let found = stepped(session, &messages, Duration::from_millis(step));
            let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
            let lengths = (found.len(), expected.len());
            assert_eq!((differs, lengths.0), (None, lengths.1), "{step} ms, {street} {uplink}");
        }
    }
}

#[test]
fn the_order_of_calls_does_not_matter() {
    let scenario = meters(LOSSY, "", EXTERNAL);
    let mut reversed = messages(200);
    let expected = stepped(&mut open(&scenario), &reversed, Duration::from_secs(200));
    // The messages of one member at one time keep the order of their calls.
    reversed.sort_by_key(|sent| (std::cmp::Reverse(sent.at), std::cmp::Reverse(sent.member)));
    let mut session = open(&scenario);
    let mut sent = Vec::new();
    for message in &reversed {
        let from = format!("meter[{}]", message.member);
        session.send(&from, "head", message.bytes, message.at).unwrap();
        sent.push(message.member);
    }
    let reports = advance(&mut session, at(100.0));
    let mut found: Vec<_> = reports
        .iter()
        .map(|report| {
            let delay = report.at.since(report.sent).as_nanos();
            (report.sent.as_nanos(), sent[report.id.0 as usize], delay)
        })
        .collect();
    found.sort_unstable();
    assert_eq!(found, expected);
    assert_eq!(session.in_flight(), 0);
}

#[test]
fn a_restored_session_repeats_its_future() {
    let scenario = meters(LOSSY, "queue = '5 packets'", EXTERNAL);
    let mut session = open(&scenario);
    for Sent { at, member, bytes } in messages(300) {
        session.send(&format!("meter[{member}]"), "head", bytes, at).unwrap();
    }
    advance(&mut session, at(2.0));
    let snapshot = session.snapshot();
    assert_eq!(snapshot.now(), at(2.0));
    let first = advance(&mut session, at(100.0));
    assert!(first.len() > 200);
    for _ in 0..2 {
        session.restore(&snapshot).unwrap();
        assert_eq!(session.now(), at(2.0));
        assert_eq!(advance(&mut session, at(100.0)), first);
    }
    // Another message changes the future of a copy only.
    session.restore(&snapshot).unwrap();
    session.send("meter[0]", "head", 5_000, at(2.0)).unwrap();
    assert_ne!(advance(&mut session, at(100.0)), first);
    let mut other = Session::open(&scenario, 1).unwrap();
    assert!(matches!(other.restore(&snapshot), Err(SessionError::ForeignSnapshot)));
}

#[test]
fn a_failure_of_a_link_equals_an_outage() {
    let outage = "outage = [{ start = '1.005 s', length = '2.5 s' }]";
    for loss in ["", LOSSY] {
        let keys = format!("{loss}{}", if loss.is_empty() { "" } else { ", " });
        let messages = messages(150);
        let expected = stepped(
            &mut open(&meters(LOSSY, &format!("{keys}{outage}"), EXTERNAL)),
            &messages,
            Duration::from_millis(5),
        );
        // The phases of timers are random unless the scenario is deterministic.
        let mut session = open(&meters(LOSSY, loss, EXTERNAL));
        let mut found = Vec::new();
        for Sent { at, member, bytes } in &messages {
            session.send(&format!("meter[{member}]"), "head", *bytes, *at).unwrap();
        }
        for (time, up) in [(at(1.005), false), (at(3.505), true), (at(100.0), true)] {
            found.extend(advance(&mut session, time));
            session
                .set_link("uplink", &LinkChange { up: Some(up), ..LinkChange::default() })
                .unwrap();
        }
        let mut found: Vec<_> = found
            .iter()
            .map(|report| {
                let delay = report.at.since(report.sent).as_nanos();
                (report.sent.as_nanos(), messages[report.id.0 as usize].member, delay)
            })
            .collect();
        found.sort_unstable();
        let differs = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert_eq!((differs, found.len()), (None, expected.len()), "{loss}");
        assert!(found.iter().any(|(.., delay)| *delay > 1_000_000_000), "the outage delays some");
    }
}

#[test]
fn rate_delay_and_loss_of_a_link_change() {
    let mut session = open(&meters("", "", "transport = 'datagram'\nload = 'external'"));
    let delay = |session: &mut Session, start: f64| {
        session.send("meter[1]", "head", 172, at(start)).unwrap();
        let report = advance(session, at(start + 10.0)).remove(0);
        (report.fate, report.at.since(report.sent))
    };
    // 200 B with headers take 25 ms at 64 kbit/s and 8 ms at 200 kbit/s.
    let before = (MessageFate::Delivered, Duration::from_millis(20 + 40 + 25 + 8));
    assert_eq!(delay(&mut session, 0.0), before);
    let change = LinkChange {
        rate: Some("20 kbit/s".parse().unwrap()),
        delay: Some(Duration::from_millis(5)),
        ..LinkChange::default()
    };
    session.set_link("uplink.forward", &change).unwrap();
    let after = (MessageFate::Delivered, Duration::from_millis(20 + 5 + 25 + 80));
    assert_eq!(delay(&mut session, 20.0), after);
    let loses = LinkChange { loss: Some("100 %".parse().unwrap()), ..LinkChange::default() };
    session.set_link("street[1]", &loses).unwrap();
    assert_eq!(delay(&mut session, 40.0).0, MessageFate::Lost(LossReason::Loss));
    session.send("meter[2]", "head", 172, at(50.0)).unwrap();
    assert_eq!(advance(&mut session, at(60.0))[0].fate, MessageFate::Delivered);
}

#[test]
fn lost_datagrams_have_a_time_and_a_reason() {
    let flow = "transport = 'datagram'\nload = 'external'";
    let mut session = open(&meters("queue = '2 packets'", "", flow));
    for _ in 0..5 {
        session.send("meter[0]", "head", 600, at(1.0)).unwrap();
    }
    let reports = advance(&mut session, at(10.0));
    let fates: Vec<_> = reports.iter().map(|report| (report.id.0, report.fate)).collect();
    let full = MessageFate::Lost(LossReason::QueueFull);
    let kept = [0, 1, 2].map(|id| (id, MessageFate::Delivered));
    assert_eq!(fates, [&[(3, full), (4, full)][..], &kept].concat());
    assert_eq!(reports[0].at, at(1.0));
    session.set_link("uplink", &LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
    session.send("meter[0]", "head", 600, at(11.0)).unwrap();
    let lost = advance(&mut session, at(20.0)).remove(0);
    assert_eq!(lost.fate, MessageFate::Lost(LossReason::Outage));
    assert!(lost.at > at(11.0));
}

#[test]
fn nothing_is_delivered_before_the_next_event() {
    let mut session = open(&meters(LOSSY, "", EXTERNAL));
    assert_eq!(session.next_event(), None);
    for Sent { at, member, bytes } in messages(60) {
        session.send(&format!("meter[{member}]"), "head", bytes, at).unwrap();
    }
    let (mut steps, mut delivered) = (0, 0);
    while let Some(next) = session.next_event() {
        assert!(next >= session.now(), "{next:?}");
        if next > session.now() {
            let before = Instant::from_nanos(next.as_nanos() - 1);
            assert_eq!(advance(&mut session, before), []);
        }
        delivered += advance(&mut session, next).len();
        steps += 1;
    }
    assert_eq!(delivered, 60);
    assert!((100..5_000).contains(&steps), "{steps}");
    assert_eq!(session.in_flight(), 0);
}

#[test]
fn an_interrupted_step_is_continued() {
    let (scenario, messages) = (meters(LOSSY, "", EXTERNAL), messages(1_500));
    let send = || {
        let mut session = open(&scenario);
        for Sent { at, member, bytes } in &messages {
            session.send(&format!("meter[{member}]"), "head", *bytes, *at).unwrap();
        }
        session
    };
    let whole = advance(&mut send(), at(100.0));
    let mut session = send();
    let step = session.advance_to(at(100.0), || false).unwrap();
    assert_eq!(step, Step { reports: Vec::new(), interrupted: true });
    assert!(session.now() < at(100.0));
    assert_eq!(advance(&mut session, at(100.0)), whole);
}

#[test]
fn a_wrong_call_is_refused_and_changes_nothing() {
    let mut session = open(&meters("", "", EXTERNAL));
    advance(&mut session, at(5.0));
    let now = at(5.0);
    let mut refused = |from: &str, to: &str, bytes, time| {
        session.send(from, to, bytes, time).unwrap_err().to_string()
    };
    let text = refused("metre[0]", "head", 9, now);
    assert_eq!(text, "there is no node `metre`\n  help: choose one of: meter, head, concentrator");
    let text = refused("meter", "head", 9, now);
    assert!(text.starts_with("`meter` is a group of 5\n  help: name one of its members"), "{text}");
    let text = refused("meter[5]", "head", 9, now);
    assert!(text.contains("no member `meter[5]`") && text.contains("`meter[4]`"), "{text}");
    let text = refused("head", "meter[1]", 9, now);
    assert!(text.contains("from `head` to `meter[1]`") && text.contains("meter to head"), "{text}");
    let text = refused("meter[1]", "head", 9, at(4.9));
    assert!(text.starts_with("4.9 s is before the time of the session, 5 s"), "{text}");
    assert!(refused("meter[1]", "head", 0, now).contains("send at least 1 B"));
    assert_eq!((session.in_flight(), session.now()), (0, now));
    let back = session.advance_to(at(4.0), || true).unwrap_err();
    assert!(matches!(back, SessionError::TimeGoesBack { .. }));
    let text = session.set_link("uplnk", &LinkChange::default()).unwrap_err().to_string();
    assert!(text.contains("street, uplink"), "{text}");
    let zero = LinkChange { rate: Some("0 bit/s".parse().unwrap()), ..LinkChange::default() };
    assert!(session.set_link("uplink", &zero).unwrap_err().to_string().contains("`up = false`"));
}

#[test]
fn a_scenario_that_cannot_be_stepped_names_the_keys() {
    let refused = |scenario: &Scenario| Session::open(scenario, 0).unwrap_err().to_string();
    let plain = meters("", "", "load = 'bulk'");
    assert!(refused(&plain).contains("no flow has load = \"external\""), "{}", refused(&plain));
    let mut recording = meters("", "", EXTERNAL);
    recording.record.interval = Some(Duration::from_secs(1));
    assert!(refused(&recording).contains("record: "));
    let text =
        refused(&meters("duplicate = '1 %'", "", "transport = 'datagram'\nload = 'external'"));
    assert!(text.contains("link.street.duplicate"), "{text}");
    assert!(Session::open(&meters("duplicate = '1 %'", "", EXTERNAL), 0).is_ok());
    let large = open(&meters("", "", "transport = 'datagram'\nload = 'external'"))
        .send("meter[0]", "head", 1_473, at(0.0))
        .unwrap_err();
    assert!(large.to_string().contains("exceeds the largest datagram of 1472 B"), "{large}");
}

#[test]
fn a_run_refuses_messages_of_another_program() {
    let scenario = meters("", "", EXTERNAL);
    let error = Sim { threads: 1 }.run(&scenario, &NoProgress).unwrap_err().to_string();
    assert!(error.starts_with("flow.reports.load: a run has no program"), "{error}");
}

#[test]
fn a_message_to_a_node_that_does_not_answer_is_lost() {
    let flow = "stack = 's'\nload = 'external'\n[stack.s]\nhandshake = true";
    let mut session = open(&meters("", "", flow));
    session.set_link("uplink", &LinkChange { up: Some(false), ..LinkChange::default() }).unwrap();
    session.send("meter[0]", "head", 100, at(0.0)).unwrap();
    let reports = advance(&mut session, at(1_000.0));
    let fates: Vec<_> = reports.iter().map(|report| report.fate).collect();
    assert_eq!(fates, [MessageFate::Lost(LossReason::ConnectionFailed)]);
    session.send("meter[0]", "head", 100, at(1_001.0)).unwrap();
    let late = advance(&mut session, at(1_002.0)).remove(0);
    assert_eq!(late.fate, MessageFate::Lost(LossReason::ConnectionFailed));
}

#[test]
fn a_step_to_the_first_report_ends_at_its_time() {
    let messages = messages(60);
    let send = || {
        let mut session = open(&meters(LOSSY, "", EXTERNAL));
        for Sent { at, member, bytes } in &messages {
            session.send(&format!("meter[{member}]"), "head", *bytes, *at).unwrap();
        }
        session
    };
    let whole = advance(&mut send(), at(100.0));
    let (mut session, mut found) = (send(), Vec::new());
    while session.in_flight() > 0 {
        let reports = session.advance_to_report(at(100.0), || true).unwrap().reports;
        assert!(!reports.is_empty());
        assert!(reports.iter().all(|report| report.at == session.now()), "{reports:?}");
        found.extend(reports);
    }
    assert_eq!(found, whole);
    // Without a message in flight, the step ends at its time.
    assert_eq!(session.advance_to_report(at(200.0), || true).unwrap(), Step::default());
    assert_eq!(session.now(), at(200.0));
}

#[test]
fn a_node_that_fails_takes_its_links_down() {
    let flow = "transport = 'datagram'\nload = 'external'";
    let mut session = open(&meters("", "", flow));
    let fates = |session: &mut Session, start: f64| {
        for member in [1, 2] {
            session.send(&format!("meter[{member}]"), "head", 100, at(start)).unwrap();
        }
        let mut reports = advance(session, at(start + 5.0));
        reports.sort_by_key(|report| report.id);
        reports.into_iter().map(|report| report.fate).collect::<Vec<_>>()
    };
    let (delivered, lost) = (MessageFate::Delivered, MessageFate::Lost(LossReason::Outage));
    session.set_node("meter[1]", false).unwrap();
    assert_eq!(fates(&mut session, 0.0), [lost, delivered]);
    session.set_node("concentrator", false).unwrap();
    assert_eq!(fates(&mut session, 10.0), [lost, lost]);
    // The link of meter 1 works again with the later of its two ends, and the link itself.
    session.set_node("concentrator", true).unwrap();
    assert_eq!(fates(&mut session, 20.0), [lost, delivered]);
    let link = |up| LinkChange { up: Some(up), ..LinkChange::default() };
    session.set_link("street[1]", &link(false)).unwrap();
    session.set_node("meter[1]", true).unwrap();
    assert_eq!(fates(&mut session, 30.0), [lost, delivered]);
    let before = session.snapshot();
    session.set_link("street[1]", &link(true)).unwrap();
    assert_eq!(fates(&mut session, 40.0), [delivered, delivered]);
    session.restore(&before).unwrap();
    session.set_node("meter[1]", true).unwrap();
    assert_eq!(fates(&mut session, 40.0), [lost, delivered]);
    let error = session.set_node("metre", false).unwrap_err().to_string();
    assert_eq!(error, "there is no node `metre`\n  help: choose one of: meter, head, concentrator");
}

#[test]
fn the_members_of_a_shared_link_fail_together() {
    let mut scenario = meters("", "", "transport = 'datagram'\nload = 'external'");
    scenario.link["street"].shared = true;
    let mut session = open(&scenario);
    let error = session.set_node("meter[1]", false).unwrap_err().to_string();
    assert!(error.starts_with("`meter[1]` shares link `street` with other members"), "{error}");
    session.set_node("meter[1]", true).unwrap();
    session.set_node("meter", false).unwrap();
    assert!(session.set_node("meter[1]", true).is_err());
    session.send("meter[1]", "head", 100, at(0.0)).unwrap();
    let reports = advance(&mut session, at(1.0));
    assert_eq!(reports[0].fate, MessageFate::Lost(LossReason::Outage));
}
