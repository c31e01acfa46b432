//! Programs that are stopped and continued in the middle of a run, as by a debugger or the pause of
//! a container.

use std::process::{Command, Stdio};
use std::{thread, time};

use gridhaul_testing::has_program;
use serde_json::Value;

/// Runs the program, and stops and continues it now and then, until it has ended.
#[expect(clippy::disallowed_methods, reason = "the program is stopped in real time")]
fn run_with_stops(arguments: &str) -> Value {
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"));
    program.args(arguments.split(' ')).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = program.spawn().unwrap();
    let identifier = program.id().to_string();
    let signal = |name: &str| {
        let sent = Command::new("kill").args([name, &identifier]).stderr(Stdio::null()).status();
        sent.is_ok_and(|status| status.success())
    };
    // A receiver that waits for a message is interrupted when the process continues (signal(7)).
    while program.try_wait().unwrap().is_none() {
        thread::sleep(time::Duration::from_millis(100));
        if signal("-STOP") {
            thread::sleep(time::Duration::from_millis(10));
            signal("-CONT");
        }
    }
    let done = program.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{arguments}: {error}");
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn a_run_that_was_stopped_and_continued_reports_no_fault_and_no_loss() {
    for protocol in ["udp", "c37.118"] {
        let run = format!("reliability {protocol} --rate 100 --messages 50 --no-floor -q --json");
        let summary = run_with_stops(&run);
        let counts = [&summary["messages"], &summary["lost"], &summary["fault"]];
        assert_eq!(counts, [&50.into(), &0.into(), &Value::Null], "{protocol}: {summary}");
    }
}

#[test]
fn the_network_alone_is_measured_by_a_program_that_was_stopped() {
    if !has_program("mosquitto") {
        return;
    }
    let run = "latency mqtt --rate 100 --messages 50 --network-share --no-floor -q --json";
    let summary = run_with_stops(run);
    assert_eq!([&summary["lost"], &summary["fault"]], [&0.into(), &Value::Null], "{summary}");
    let network =
        summary["classes"].as_array().unwrap().iter().find(|class| class["path"] == "network");
    assert_eq!(network.unwrap()["unsuccessful_low95"], 0.0, "{summary}");
}

#[test]
fn exchanges_with_a_clock_continue_after_a_stop() {
    let summary = run_with_stops("sync --exchanges 60 --every 20ms --json");
    assert_eq!(summary["exchanges"], 60, "{summary}");
}
