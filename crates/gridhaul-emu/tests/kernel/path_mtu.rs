//! Path-MTU discovery, black holes and MSS clamping with the TCP of the kernel.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric};

use crate::{mean, run_until};

const PATH_MTU: &str = include_str!("../../../../scenarios/path-mtu.toml");

/// The scenario without its sweep, with these replacements, measured for 6 s.
fn scenario(replacements: &[(&str, &str)]) -> String {
    let text = PATH_MTU.split("[[sweep]]").next().unwrap();
    let text = text.replace("duration = \"16 s\"", "duration = \"12 s\"");
    replacements.iter().fold(text, |text, (from, to)| text.replace(from, to))
}

/// Whether the goodput is that of segments with this payload in packets of this size.
fn has_goodput(answer: &Answer, payload: f64, packet: f64) -> bool {
    let expected = 10.0e6 * payload / packet;
    (mean(answer, "upload", Metric::Goodput) / expected - 1.0).abs() < 0.1
}

const BLACK_HOLE: (&str, &str) = ("packet_too_big = \"icmp\"", "packet_too_big = \"black_hole\"");

#[test]
fn the_kernel_adapts_to_reports_of_the_gateway() {
    let adapts = |answer: &Answer| has_goodput(answer, 1_348.0, 1_400.0);
    let Some(answer) = run_until(&scenario(&[]), Emu::default(), adapts) else { return };
    assert!(adapts(&answer), "{}", mean(&answer, "upload", Metric::Goodput));
}

/// The handshake and the readings pass, and nothing of the upload.
#[test]
fn the_kernel_stalls_in_a_black_hole() {
    let stalls = |answer: &Answer| mean(answer, "readings", Metric::Messages) > 0.0;
    let Some(answer) = run_until(&scenario(&[BLACK_HOLE]), Emu::default(), stalls) else { return };
    assert_eq!(mean(&answer, "upload", Metric::Goodput), 0.0);
    assert!(mean(&answer, "readings", Metric::Messages) > 0.0);
}

#[test]
fn probing_of_the_kernel_leaves_a_black_hole() {
    let text = scenario(&[BLACK_HOLE, ("mtu_probing = false", "mtu_probing = true")]);
    // The time of the timeout that lowers the segment size depends on the kernel's timers: 4 s or
    // 8 s after the start, of which the first 6 s are not measured.
    let adapts = |answer: &Answer| mean(answer, "upload", Metric::Goodput) > 4.0e6;
    let Some(answer) = run_until(&text, Emu::default(), adapts) else { return };
    assert!(adapts(&answer), "{}", mean(&answer, "upload", Metric::Goodput));
}

#[test]
fn clamping_prevents_a_black_hole_for_the_kernel() {
    let text = scenario(&[BLACK_HOLE, ("mss_clamp = \"1460 B\"", "mss_clamp = \"1360 B\"")]);
    let adapts = |answer: &Answer| has_goodput(answer, 1_348.0, 1_400.0);
    let Some(answer) = run_until(&text, Emu::default(), adapts) else { return };
    assert!(adapts(&answer), "{}", mean(&answer, "upload", Metric::Goodput));
}
