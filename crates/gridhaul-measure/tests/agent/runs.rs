//! Complete runs, and runs whose agent goes away.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time;

use gridhaul_linux::PacketSocket;
use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::Value;

use crate::{Agent, PROGRAM, TOKEN, await_folder, error, turn};

fn rows(folder: &Path) -> i64 {
    let parts = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let rows = |path| {
        let part = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
        part.metadata().file_metadata().num_rows()
    };
    parts.map(rows).sum()
}

#[test]
fn messages_pass_to_the_agent_and_back() {
    let _turn = turn();
    let agent = Agent::start();
    let done = agent.run("latency udp --rate 500 --messages 1000 --json --out results");
    assert!(done.status.success(), "{}", error(&done));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!((&summary["messages"], &summary["lost"]), (&1_000.into(), &0.into()), "{summary}");
    let both = &summary["two_machines"];
    assert_eq!(both["round_trip"]["messages"], 1_000);
    assert!(both["clock"]["exchanges"].as_u64().unwrap() >= 50, "{both}");
    let quantile = |value: &Value| value["quantiles"][2]["value_s"].as_f64().unwrap();
    let [low, high, both_ways] =
        ["latency_from_send_at_least", "latency_from_schedule_at_most", "round_trip"]
            .map(|key| quantile(&both[key]));
    assert!(low <= high && low <= both_ways, "{low} {high} {both_ways}");
    // Whether one-way latencies are reported depends on the machine; the answer says so in either
    // case.
    assert_eq!(both["one_way"].as_bool().unwrap(), !summary["latency_from_send"].is_null());
    assert_eq!(both["reason"].is_null(), both["one_way"].as_bool().unwrap());
    for log in ["messages", "round_trips"] {
        assert_eq!(rows(&agent.desk.path().join("results").join(log)), 1_500, "{log}");
    }
    // The agent serves the next controller.
    let done = agent.run("reliability udp --rate 500 --messages 200 --no-echo");
    assert!(done.status.success(), "{}", error(&done));
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("clock of the agent") && !text.contains("come back"), "{text}");
}

