//! Congestion marks in the packets of the kernel (RFC 3168).

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric};

use crate::{mean, run_until};

const ECN: &str = include_str!("../../../../scenarios/ecn.toml");

/// The kernel negotiates ECN, its packets are marked, and it reduces its window: otherwise the
/// window would grow to the receive window of 3 MB, and the queue to its limit of 1,000 packets.
#[test]
fn the_kernel_reduces_its_window_for_marks() {
    let text = ECN.replace("duration = \"20 s\"", "duration = \"12 s\"");
    let is_calculated = |answer: &Answer| {
        // The calculation is in the comment of the scenario.
        (mean(answer, "upload", Metric::Goodput) / 10.0e6 - 1.0).abs() < 0.1
    };
    let Some(answer) = run_until(&text, Emu::default(), is_calculated) else { return };
    let marks = mean(&answer, "upload", Metric::CongestionMarks);
    assert!(marks > 0.0);
    assert_eq!(mean(&answer, "line.forward", Metric::Marked), marks);
    assert_eq!(mean(&answer, "line.forward", Metric::DropsQueue), 0.0);
    let queue = mean(&answer, "line.forward", Metric::QueueMean);
    assert!(queue < 50.0, "{queue} packets");
}

/// Without `ecn` in the stack the kernel requests none, and CoDel drops.
#[test]
fn packets_without_ecn_are_dropped() {
    let text =
        ECN.replace("duration = \"20 s\"", "duration = \"8 s\"").replace("\necn = true\n", "\n");
    let is_shown = |answer: &Answer| mean(answer, "line.forward", Metric::DropsQueue) > 0.0;
    let Some(answer) = run_until(&text, Emu::default(), is_shown) else { return };
    assert_eq!(mean(&answer, "line.forward", Metric::Marked), 0.0);
    assert!(mean(&answer, "line.forward", Metric::DropsQueue) > 0.0);
}
