//! Comparison with ns-2, packet by packet: with the same list of losses, the same order and times
//! of packets.
//!
//! The test requires `ns` in `PATH`. Otherwise it reports this and passes; with `CI=true` it fails.

use std::fmt::Write as _;
use std::process::Command;

use gridhaul_conformance::ns2_drops::{difference, drop_cases, trace_with_ns2};

fn has_ns() -> bool {
    Command::new("ns").arg("/dev/null").output().is_ok()
}

#[test]
fn same_packets_as_ns2() {
    if !has_ns() {
        let in_ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!in_ci, "`ns` (Debian package ns2) is missing; CI must run this");
        eprintln!(
            "NOTE: `ns` (Debian package ns2) is not installed: NOTHING was compared with ns-2"
        );
        return;
    }
    let cases = drop_cases();
    let traces = trace_with_ns2(&cases).unwrap_or_else(|error| panic!("{error}"));
    let (mut report, mut packets) = (String::new(), 0);
    for case in &cases {
        let trace = &traces[&case.name];
        // A trace without packets would agree with any other trace.
        assert!(trace.sent.len() > 50, "{}: {} packets", case.name, trace.sent.len());
        packets += trace.sent.len();
        let sent = case.simulate(trace.phase_s).unwrap_or_else(|error| panic!("{error}"));
        if let Some(text) = difference(&trace.sent, &sent, case.end_ms()) {
            let _ = write!(report, "{}: {text}", case.name);
        }
    }
    println!("{} traces with {packets} packets of ns-2", cases.len());
    assert!(report.is_empty(), "\n{report}");
}
