//! Configurations from the nodes of a scenario.

use std::fs;

use crate::relays::Relays;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");

/// Output, or the error, of `config` with a scenario.
fn derive(relays: &Relays, scenario: &str, arguments: &[&str]) -> Result<String, String> {
    let words = [&["config", scenario][..], arguments].concat();
    let done = relays.command(&words).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

#[test]
fn a_split_proxy_of_a_scenario_becomes_a_relay() {
    let relays = Relays::new("local", "");
    let text = fs::read_to_string(format!("{SCENARIOS}/proxy-crash.toml")).unwrap();
    fs::write(relays.path("split.toml"), text.replace("\"reflect\"\n", "\"split\"\n")).unwrap();
    let arguments = ["--node", "unit1", "--upstream", "server.example:80", "--listen", "[::]:80"];
    let text = derive(&relays, "split.toml", &arguments).unwrap();
    for line in ["[split]", "address = \"[::]:80\"", "upstream = \"server.example:80\""] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    assert!(text.contains("client.receive_buffer = "), "{text}");
    fs::write(relays.path("derived.toml"), &text).unwrap();
    let checked = relays.command(&["check", "derived.toml"]).output().unwrap();
    assert!(checked.status.success(), "{text}{}", String::from_utf8_lossy(&checked.stderr));
    let error = derive(&relays, "split.toml", &["--node", "unit1", "--deliver", "file:f"]);
    assert!(error.unwrap_err().contains("a proxy has no head"));
}

#[test]
fn a_proxy_of_a_scenario_becomes_a_bridge() {
    let relays = Relays::new("local", "");
    let text = fs::read_to_string(format!("{SCENARIOS}/proxy-crash.toml")).unwrap();
    let interfaces = ["--node", "unit1", "--interfaces", "plc0,plc1"];
    for (mode, arguments, lines) in [
        ("reflect", &["--node", "unit1"][..], &["interfaces = [\"eth0\", \"eth1\"]"][..]),
        ("reflect", &interfaces, &["interfaces = [\"plc0\", \"plc1\"]", "buffer = "]),
        ("reflect", &interfaces, &["congestion_control = ", "delayed_ack = "]),
        ("spoof", &interfaces, &["buffer = "]),
        ("split", &interfaces, &["buffer = ", "congestion_control = "]),
        ("snoop", &interfaces, &["toward = \"plc1\"", "buffer = "]),
        ("ack", &interfaces, &["toward = \"plc0\"", "max_ack_delay = "]),
    ] {
        fs::write(relays.path("a.toml"), text.replace("\"reflect\"\n", &format!("{mode:?}\n")))
            .unwrap();
        // The configuration is checked before it is printed.
        let derived = derive(&relays, "a.toml", arguments).unwrap();
        assert!(derived.contains(&format!("[bridge.rule.flows]\nmode = {mode:?}\n")), "{derived}");
        for line in lines {
            assert!(derived.lines().any(|found| found.starts_with(line)), "{line}\n{derived}");
        }
    }
    let wrong = ["--node", "unit1", "--interfaces", "plc0"];
    let error = derive(&relays, "a.toml", &wrong).unwrap_err();
    assert!(error.contains("--interfaces") && error.contains("expected two"), "{error}");
    let error = derive(&relays, "a.toml", &["--node", "home"]).unwrap_err();
    assert!(error.contains("not a node with an aggregator or a proxy"), "{error}");
}

#[test]
fn the_head_of_an_aggregator_has_each_destination() {
    let relays = Relays::new("local", "");
    let scenario = format!("{SCENARIOS}/aggregators.toml");
    for (destination, line) in [
        ("file:messages.jsonl", "deliver.file = \"messages.jsonl\""),
        ("tcp:server.example:4059", "deliver.tcp.server = \"server.example:4059\""),
        ("mqtt:127.0.0.1:1883", "deliver.mqtt.broker = \"127.0.0.1:1883\""),
    ] {
        let arguments = ["--node", "collector", "--deliver", destination];
        let text = derive(&relays, &scenario, &arguments).unwrap();
        assert!(text.lines().any(|found| found == line), "{text}");
    }
    for wrong in ["udp:127.0.0.1:1", "mqtt:127.0.0.1", "tcp:"] {
        let arguments = ["--node", "collector", "--deliver", wrong];
        let error = derive(&relays, &scenario, &arguments).unwrap_err();
        assert!(error.contains("--deliver") && error.contains("expected"), "{error}");
    }
}
