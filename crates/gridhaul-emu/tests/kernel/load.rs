//! Loads: requests, bursts and recorded messages.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{ColumnData, Metric};

use crate::pair::pair;
use crate::{mean, run, run_with};

#[test]
fn messages_of_a_failed_connection_are_due_lost_and_late() {
    let link = "both = { rate = '1 Mbit/s', delay = '10 ms', \
        outage = [{ start = '0 s', length = '1 h' }] }";
    let loads = [
        ("on_off = { on = '100 ms', off = '400 ms', size = '200 B', spread = 'fixed' }", 4.0..=6.0),
        ("request_response = { request = '10 B', response = '10 B' }", 1.0..=1.0),
    ];
    for (load, due) in loads {
        let flow =
            format!("[flow.up]\nfrom = 'near'\nto = 'far'\ndeadline = '1 s'\nload = {{ {load} }}");
        let Some(answer) = run("duration = '2500 ms'", &pair(link, &flow)) else { return };
        let counted = mean(&answer, "up", Metric::MessagesDue);
        assert!(due.contains(&counted), "{load}: {counted}");
        assert_eq!(mean(&answer, "up", Metric::MessageLoss), 1.0, "{load}");
        assert_eq!(mean(&answer, "up", Metric::DeadlineMet), 0.0, "{load}");
        assert_eq!(mean(&answer, "up", Metric::ConnectionsFailed), 1.0, "{load}");
    }
}

#[test]
fn responses_follow_requests() {
    let link = "both = { rate = '10 Mbit/s', delay = '10 ms' }";
    let flows = "[flow.poll]\nfrom = 'near'\nto = 'far'\n\
        load = { request_response = { request = '50 B', response = '500 B', think = '5 ms', \
        pause = '75 ms' } }";
    let Some(answer) = run("duration = '2 s'\nwarmup = '500 ms'", &pair(link, flows)) else {
        return;
    };
    let median = mean(&answer, "poll", Metric::DelayMedian);
    assert!(
        (0.025..0.0275).contains(&median),
        "two propagation delays of 10 ms and 5 ms of think time: {median} s"
    );
    // One round takes 25 ms, then a pause of 75 ms.
    let rounds = mean(&answer, "poll", Metric::Messages);
    assert!((13.0..=15.0).contains(&rounds), "{rounds}");
}

#[test]
fn the_steps_of_an_exchange_follow_each_other() {
    let link = "both = { rate = '10 Mbit/s', delay = '10 ms' }";
    // With Nagle's algorithm, the second step would wait for the delayed acknowledgement of the
    // first one.
    let flows = "[stack.prompt]\nnagle = false\n\
        [flow.talk]\nfrom = 'near'\nto = 'far'\nstack = 'prompt'\n\
        load.exchange = { every = '200 ms', steps = [{ writer = 'from', size = '20 B' }, \
        { writer = 'from', size = '60 B', after = '30 ms' }, \
        { writer = 'to', size = '200 B', after = '5 ms' }] }";
    let Some(answer) = run("duration = '2 s'", &pair(link, flows)) else { return };
    // Two propagation delays of 10 ms, and 35 ms between the steps; later on a busy machine.
    let median = mean(&answer, "talk", Metric::DelayMedian);
    assert!((0.055..0.15).contains(&median), "{median} s");
    assert_eq!(mean(&answer, "talk", Metric::MessagesDue), 10.0);
    let complete = mean(&answer, "talk", Metric::Messages);
    assert!((8.0..=10.0).contains(&complete), "{complete}");
}

#[test]
fn the_window_of_iec_104_limits_the_rate_over_gprs() {
    // Of the scenario, with values so often that the window is full soon.
    let text = include_str!("../../../../scenarios/iec104-gprs.toml")
        .replace("every = \"100 ms\"", "every = \"50 ms\"")
        .replace("duration = \"10 min\"", "duration = \"16 s\"")
        .replace("warmup = \"1 min\"", "warmup = \"4 s\"");
    let (text, _) = text.split_once("\n[[sweep]]").expect("a sweep");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    // The calculation is in the comment of the scenario: a round of 8 frames takes 0.9628 s, and
    // longer on a busy machine. The measured time has 12 or 13 rounds.
    let rounds = mean(&answer, "values", Metric::Goodput) * 12.0 / (72.0 * 8.0 * 8.0);
    assert!((10.0..=13.1).contains(&rounds), "{rounds} rounds");
    // Without a window, all would arrive.
    assert_eq!(mean(&answer, "values", Metric::MessagesDue), 240.0);
}

