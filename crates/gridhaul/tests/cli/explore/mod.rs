//! `gridhaul explore`: its answers are those of the command line, and only its own page gets them.

mod browser;
mod capture;
mod page;
mod web_page;

use serde_json::Value;

use crate::support::{Desk, SMALL, repository, words};
use page::Page;

/// A run with these settings.
fn run(page: &Page, settings: &[String]) -> Value {
    let body = serde_json::json!({ "settings": settings, "seed": 7 });
    let (status, text) = page.post("api/run", &body.to_string());
    assert_eq!(status, 200, "{text}");
    serde_json::from_str(&text).unwrap()
}

/// Settings that move the first two sliders of a page.
fn moved(page: &Page) -> Vec<String> {
    let subject: Value = serde_json::from_str(&page.get("api/subject").1).unwrap();
    let controls = subject["scenario"]["controls"].as_array().unwrap();
    let of_kind = |quantity: &str| {
        let control = controls.iter().find(|control| control["quantity"] == quantity)?;
        control["settings"][0].as_str()
    };
    let moves = [("bit_rate", "123 kbit/s"), ("duration", "17 ms")];
    let settings = moves.into_iter().filter_map(|(quantity, text)| {
        of_kind(quantity).map(|setting| setting.replace("{}", text))
    });
    settings.collect()
}

/// The answers that the command of the page prints, as text.
fn printed_text(desk: &Desk, command: &str) -> String {
    let arguments = command.strip_prefix("gridhaul ").unwrap();
    let done = desk.run(&format!("{arguments} --json --quiet --out printed --force"));
    assert_eq!(done.code, Some(0), "{command}\n{}", done.err);
    done.out
}

/// The answers that the command of the page prints.
fn printed(desk: &Desk, command: &str) -> Vec<Value> {
    match serde_json::from_str(&printed_text(desk, command)).unwrap() {
        Value::Array(answers) => answers,
        answer => vec![answer],
    }
}

/// Scenarios of all kinds: bulk flows, meters, proxies, outages, shared media, and sweeps, of which
/// the page shows the first point.
const SCENARIOS: [&str; 9] = [
    "fairness",
    "hybrid",
    "lossy-line",
    "lte-lossy",
    "outage",
    "plc-narrowband",
    "queues",
    "relay",
    "shared-line",
];

