//! Invalid input and failures of the machine: the message, the exit code, and what remains.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::run;

#[test]
fn a_second_run_does_not_overwrite_a_log() {
    let desk = tempfile::tempdir().unwrap();
    fs::create_dir_all(desk.path().join("results/messages")).unwrap();
    fs::write(desk.path().join("results/messages/part-00000.parquet"), "kept").unwrap();
    let done = run(desk.path(), "latency null --messages 1 --no-floor -q --out results");
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("the log of another run") && error.contains("--out"), "{error}");
    assert_eq!(
        fs::read_to_string(desk.path().join("results/messages/part-00000.parquet")).unwrap(),
        "kept"
    );
}

#[test]
fn a_closed_port_is_an_error_with_the_address() {
    let desk = tempfile::tempdir().unwrap();
    let done = run(desk.path(), "latency mqtt --broker 127.0.0.1:1 --no-floor -q");
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{error}");
    for expected in ["cannot connect by mqtt to 127.0.0.1:1", "refused", "help: expected a program"]
    {
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

/// Arguments, and a part of the error that they cause.
const INVALID_ARGUMENTS: &[(&str, &str)] = &[
    ("latency udp --rate 0", "between 0.01 and 1000000"),
    ("latency udp --bytes 15", "between 16"),
    ("latency udp --horizon 5", "5"),
    ("latency udp --scenario missing.toml --no-floor", "missing.toml"),
    ("latency udp --system 6g --no-floor", "ethernet, 5g-ready"),
    ("outage udp", "--system NAME"),
    ("outage udp --of observed --class TT1", "--class has no effect with outage"),
    ("latency mqtt --kernel-times", "choose udp, sv or goose"),
    ("latency udp --predict", "--system NAME"),
    ("latency udp --reverse", "--reverse needs an emulated network"),
    ("latency mqtt --subscriber to", "--subscriber needs an emulated network"),
    ("sync --reverse", "--reverse needs an emulated network"),
    ("sync --system ethernet --subscriber to", "--subscriber has no effect with sync"),
    ("sync --exchanges 5 --step 1ms", "--step-at: the last exchange begins after 80 ms"),
    ("latency mqtt --congestion-control reno", "--congestion-control needs an emulated network"),
    ("latency udp --congestion-control reno", "it is an option of mqtt, mqtt5, amqp-0-9-1"),
    ("run missing.toml", "missing.toml"),
    ("latency sv --system ethernet --predict", "choose udp, mqtt"),
    ("latency mqtt --system ethernet --predict --tls", "a broker without TLS"),
    ("latency mqtt --system ethernet --predict --broker mqtts://127.0.0.1:1 --ca x", "TLS"),
    ("outage mqtt --system ethernet --predict --of broker", "`broker` is not simulated"),
    ("outage udp --system ethernet --predict --of observed", "`observed` is not simulated"),
    ("latency udp --cross-traffic 1Mbit/s --no-floor", "cross traffic needs an emulated network"),
    ("latency udp --cross-traffic 0bit/s", "expected a rate above 0"),
    ("outage udp --repetitions 2", "--repetitions"),
    ("outage udp --of broker", "--of broker: this program kills only a broker"),
    ("outage mqtt --of broker --broker 127.0.0.1:1", "--of broker"),
    ("latency mqtt --broker mqtts://127.0.0.1:1 --no-floor", "add --ca FILE"),
    ("latency mqtt --ca x.pem", "--broker"),
    ("latency mqtt --tls --broker 127.0.0.1:1", "cannot be used with"),
    ("latency mqtt --busy-poll", "it is an option of udp"),
    ("latency sv --data-set 9-2le --bytes 100", "cannot be used with"),
    ("latency udp --pin 4000", "expected a processor of this machine: "),
    ("sync --offset 5", "5"),
    ("latency udp --horizon 0s", "expected a time above 0"),
    ("latency goose --retransmit-after 0s", "at least 100 us"),
    ("rate udp --resolution 0", "expected a resolution between 0.001 and 1"),
    ("rate udp --loss 101%", "from 0 % to 100 %"),
    ("latency udp --messages 18446744073709551615", "1000000000000"),
    ("latency amqp-0-9-1 --qos 1", "--qos has no effect with amqp-0-9-1"),
    ("latency udp --nodelay none", "it is an option of mqtt, mqtt5, amqp-0-9-1"),
    ("reliability sv --no-retransmission", "it is an option of goose"),
    ("latency iec-104 --k 4", "w is 8 and k is 4"),
    ("latency dnp3 --poll 5ms", "at least 20 ms"),
    ("latency dnp3 --w 4", "it is an option of iec-104"),
    ("latency modbus-tcp --bytes 245", "modbus-tcp carries at most 244 B"),
    ("rate iec-104 --bytes 8193", "iec-104 carries at most 8192 B"),
    ("latency c37.118 --bytes 60000", "c37.118 carries at most 8192 B"),
    ("latency sv --bytes 1441", "sv carries at most 1440 B"),
    ("latency goose --bytes 1389", "goose carries at most 1388 B"),
    ("latency mqtt --broker amqp://127.0.0.1:1", "use mqtt://"),
    ("latency xmpp --broker mqtts://127.0.0.1:1", "use xmpp://"),
    ("latency mqtt --keep-alive 500ms", "expected whole seconds"),
    ("latency mqtt --keep-alive 65536s", "expected whole seconds"),
    ("latency sv --vlan-priority 3", "--vlan"),
    ("latency goose --retransmit-after 2s", "--retransmit-every"),
    ("latency goose --no-retransmission --retransmit-after 2ms", "cannot be used with"),
];

#[test]
fn invalid_arguments_name_what_is_expected() {
    let desk = tempfile::tempdir().unwrap();
    for (arguments, expected) in INVALID_ARGUMENTS {
        let done = run(desk.path(), arguments);
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{error}");
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}

/// The log fails in the middle of the run, and so do the files of the result.
#[test]
fn a_full_disk_keeps_the_result_on_standard_output() {
    let desk = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=48k none . && cd \"$PWD\" && \"$0\" latency udp --rate \
        1000 --messages 30000 \
                  --horizon 300ms --no-floor -q --json --out results";
    let isolated = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_gridhaul-measure")]);
        command.current_dir(desk.path()).output().unwrap()
    };
    let is_possible = isolated("mount -t tmpfs none .").status.success();
    if !gridhaul_testing::has_tool(is_possible, "the right to mount a file system") {
        return;
    }
    let done = isolated(script);
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("the run ended early: cannot write results/messages"), "{error}");
    let summary: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert!(summary["fault"].as_str().unwrap().contains("No space left"), "{summary}");
    assert!(summary["messages"].as_u64().unwrap() < 20_000, "{summary}");
    assert_eq!((&summary["refused"], &summary["lost"]), (&0.into(), &0.into()), "{summary}");
}

/// A port that another program has is an error with its remedy, and the cause is stated once.
#[test]
fn a_port_in_use_is_an_error_with_the_address() {
    let desk = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for protocol in ["modbus-tcp", "zeromq", "iec-104"] {
        let done = run(desk.path(), &format!("latency {protocol} --port {port} --no-floor"));
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{error}");
        assert!(error.contains(&format!("cannot listen at 127.0.0.1:{port}")), "{error}");
        assert!(error.contains("choose another --port"), "{error}");
        assert_eq!(error.matches("os error").count(), 1, "{error}");
    }
}