/// An excerpt of scenarios/iec104-outage.toml with shorter times: values every 0.5 s, an outage
/// from 4 s to 9 s, and the end of data transfer by both stations before 8 s.
#[test]
fn the_timers_of_iec_104_end_a_connection_that_an_outage_has_interrupted() {
    let link = "both = { rate = '100 kbit/s', delay = '50 ms', \
        outage = [{ start = '4 s', length = '5 s' }] }";
    let flow = "[flow.values]\nfrom = 'near'\nto = 'far'\n\
        reconnect = { timeout = '1 s', pause = '500 ms', factor = 1 }\n\
        load.iec_104 = { controlled = 'to', values = 4, every = '500 ms', synchronised = true, \
        t1 = '1500 ms', t2 = '1 s', t3 = '2 s' }";
    let Some(answer) = run("duration = '16 s'", &pair(link, flow)) else { return };
    let count = |metric| mean(&answer, "values", metric);
    assert_eq!((count(Metric::MessagesDue), count(Metric::GivenUp)), (32.0, 0.0));
    // The connection is lost, attempts in the outage fail, and the last one transmits everything.
    assert!(count(Metric::ConnectionsLost) >= 1.0);
    assert!(count(Metric::ConnectionsFailed) >= 1.0);
    assert!(count(Metric::ConnectionsOpened) >= 2.0);
    assert!(count(Metric::MessageRetransmissions) >= 2.0);
    assert!(count(Metric::DelayMax) >= 4.5);
    // An attempt begins at the latest 1.5 s after the outage, and connects at once.
    let arrived = count(Metric::Messages);
    assert!((25.0..=32.0).contains(&arrived), "{arrived} frames");
}

#[test]
fn traces_are_played_and_packets_captured() {
    let folder = tempfile::tempdir().expect("a folder");
    // The last message is after the end of the run. A datagram must fit into one packet.
    let [day, datagrams] = [("day.csv", 3000), ("datagrams.csv", 1400)].map(|(name, first)| {
        let path = folder.path().join(name);
        let rows = format!("0.1,{first},0\n0.2,100,1\n0.2,100,0\n1.0,200,1\n9,1,1\n");
        std::fs::write(&path, format!("time_s,bytes,member\n{rows}")).expect("a file");
        path
    });
    let text = format!(
        "title = 'day'\nduration = '1500 ms'\nrecord = {{ pcap = ['wire'], interval = '1 s' }}\n\
         [node]\nmeter = {{ count = 2 }}\nhead = {{}}\n\
         [link.wire]\nfrom = 'meter'\nto = 'head'\n\
         both = {{ rate = '1 Mbit/s', delay = '10 ms' }}\n\
         [flow.tcp]\nfrom = 'meter'\nto = 'head'\nload = {{ trace = {{ file = '{day}' }} }}\n\
         [flow.udp]\nfrom = 'meter'\nto = 'head'\ntransport = 'datagram'\n\
         load = {{ trace = {{ file = '{datagrams}' }} }}",
        day = day.display(),
        datagrams = datagrams.display()
    );
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    for flow in ["tcp", "udp"] {
        assert_eq!(mean(&answer, flow, Metric::Messages), 4.0, "{flow}");
    }
    // The first message of the first member by TCP is in transit from 0.1 s on: 3 segments, about
    // 25 ms.
    let delays = answer.series.iter().find(|series| series.name == "delays").expect("delays");
    let (Ok(ColumnData::Real(at)), Ok(ColumnData::Real(delay))) =
        (delays.values(0, 0..delays.row_count()), delays.values(2, 0..delays.row_count()))
    else {
        panic!("times")
    };
    assert!(
        at.iter().all(|at| [0.1, 0.2, 1.0].iter().any(|due| (at - due).abs() < 1e-9)),
        "{at:?}"
    );
    assert!(delay.iter().all(|delay| (0.01..0.1).contains(delay)), "{delay:?}");
    let captures: Vec<_> = answer.captures.iter().map(|capture| capture.name.as_str()).collect();
    assert_eq!(captures, ["wire.forward", "wire.reverse"]);
    // Of the first meter: a handshake of two packets, three segments and one, and two datagrams.
    let mut file = Vec::new();
    answer.captures[0].pcapng.copy_to(&mut file).unwrap();
    assert!(packets(&file) >= 8, "{}", packets(&file));
}

#[test]
fn changes_between_samples_of_a_kernel_connection_are_logged() {
    let text = "title = 'log'\nduration = '3 s'\nrecord.events = ['up']\n[node]\na = {}\nb = {}\n\
         [link.wire]\nfrom = 'a'\nto = 'b'\n\
         both = { rate = '2 Mbit/s', delay = '10 ms', queue = '8 packets' }\n\
         [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'";
    let Some(answer) = run_with(text, Emu::default()) else { return };
    let mut log = Vec::new();
    answer.event_logs[0].jsonl.copy_to(&mut log).unwrap();
    let log = String::from_utf8(log).unwrap();
    let first = log.lines().next().unwrap();
    assert!(
        first.contains("\"event\":\"parameters_set\"") && first.contains("\"cubic\""),
        "{first}"
    );
    // Slow start overflows a queue of eight packets.
    for event in ["congestion_window_updated", "rtt_sampled", "segments_retransmitted"] {
        assert!(log.contains(event), "{event} is missing in\n{log}");
    }
    let causes = log.matches("\"cause\":").count();
    let sampled =
        log.matches("\"cause\":\"sample\"").count() + log.matches("\"cause\":\"start\"").count();
    assert_eq!(causes, sampled, "the kernel tells no causes");
}

/// Packets in a pcapng file: enhanced packet blocks (6).
fn packets(mut file: &[u8]) -> usize {
    let word = |file: &[u8], at: usize| {
        u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"))
    };
    let mut packets = 0;
    while !file.is_empty() {
        packets += usize::from(word(file, 0) == 6);
        file = &file[word(file, 4) as usize..];
    }
    packets
}