#[test]
fn answers_are_those_of_the_command_line() {
    let mut pages = vec![("built-in".to_owned(), String::new())];
    pages.extend(SCENARIOS.map(|name| (name.to_owned(), format!("{name}.toml"))));
    for (name, file) in pages {
        let mut desk = Desk::new();
        if !file.is_empty() {
            let text = std::fs::read(repository().join("scenarios").join(&file)).unwrap();
            desk = desk.file(&file, text);
        }
        let page = Page::open(&desk, &file);
        let result = run(&page, &moved(&page));
        let command = result["command"].as_str().unwrap();
        // Without a file of its own, the command runs the scenario that the page copies.
        if command.starts_with("gridhaul run scenario.toml") {
            desk = desk.file("scenario.toml", result["toml"].as_str().unwrap());
        }
        let expected = printed(&desk, command);
        let answers = result["answers"].as_array().unwrap();
        assert_eq!(answers, &expected, "{name}: {command}");
        assert!(!result["series"].as_array().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn both_backends_answer_the_built_in_scenario() {
    let desk = Desk::new();
    let page = Page::open(&desk, "");
    let result = run(&page, &[]);
    let goodput = |index: usize| {
        let row = &result["answers"][index]["points"][0]["flows"][0];
        row["metrics"]["goodput_bit_per_s"]["mean"].as_f64().unwrap()
    };
    let (simulated, calculated) = (goodput(0), goodput(1));
    assert!((1e6..3e6).contains(&simulated), "{simulated}");
    assert!((calculated / simulated - 1.0).abs() < 0.3, "{simulated} and {calculated}");
}

#[test]
fn only_requests_with_token_and_own_host_and_origin_are_answered() {
    let desk = Desk::new().file("small.toml", SMALL);
    let page = Page::open(&desk, "small.toml");
    let host = page.host();
    let path = format!("/{}/api/subject", page.token());
    let get =
        |path: &str, fields: &str| page.request(&format!("GET {path} HTTP/1.1\r\n{fields}"), "");
    let own = format!("Host: {host}\r\n");
    assert_eq!(get(&path, &own).0, 200);
    assert_eq!(get("/", &own).0, 403);
    assert_eq!(get("/api/subject", &own).0, 403);
    let wrong = format!("/{}/api/subject", "0".repeat(page.token().len()));
    assert_eq!(get(&wrong, &own).0, 403);
    assert_eq!(get(&path, "").0, 421);
    assert_eq!(get(&path, "Host: attacker.example\r\n").0, 421);
    for field in ["Origin: http://attacker.example", "Origin: null", "Sec-Fetch-Site: cross-site"] {
        assert_eq!(get(&path, &format!("{own}{field}\r\n")).0, 403, "{field}");
    }
    // Another machine cannot connect: the page listens on the loopback interface only.
    assert!(host.starts_with("127.0.0.1:"), "{host}");
}

#[test]
fn a_setting_that_does_not_apply_has_the_message_of_the_command_line() {
    let desk = Desk::new().file("small.toml", SMALL);
    let page = Page::open(&desk, "small.toml");
    let (status, message) =
        page.post("api/run", r#"{"settings": ["link.wire.both.rate=1 parsec"]}"#);
    assert_eq!(status, 422);
    assert!(message.contains("link.wire.both.rate") && message.contains("Mbit/s"), "{message}");
    let (status, message) = page.post("api/run", r#"{"settings": ["link.wire"]}"#);
    assert_eq!((status, message.contains("KEY=VALUE")), (422, true), "{message}");
}

#[test]
fn a_later_request_ends_a_run_that_takes_long() {
    // An hour at a high rate takes longer than this test waits for the second answer.
    let long = SMALL.replace("5 s", "1 h").replace("1 Mbit/s", "100 Mbit/s");
    let desk = Desk::new().file("long.toml", long);
    let page = Page::open(&desk, "long.toml");
    let short = r#"{"place": "a", "settings": ["duration=1 s", "link.wire.both.rate=1 Mbit/s"]}"#;
    std::thread::scope(|scope| {
        let first = scope.spawn(|| page.post("api/run", r#"{"place": "a"}"#));
        // The second request may arrive before the first one; then the first one cancels it.
        let mut second = page.post("api/run", short).0;
        while !first.is_finished() {
            second = page.post("api/run", short).0;
        }
        assert_eq!((first.join().unwrap().0, second), (409, 200));
    });
}

/// The packets of the second of two flows are told from those of the first by their port.
#[test]
fn the_packets_of_a_flow_are_those_that_its_metrics_and_its_event_log_count() {
    let lossy = SMALL.replace("delay = \"10 ms\"", "delay = \"10 ms\", loss.bernoulli = \"1 %\"");
    let two = lossy + "[flow.other]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n";
    let desk = Desk::new().file("two.toml", two);
    let page = Page::open(&desk, "two.toml");
    let (status, bytes) = page.post_bytes("api/packets", r#"{"flow": "other"}"#);
    assert_eq!(status, 200);
    let length = u32::from_le_bytes(bytes[..4].try_into().unwrap()) as usize;
    let head: Value = serde_json::from_slice(&bytes[4..4 + length]).unwrap();
    let command = head["command"].as_str().unwrap();
    assert_eq!(command, "gridhaul run two.toml --replications 1 --pcap wire --events other");
    let answer = printed(&desk, command).remove(0);
    let metrics = &answer["points"][0]["flows"][1]["metrics"];
    let metric = |name: &str| metrics[name]["mean"].as_f64().unwrap() as u64;
    let arrays = head["arrays"].as_array().unwrap();
    let count = |name: &str| {
        let array = arrays.iter().find(|array| array["name"] == name).unwrap();
        array["length"].as_u64().unwrap()
    };
    let (first, again) = (count("first_transmissions.time_s"), count("retransmissions.time_s"));
    assert_eq!(first + again, metric("segments_sent_count"));
    assert_eq!(again, metric("retransmissions_count"));
    assert!(again > 0 && count("sack.time_s") > 0, "{head}");
    let log = desk.text("printed/events/other.jsonl");
    let is_loss = |line: &&str| line.contains("\"end\":\"from\",\"event\":\"segments_lost\"");
    let marked = head["events"].as_array().unwrap().iter();
    let marked = marked.filter(|event| event["event"] == "segments_lost").count();
    assert_eq!(marked, log.lines().filter(is_loss).count());
    let (status, message) = page.post("api/packets", r#"{"flow": "none"}"#);
    assert_eq!((status, message.contains("\"none\"")), (422, true), "{message}");
}

#[test]
fn the_points_of_a_sweep_are_a_table_of_the_page() {
    let desk = Desk::new().file("small.toml", SMALL);
    let sweep = "sweep small.toml --vary 'link.wire.both.rate=1 Mbit/s,2 Mbit/s' --quiet";
    assert_eq!(desk.run(sweep).code, Some(0));
    let page = Page::open(&desk, "results/small-sweep");
    let (status, text) = page.get("api/results/table?table=flows&only=goodput_bit_per_s");
    assert_eq!(status, 200, "{text}");
    let table: Value = serde_json::from_str(&text).unwrap();
    let columns = table["columns"].as_array().unwrap();
    let goodput = columns.iter().find(|column| column["name"] == "goodput_bit_per_s").unwrap();
    let command = "export results/small-sweep --table flows --only goodput_bit_per_s --csv";
    let exported = desk.run(command).out;
    let mut lines = exported.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let place = names.iter().position(|name| *name == "goodput_bit_per_s").unwrap();
    let expected: Vec<f64> =
        lines.map(|line| line.split(',').nth(place).unwrap().parse().unwrap()).collect();
    let shown: Vec<f64> =
        goodput["values"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!((shown.len(), shown), (2, expected));
}

#[test]
fn a_port_in_use_and_a_file_that_does_not_exist_are_invalid_input() {
    let desk = Desk::new();
    let page = Page::open(&desk, "");
    let port = page.host().rsplit_once(':').unwrap().1.to_owned();
    let done = desk.run(&format!("explore --no-browser --port {port}"));
    assert_eq!(done.code, Some(2));
    assert!(done.err.contains("another program uses this port"), "{}", done.err);
    for path in ["missing.toml", "missing/answer.json"] {
        let done = desk.run(&format!("explore --no-browser {path}"));
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{}", done.err);
    }
}

/// Commands of the documents, which would run until they are interrupted.
pub(crate) fn runs(line: &str) -> bool {
    line.starts_with("gridhaul explore")
}

#[test]
fn the_commands_of_the_guide_open_a_page() {
    let guide = std::fs::read_to_string(repository().join("docs/guides/explore.md")).unwrap();
    let commands = crate::documents::commands(&guide);
    let own: Vec<_> = commands.iter().filter(|line| runs(line)).collect();
    assert!(own.len() >= 3, "{commands:?}");
    let desk = Desk::new();
    let scenarios = desk.dir.path().join("scenarios");
    std::fs::create_dir(&scenarios).unwrap();
    std::fs::copy(
        repository().join("scenarios/lossy-line.toml"),
        scenarios.join("lossy-line.toml"),
    )
    .unwrap();
    let prepares = |line: &&String| {
        ["run", "sweep"].iter().any(|own| line.starts_with(&format!("gridhaul {own} ")))
    };
    for line in commands.iter().filter(prepares) {
        let done = desk.run(line.strip_prefix("gridhaul ").unwrap());
        assert_eq!(done.code, Some(0), "{line}\n{}", done.err);
    }
    for line in own {
        let mut arguments = words(line.strip_prefix("gridhaul explore").unwrap());
        // The port of the guide may be in use on this machine.
        arguments.retain(|argument| argument != "--no-browser");
        if let Some(place) = arguments.iter().position(|argument| argument == "--port") {
            arguments.drain(place..place + 2);
        }
        let page = Page::open(&desk, &arguments.join(" "));
        assert_eq!(page.get("").0, 200, "{line}");
    }
}
