//! Measurements in files: examples, errors, `--save`, and the reference page.

use std::fs;
use std::path::{Path, PathBuf};

use gridhaul_measure::measurement::{Measurement, Place};
use gridhaul_testing::{golden, has_tool};
use serde_json::Value;

use super::run;

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../measurements");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_example_is_read_and_those_on_this_machine_run() {
    let desk = tempfile::tempdir().unwrap();
    let files = examples();
    assert!(files.len() >= 6, "{files:?}");
    for file in files {
        let measurement = Measurement::load(&file).unwrap();
        let again = Measurement::from_toml(&measurement.to_toml(), "saved.toml").unwrap();
        assert_eq!(again, measurement, "{}", file.display());
        if measurement.place != Place::ThisMachine {
            continue;
        }
        let done = run(desk.path(), &format!("run {} --json -q", file.display()));
        let error = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {error}", file.display());
        let document: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(document["command"], measurement.experiment.name(), "{document}");
    }
}

#[test]
fn a_saved_measurement_is_that_of_the_options() {
    let desk = tempfile::tempdir().unwrap();
    let options = "latency iec-104 --k 6 --w 3 --no-reconnect --nodelay none --rate 500 \
        --messages 50 \
                   --warm-up 10 --bytes 64 --horizon 1s --no-floor --class TT6";
    let done = run(desk.path(), &format!("{options} --save saved.toml"));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert!(done.stdout.is_empty());
    let text = fs::read_to_string(desk.path().join("saved.toml")).unwrap();
    for line in ["k = 6", "w = 3", "reconnect = \"never\"", "nodelay = false", "warm_up = 10"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let document = |arguments: &str| -> Value {
        let done = run(desk.path(), &format!("{arguments} --json -q"));
        serde_json::from_slice(&done.stdout).unwrap()
    };
    let (saved, own) = (document("run saved.toml"), document(options));
    for key in ["command", "protocol", "settings", "network", "message_bytes", "horizon_s"] {
        assert_eq!(saved[key], own[key], "{key}");
    }
    assert_eq!((&saved["messages"], &saved["floor"]), (&50.into(), &Value::Null));
}

#[test]
fn a_scenario_is_searched_in_the_folder_of_the_file() {
    let is_possible = std::process::Command::new("unshare").args(["-n", "true"]).status();
    if !has_tool(
        is_possible.is_ok_and(|status| status.success()),
        "the right to create network namespaces",
    ) {
        return;
    }
    let desk = tempfile::tempdir().unwrap();
    let folder = desk.path().join("field");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("link.toml"), super::rates::SCENARIO).unwrap();
    let text = "[experiment.latency]\nschedule = { rate = 200, messages = 50, warm_up = 10 }\n\
        record = { floor = false }\n[protocol.udp]\n[place.emulated]\nnetwork.scenario = { file \
        = \"link.toml\" }\n";
    fs::write(folder.join("latency.toml"), text).unwrap();
    let done = run(desk.path(), "run field/latency.toml --json -q");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let document: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(document["network"], "field/link.toml, flow test");
    assert_eq!(document["messages"], 50);
}

/// A valid measurement. Each case below replaces one part of it by an invalid one.
const VALID: &str = r#"[experiment.latency]
repetitions = 3
schedule = { rate = 100, messages = 1000 }
record = { capture = "packets" }

[protocol.mqtt]
qos = 1
broker.mosquitto = {}
connection = { keep_alive = "10 s" }

[place.emulated]
network.system = "5g-ready"
"#;

const ERRORS: &[(&str, &str, &str)] = &[
    ("unknown key of a protocol", "qos = 1", "k = 12"),
    ("key of another protocol", "qos = 1", "qoz = 1"),
    ("unknown protocol", "[protocol.mqtt]", "[protocol.mqqt]"),
    ("two protocols", "[protocol.mqtt]", "[protocol.udp]\n[protocol.mqtt]"),
    ("protocol without its table", "[protocol.mqtt]\nqos = 1\n", "[protocol]\nmqtt = 1\n"),
    ("unknown experiment", "[experiment.latency]", "[experiment.delay]"),
    ("no experiment", VALID_EXPERIMENT, ""),
    ("wrong type", "repetitions = 3", "repetitions = \"three\""),
    ("outside of a range", "repetitions = 3", "repetitions = 0"),
    ("a time without unit", "\"10 s\"", "10"),
    ("a time that the protocol cannot carry", "\"10 s\"", "\"1500 ms\""),
    ("a rate of no messages", "rate = 100", "rate = 0"),
    ("quality of service", "qos = 1", "qos = 2"),
    ("unknown system", "5g-ready", "6g-ready"),
    (
        "two networks",
        "network.system = \"5g-ready\"",
        "network = { system = \"gprs\", scenario = { file = \"a.toml\" } }",
    ),
    ("broker of another protocol", "broker.mosquitto = {}", "broker.started = {}"),
    (
        "scheme of another protocol",
        "broker.mosquitto = {}",
        "broker.given.url = \"amqp://127.0.0.1:5672\"",
    ),
    ("a URL without port", "broker.mosquitto = {}", "broker.given.url = \"127.0.0.1\""),
    (
        "TLS without a certificate",
        "broker.mosquitto = {}",
        "broker.given.url = \"mqtts://127.0.0.1:8883\"",
    ),
    ("receive times of a stream", "capture = \"packets\"", "kernel_times = true"),
    (
        "prediction without a network",
        "[place.emulated]\nnetwork.system = \"5g-ready\"\n",
        "[message]\nbytes = 100\n",
    ),
    ("a message that is too short", "[place.emulated]", "[message]\nbytes = 10\n[place.emulated]"),
    ("application class", "repetitions = 3", "class = \"TT9\""),
    (
        "outage of a given broker",
        "[experiment.latency]\nrepetitions = 3",
        "[experiment.outage]\ndisturbance.broker = { start = \"1 s\" }",
    ),
    (
        "start of an observed outage",
        "[experiment.latency]\nrepetitions = 3",
        "[experiment.outage]\ndisturbance.observed = { start = \"1 s\" }",
    ),
];

const VALID_EXPERIMENT: &str = "[experiment.latency]\nrepetitions = 3\nschedule = { rate = 100, \
    messages = 1000 }\nrecord = { capture = \"packets\" }\n";

#[test]
fn messages_of_errors_are_as_expected() {
    Measurement::from_toml(VALID, "valid.toml").unwrap();
    let mut page = String::new();
    for (name, part, replacement) in ERRORS {
        assert!(VALID.contains(part), "{name}: no {part:?}");
        let mut text = VALID.replacen(part, replacement, 1);
        if *name == "prediction without a network" {
            text = text.replace("capture = \"packets\"", "capture = \"prediction\"");
        }
        if *name == "outage of a given broker" {
            text = text.replace("broker.mosquitto = {}", "broker.given.url = \"127.0.0.1:1883\"");
        }
        let Err(error) = Measurement::from_toml(&text, "measurement.toml") else {
            panic!("{name}: nothing is wrong with\n{text}");
        };
        page += &format!("## {name}\n\n{error}\n\n");
    }
    golden::check("crates/gridhaul-measure/tests/errors.txt", &page);
}
