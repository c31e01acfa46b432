//! Excerpts of the scenarios of common questions in real time. The calculations are in the comments
//! of the scenarios; a busy machine can only delay packets.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::{mean, run_with};

#[test]
fn a_receive_window_limits_the_kernel_over_a_satellite() {
    let text = include_str!("../../../../scenarios/satellite-backhaul.toml")
        .replace("duration = \"120 s\"", "duration = \"9 s\"")
        .replace("warmup = \"20 s\"", "warmup = \"4 s\"");
    let (text, _) = text.split_once("\n[[sweep]]").expect("a sweep");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    // 0.910 Mbit/s of the 1.931 Mbit/s of the link; the kernel rounds its window up.
    let goodput = mean(&answer, "archive", Metric::Goodput);
    assert!((0.6e6..1.05e6).contains(&goodput), "{goodput}");
    assert!(mean(&answer, "archive", Metric::RttMean) >= 0.56);
}

#[test]
fn readings_of_a_power_line_wait_for_each_other() {
    let text = include_str!("../../../../scenarios/plc-lte.toml")
        .replace("count = 5000", "count = 50")
        .replace("count = 100 ", "count = 1 ")
        .replace("every = \"15 min\"", "every = \"20 s\"")
        .replace("duration = \"1 h\"", "duration = \"7 s\"");
    let (text, _) = text.split_once("\n[[sweep]]").expect("a sweep");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    assert_eq!(mean(&answer, "reading", Metric::Messages), 50.0);
    // The mean is 2.781 s, and the last one of fifty arrives after 5.407 s.
    let delays = [Metric::DelayMean, Metric::DelayMax].map(|of| mean(&answer, "reading", of));
    assert!((2.75..3.3).contains(&delays[0]), "{delays:?}");
    assert!((5.39..6.2).contains(&delays[1]), "{delays:?}");
}

#[test]
fn each_download_has_its_own_power_line() {
    let text = include_str!("../../../../scenarios/firmware.toml")
        .replace("count = 200", "count = 2")
        .replace("size = \"2 MB\"", "size = \"60 kB\"")
        .replace(", loss.bernoulli = \"0.1 %\"", "")
        .replace("duration = \"8 h\"", "duration = \"9 s\"");
    let (text, _) = text.split_once("\n[[sweep]]").expect("a sweep");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    assert_eq!(mean(&answer, "firmware", Metric::TransfersFinished), 2.0);
    // 60,000 B and the headers of 42 segments take 4.97 s at 100 kbit/s.
    let time = mean(&answer, "firmware", Metric::CompletionTime);
    assert!((4.97..7.0).contains(&time), "{time} s");
}

#[test]
fn compressed_headers_leave_capacity_for_readings() {
    let text = include_str!("../../../../scenarios/header-compression.toml")
        .replace("duration = \"200 s\"\nwarmup = \"50 s\"", "duration = \"10 s\"");
    let (text, _) = text.split_once("\n[[sweep]]").expect("a sweep");
    let Some(answer) = run_with(text, Emu::default()) else { return };
    let uplink = |metric| mean(&answer, "uplink.forward", metric);
    // A reading is a packet of 64 B on the link. One may be on its way at the end.
    let transmitted = uplink(Metric::LinkThroughput) * 10.0 / 512.0;
    assert!((transmitted - uplink(Metric::PacketsOut)).abs() <= 1.0, "{transmitted} packets");
    // 150 readings. With packets of 108 B, 9.6 kbit/s would carry 107 of them in 9.7 s.
    let arrived = mean(&answer, "readings", Metric::Messages);
    assert!(arrived > 115.0, "{arrived} readings");
}
