//! Explanations of captures, and scenarios and simulations from them.

use crate::support::Desk;

/// A client that uploads over a line of 2 Mbit/s, with a receive window of a fifth of what fills
/// it, or of more.
fn scenario(window: &str) -> String {
    format!(
        "title = 'upload'\nduration = '10 s'\nwarmup = '0 s'\nreplications = 1\n\
         [node]\nclient = {{}}\nbox = {{}}\nserver = {{}}\n\
         [link.lan]\nfrom = 'client'\nto = 'box'\nboth = {{ rate = '1 Gbit/s', delay = '10 us' }}\n\
         [link.line]\nfrom = 'box'\nto = 'server'\n\
         both = {{ rate = '2 Mbit/s', delay = '100 ms', queue = '60 packets' }}\n\
         [stack.t]\nreceive_window = '{window}'\n\
         [flow.upload]\nfrom = 'client'\nto = 'server'\nload = 'bulk'\nstack = 't'\n"
    )
}

/// A desk with the captures `lan.forward.pcapng` and `lan.reverse.pcapng` in `results/upload`.
pub(crate) fn captured(window: &str) -> Desk {
    captured_of(scenario(window))
}

fn captured_of(scenario: String) -> Desk {
    let desk = Desk::new().file("upload.toml", scenario);
    let run = desk.run("run upload.toml --pcap lan -q");
    assert_eq!(run.code, Some(0), "{run:?}");
    desk
}

/// The same with an outage of the line from 4 s to 6 s.
pub(crate) fn captured_with_outage() -> Desk {
    let outage = "outage = [{ start = '4 s', length = '2 s', mode = 'drop' }]";
    let line = "queue = '60 packets' }";
    captured_of(scenario("1 MB").replace(line, &format!("queue = '60 packets', {outage} }}")))
}

pub(crate) const CAPTURES: &str =
    "results/upload/lan.forward.pcapng results/upload/lan.reverse.pcapng";

#[test]
fn a_capture_is_explained_in_a_sentence_a_table_and_all_numbers() {
    let desk = captured("10 kB");
    let text = desk.run(&format!("explain {CAPTURES}"));
    assert_eq!((text.code, text.err.as_str()), (Some(0), ""), "{text:?}");
    assert!(text.out.starts_with("1. 10.0.255.254:1024 → 10.2.255.254:7 ("), "{}", text.out);
    let limit = ": limited by the receive window: the bytes in flight filled the receive window";
    assert!(text.out.contains(limit), "{}", text.out);

    let table = desk.run(&format!("explain {CAPTURES} --format csv"));
    let lines: Vec<_> = table.out.lines().collect();
    assert!(lines.len() == 2 && lines[1].contains(",receive_window,high,"), "{table:?}");
    let cells = lines[0].split(',').count();
    assert!(cells > 30 && lines[0].ends_with("share_link_rate"), "{}", lines[0]);

    let json = desk.run(&format!("explain {CAPTURES} --format json --out all.json"));
    assert_eq!((json.code, json.out.as_str()), (Some(0), ""), "{json:?}");
    let facts: serde_json::Value = serde_json::from_str(&desk.text("all.json")).unwrap();
    let connection = &facts["connections"][0];
    assert_eq!(connection["verdict"]["limit"], "receive_window", "{connection}");
    assert_eq!(connection["position"]["at"], "sender", "{connection}");

    let details = desk.run(&format!("explain {CAPTURES} --connection 1"));
    assert!(details.out.contains("\n  largest receive window  "), "{}", details.out);
    let missing = desk.run(&format!("explain {CAPTURES} --connection 2"));
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("--connection 2: the capture has 1 connections"), "{missing:?}");
}

#[test]
fn a_file_that_is_no_capture_is_an_error_with_the_byte() {
    let desk = captured("10 kB").file("notes.txt", "time,bytes\n0,200\n1,200\n2,200\n");
    let path = desk.dir.path().join("results/upload/lan.forward.pcapng");
    let whole = std::fs::read(path).unwrap();
    let desk = desk.file("cut.pcapng", &whole[..whole.len() - 9]);
    for (file, message) in [
        ("notes.txt", "notes.txt: byte 0: expected pcap or pcapng"),
        ("cut.pcapng", "the file ends within a packet"),
        ("missing.pcap", "cannot read missing.pcap"),
        ("results", "results is a folder"),
    ] {
        let done = desk.run(&format!("explain {file}"));
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{file}: {done:?}");
        assert!(done.err.contains(message), "{file}: {}", done.err);
    }
}

#[test]
fn a_capture_becomes_a_scenario_with_the_estimated_link_and_the_load() {
    let desk = captured("1 MB");
    let import = desk.run(&format!("import pcap {CAPTURES} --out measured"));
    assert_eq!(import.code, Some(0), "{import:?}");
    let text = desk.text("measured/scenario.toml");
    assert!(text.contains("rate = \"2 Mbit/s\"") || text.contains("rate = \"2_"), "{text}");
    for line in
        ["# median of the busy periods of connection 1", "delay = \"99.9", "[flow.connection-1-up]"]
    {
        assert!(text.contains(line), "{line}: {text}");
    }
    let check = desk.run("check measured/scenario.toml");
    assert_eq!(check.code, Some(0), "{check:?}");
    let run = desk.run("run measured/scenario.toml --csv -q");
    assert_eq!(run.code, Some(0), "{run:?}");
    let again = desk.run(&format!("import pcap {CAPTURES} --out measured"));
    assert!(again.code == Some(2) && again.err.contains("measured exists"), "{again:?}");
}

