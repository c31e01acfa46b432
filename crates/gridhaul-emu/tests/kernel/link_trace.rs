//! Links that follow a trace: deliveries at its opportunities, in real time.

use std::fs;
use std::path::Path;

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;

use crate::pair::pair;
use crate::{close, mean, run, run_with};

#[test]
fn packets_leave_at_the_opportunities_of_a_trace() {
    // Messages at multiples of 50 ms leave at 7 ms after them, and arrive 5 ms later.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.mahi");
    fs::write(&path, "7\n50\n").unwrap();
    let link = "both = { delay = '5 ms', trace.mahimahi.file = 'FILE' }";
    let link = link.replace("FILE", path.to_str().unwrap());
    let flow = "[flow.f]\nfrom = 'near'\nto = 'far'\ntransport = 'datagram'\n\
                load.periodic = { size = '100 B', every = '50 ms', synchronised = true }\n";
    let Some(answer) = run("duration = '4 s'", &pair(&link, flow)) else { return };
    let delay = mean(&answer, "f", Metric::DelayMean);
    assert!((0.012..0.013).contains(&delay), "{delay} s");
    assert_eq!(mean(&answer, "f", Metric::MessageLoss), 0.0);
}

#[test]
fn a_download_has_the_throughput_of_the_trace() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let text = include_str!("../../../../scenarios/lte-trace.toml");
    let text = text.replace("traces/", &format!("{}/traces/", folder.display()));
    // The first 8 s, with the first of the interruptions.
    let text = text.replace("duration = \"20 s\"", "duration = \"8 s\"");
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    close(mean(&answer, "lte.reverse", Metric::Utilisation), 1.0, 0.03);
    let max = mean(&answer, "alarm", Metric::DelayMax);
    assert!((0.2..0.352).contains(&max), "{max} s");
}

#[test]
fn meters_have_links_of_different_quality() {
    // Of the scenario, 200 meters with a reading every 2 s: about 1,000 readings.
    let text = include_str!("../../../../scenarios/link-quality.toml")
        .replace("count = 5000", "count = 200")
        .replace("every = \"15 min\"", "every = \"2 s\"")
        .replace("duration = \"1 h\"", "duration = \"10 s\"");
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    // The comment of the scenario has the calculation. The seed determines the links, whose mean
    // delay has a standard deviation of 6 % between groups of this size.
    close(mean(&answer, "reading", Metric::DelayMean), 0.228, 0.2);
    let p98 = mean(&answer, "reading", Metric::DelayP98);
    assert!((0.6..0.95).contains(&p98), "{p98} s");
    let loss = mean(&answer, "reading", Metric::MessageLoss);
    assert!((0.01..0.06).contains(&loss), "{loss}");
}

#[test]
fn commands_wait_for_the_next_occasion_of_their_meter() {
    // Of the scenario, 100 meters with a cycle of 2.56 s and a command every 6 s.
    let text = include_str!("../../../../scenarios/nb-iot.toml")
        .replace("count = 200", "count = 100")
        .replace("20.48 s", "2.56 s")
        .replace("every = \"10 min\", jitter = \"1 min\"", "every = \"6 s\"")
        .replace("duration = \"2 h\"", "duration = \"16 s\"");
    let Some(answer) = run_with(&text, Emu::default()) else { return };
    // 1.28 s on average, 1 s of delay, and 0.101 s; about 200 commands.
    close(mean(&answer, "command", Metric::DelayMean), 2.381, 0.12);
    let max = mean(&answer, "command", Metric::DelayMax);
    assert!((3.2..3.67).contains(&max), "{max} s");
}