#[test]
fn a_broker_at_the_agent_serves_both_ends() {
    if !gridhaul_testing::has_program("mosquitto") {
        return;
    }
    let _turn = turn();
    let agent = Agent::start();
    let search =
        "rate mqtt --rate 50 --rate-min 10 --rate-max 100 --trial 200ms --confirmations 1 --json";
    let done = agent.run(search);
    assert!(done.status.success(), "{}", error(&done));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    // Each trial has a receiver of its own, in one session with one broker.
    assert!(summary["trials"].as_array().unwrap().len() >= 2, "{summary}");
    assert_eq!((&summary["complete"], &summary["fault"]), (&true.into(), &Value::Null));
    assert_eq!(summary["settings"]["broker_program"], "mosquitto");
    assert_eq!(agent.log().matches(": connected").count(), 1, "{}", agent.log());
    for protocol in ["mqtt", "mqtt5 --qos 1", "mqtt --tls"] {
        let done = agent.run(&format!("latency {protocol} --rate 200 --messages 200 --json"));
        assert!(done.status.success(), "{}", error(&done));
        let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!((&summary["messages"], &summary["lost"]), (&200.into(), &0.into()), "{summary}");
        assert_eq!(summary["two_machines"]["round_trip"]["messages"], 200);
        assert_eq!(summary["settings"]["broker_program"], "mosquitto");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the agent ends in the middle of a run in real time")]
fn an_agent_that_goes_away_ends_the_run_and_its_rows_are_kept() {
    let _turn = turn();
    let mut agent = Agent::start();
    let arguments = "latency udp --rate 200 --messages 100000 --horizon 500ms --json --out results";
    let mut controller = agent.controller(arguments);
    controller.args(["--token-file", "token"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let controller = controller.spawn().unwrap();
    // The log is created before the first message.
    await_folder(&agent.desk.path().join("results/messages"));
    thread::sleep(time::Duration::from_secs(4));
    agent.process.kill().unwrap();
    let done = controller.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", error(&done));
    assert!(error(&done).contains("is gone"), "{}", error(&done));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(summary["lost"], 0, "what is not reported is not lost: {summary}");
    assert!(summary["fault"].as_str().unwrap().contains("is gone"), "{summary}");
    assert!(summary["messages_not_counted"].as_u64().unwrap() > 0, "{summary}");
    let is_decided = |class: &&Value| class["verdict"] == "pass" || class["verdict"] == "fail";
    let decided: Vec<_> =
        summary["classes"].as_array().unwrap().iter().filter(is_decided).collect();
    assert!(decided.is_empty(), "a run that ended early has no verdict: {decided:?}");
    let logged = rows(&agent.desk.path().join("results/messages"));
    assert_eq!(summary["messages"].as_i64().unwrap() + 200, logged, "with the warm-up");
    assert!(logged > 200, "{logged}");
}

#[test]
fn protocols_without_a_broker_pass_messages_to_the_agent() {
    let _turn = turn();
    let agent = Agent::start();
    for protocol in [
        "modbus-tcp",
        "iec-104 --bytes 32",
        "dnp3",
        "c37.118",
        "zeromq",
        "zeromq-pub-sub",
        "nanomsg",
    ] {
        let done = agent.run(&format!("latency {protocol} --rate 100 --messages 50 --json"));
        assert!(done.status.success(), "{protocol}: {}", error(&done));
        let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
        let counts = (&summary["messages"], &summary["lost"]);
        assert_eq!(counts, (&50.into(), &0.into()), "{protocol}: {summary}");
        // None of them carries messages in both directions.
        assert!(summary["two_machines"]["round_trip"].is_null(), "{protocol}: {summary}");
    }
}

/// Frames pass the loopback device, which stands for the network between two machines.
#[test]
fn frames_pass_to_the_interface_of_the_agent() {
    if !gridhaul_testing::has_tool(
        PacketSocket::open("lo", PacketSocket::ALL_PROTOCOLS).is_ok(),
        "the right to open packet sockets",
    ) {
        return;
    }
    let _turn = turn();
    let agent = Agent::with_interface("lo");
    // Sampled Values pass in the test of an outage.
    let done = agent.run("latency goose --vlan 5 --rate 500 --messages 100 --interface lo --json");
    assert!(done.status.success(), "{}", error(&done));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    let counts = (&summary["messages"], &summary["lost"], &summary["corrupt"]);
    assert_eq!(counts, (&100.into(), &0.into(), &0.into()), "{summary}");
    assert_eq!(summary["settings"]["interface"], "lo");
    assert!(summary["two_machines"]["clock"]["exchanges"].as_u64().unwrap() > 10, "{summary}");
}

/// Both ends of a cable in a network namespace of their own. The interface of the agent is switched
/// off for a while: in the middle of the measured time, which begins a second after the first
/// message, and that on a busy machine some time after the folder of the messages is created.
const SWITCHED_OFF: &str = r#"
set -e
ip link set lo up
ip link add here type veth peer name there
ip link set here up
ip link set there up
"$0" agent --listen 127.0.0.1:0 --interface there -q > agent &
trap "kill $!" EXIT
while [ ! -s agent ]; do sleep 0.05; done
(while [ ! -d results/messages ]; do sleep 0.05; done; sleep 3
 ip link set there down; sleep 0.5; ip link set there up) &
"$0" outage sv --rate 200 --messages 1000 --length 600ms --horizon 500ms --interface here \
    --json -q --no-floor --out results $(cat agent)
"#;

#[test]
fn an_interface_that_is_switched_off_is_an_outage() {
    let isolated = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-n", "sh", "-c", script, PROGRAM]);
        command
    };
    let is_possible = isolated("ip link add here type veth peer name there").output();
    let is_possible = is_possible.is_ok_and(|output| output.status.success());
    if !gridhaul_testing::has_tool(is_possible, "the right to create network namespaces") {
        return;
    }
    let _turn = turn();
    let desk = tempfile::tempdir().unwrap();
    let mut measured = isolated(SWITCHED_OFF);
    measured.current_dir(desk.path()).env("GRIDHAUL_AGENT_TOKEN", TOKEN);
    let done = measured.output().unwrap();
    assert!(done.status.success(), "{}", error(&done));
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    let counts = (&summary["messages"], &summary["fault"]);
    assert_eq!(counts, (&1_000.into(), &Value::Null), "{summary}");
    let without_arrival = summary["outage"]["without_arrival_s"].as_f64().unwrap();
    // At least as long as the interface was off; switching it on takes its time on a busy machine.
    assert!((0.48..2.0).contains(&without_arrival), "{summary}");
    // Nobody else sends frames: what did not arrive was sent in this time.
    assert!(summary["lost"].as_u64().unwrap() >= 90, "{summary}");
}