#[test]
fn the_delay_of_an_import_is_that_of_the_given_rate() {
    let slow = scenario("1 MB")
        .replace("2 Mbit/s", "20 kbit/s")
        .replace("load = 'bulk'", "load.periodic = { size = '200 B', every = '2 s' }");
    let desk = captured_of(slow);
    let import = desk.run(&format!("import pcap {CAPTURES} --rate '20 kbit/s' --out measured"));
    assert_eq!(import.code, Some(0), "{import:?}");
    // 100 ms; the handshake of 242 ms contains transmissions.
    let text = desk.text("measured/scenario.toml");
    assert!(text.contains("without transmission times"), "{text}");
    let delays = text.lines().filter_map(|line| line.strip_prefix("delay = \""));
    for delay in delays {
        let delay: f64 = delay.trim_end_matches(" ms\"").parse().unwrap();
        assert!((96.0..101.0).contains(&delay), "{text}");
    }
}

#[test]
fn a_file_that_is_given_twice_is_read_once() {
    let desk = captured("10 kB");
    let file = "results/upload/lan.forward.pcapng";
    let done = desk.run(&format!("explain {file} {CAPTURES}"));
    assert_eq!(done.out, desk.run(&format!("explain {CAPTURES}")).out);
    assert_eq!(done.err, "note: a capture is given twice, and read once\n");
}

/// The comparison as JSON.
fn compared(desk: &Desk, options: &str) -> serde_json::Value {
    let done = desk.run(&format!("explain --simulate {CAPTURES} --format json {options}"));
    assert_eq!(done.code, Some(0), "{done:?}");
    serde_json::from_str(&done.out).unwrap()
}

#[test]
fn the_load_of_a_capture_over_the_estimated_link_has_its_goodput() {
    // The window fills the link and its queue without a loss.
    let desk = captured("100 kB");
    let text = desk.run(&format!("explain --simulate {CAPTURES}"));
    assert_eq!(text.code, Some(0), "{text:?}");
    let heading = text.out.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    let expected = ["connection", "data", "measured", "simulated", "difference", "part", "at"];
    assert_eq!(heading, expected, "{}", text.out);
    assert!(text.out.contains("\n1: the acknowledged bytes never differ by more"), "{}", text.out);
    let comparison = compared(&desk, "");
    let connection = &comparison["connections"][0];
    let difference = connection["difference"].as_f64().unwrap();
    assert!(difference.abs() < 0.05, "{connection}");
    assert!(connection["parting"].is_null(), "{connection}");
    assert_eq!(connection["simulated_limit"], connection["measured_limit"], "{connection}");
    assert_eq!(compared(&desk, "--seed 1"), comparison, "the default seed is 1");
    let table = desk.run(&format!("explain --simulate {CAPTURES} --format csv --connection 1"));
    assert_eq!(table.out.lines().count(), 2, "{table:?}");
}

/// The estimated link has no outage: the capture waits for timeouts that the simulation does not
/// have.
#[test]
fn a_capture_parts_from_its_simulation_at_an_outage_and_the_timeouts_are_the_reason() {
    let desk = captured_with_outage();
    let comparison = compared(&desk, "");
    let parting = &comparison["connections"][0]["parting"];
    assert_eq!(parting["behind"], "measured", "{comparison}");
    let at_s = parting["at_s"].as_f64().unwrap();
    assert!((4.0..7.0).contains(&at_s), "{parting}");
    let reason = parting["reason"].as_str().unwrap();
    assert!(reason.contains("the capture waits"), "{reason}");
    assert!(reason.contains("longer for retransmission timeouts"), "{reason}");
    // With a tolerance of all data, the curves do not part.
    let tolerant = compared(&desk, "--tolerance '100 %'");
    assert!(tolerant["connections"][0]["parting"].is_null(), "{tolerant}");
}

#[test]
fn a_simulation_that_is_not_possible_names_the_option() {
    let desk = captured("10 kB");
    for (arguments, message) in [
        // A small window never fills the link.
        (format!("--simulate {CAPTURES}"), "help: give it with --rate"),
        (format!("--simulate {CAPTURES} --rate fast"), "is not a rate such as"),
        (format!("--simulate {CAPTURES} --tolerance 10"), "the % is missing"),
        (format!("{CAPTURES} --seed 3"), "--simulate"),
        (format!("{CAPTURES} --format packets"), "help: choose one with --connection"),
        (format!("--simulate {CAPTURES} --rate '2 Mbit/s' --connection 9"), "has 1 connections"),
        (
            format!("--simulate {CAPTURES} --rate '2 Mbit/s' --format packets"),
            "help: omit --simulate",
        ),
    ] {
        let done = desk.run(&format!("explain {arguments}"));
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{arguments}: {done:?}");
        assert!(done.err.contains(message), "{arguments}: {}", done.err);
    }
    let limited = compared(&desk, "--rate '2 Mbit/s'");
    assert_eq!(limited["connections"][0]["simulated_limit"], "receive_window", "{limited}");
}

#[test]
fn the_packets_of_a_connection_are_a_table() {
    let desk = captured("10 kB");
    let packets = desk.run(&format!("explain {CAPTURES} --connection 1 --format packets"));
    assert_eq!((packets.code, packets.err.as_str()), (Some(0), ""), "{packets:?}");
    let mut lines = packets.out.lines();
    assert_eq!(lines.next(), Some("kind,time_s,start_byte,end_byte"));
    let segments = lines.filter(|line| line.starts_with("segment,")).count() as u64;
    let json = desk.run(&format!("explain {CAPTURES} --format json"));
    let facts: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(facts["connections"][0]["counters"]["packets"], segments);
}
