//! Links that follow a trace, in whole runs with the audit.

use std::fs;
use std::path::Path;

use gridhaul_data::trace::load_scenario;
use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
use gridhaul_sim::Sim;

use crate::schedulers::{close, mean, run};
use crate::support::two_nodes;

/// Runs a scenario with a file of this content, whose path replaces `FILE`.
fn run_with_file(text: &str, content: &str) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    fs::write(&path, content).unwrap();
    run(&text.replace("FILE", path.to_str().unwrap()))
}

fn lte() -> Scenario {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    load_scenario(&folder.join("lte-trace.toml")).unwrap()
}

#[test]
fn the_scenario_of_lte_has_the_results_of_its_comment() {
    let answer = Sim::default().run(&lte(), &NoProgress).unwrap();
    close(mean(&answer, "lte.reverse", Metric::LinkThroughput), 2.332e6, 0.01);
    close(mean(&answer, "lte.reverse", Metric::Utilisation), 1.0, 0.01);
    let max = mean(&answer, "alarm", Metric::DelayMax);
    assert!(max > 0.3 && max <= 0.35, "{max}");
    // In 100 periods of the trace, 649 ms of 20 s.
    let long = Scenario { warmup: Duration::ZERO, duration: Duration::from_secs(2_000), ..lte() };
    let answer = Sim::default().run(&long, &NoProgress).unwrap();
    let late = 1.0 - mean(&answer, "alarm", Metric::DeadlineMet);
    close(late, 0.649 / 20.0, 0.05);
    close(mean(&answer, "alarm", Metric::DelayMax), 0.35, 0.01);
}

#[test]
fn a_packet_leaves_at_the_next_opportunity() {
    // Messages at multiples of 50 ms leave at 7 ms after them, since the opportunity at 50 ms is
    // over when a message arrives: exactly 7 ms, and 5 ms of propagation.
    let link = "delay = '5 ms', trace.mahimahi.file = 'FILE'";
    let flow = "[flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
                load.periodic = { size = '100 B', every = '50 ms', synchronised = true }";
    let text = two_nodes("duration = '10 s'", link, flow);
    let answer = run_with_file(&text, "7\n50\n");
    for metric in [Metric::DelayMean, Metric::DelayMax] {
        close(mean(&answer, "f", metric), 0.012, 1e-9);
    }
    // Without repetition, only the messages of the first 50 ms arrive.
    let once =
        text.replace("mahimahi.file = 'FILE'", "mahimahi = { file = 'FILE', repeat = false }");
    assert_eq!(mean(&run_with_file(&once, "7\n50\n"), "line.forward", Metric::PacketsOut), 1.0);
}

#[test]
fn bulk_data_uses_every_opportunity_with_every_queue() {
    // 3 opportunities in 10 ms: 3.6 Mbit/s of packets of 1500 B.
    for queue in [
        "",
        ", aqm.codel = {}",
        ", aqm.fq_codel = {}",
        ", aqm.red = {}",
        ", aqm.pie = {}",
        ", scheduler.class = { urgent = { dscp = ['EF'], priority = 1 }, other = {} }",
        ", compression = { header = '20 B' }",
        ", loss.bernoulli = '0.01 %'",
    ] {
        let link = format!("delay = '10 ms', trace.mahimahi.file = 'FILE'{queue}");
        let rest = "[stack.s]\nmss = '1448 B'\n\
                    [flow.f]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\nstack = 's'";
        let text = two_nodes("duration = '20 s'\nwarmup = '5 s'", &link, rest);
        let answer = run_with_file(&text, "1\n1\n10\n");
        let used = mean(&answer, "line.forward", Metric::Utilisation);
        assert!(used > 0.9, "{queue}: {used}");
    }
}

#[test]
fn rate_delay_and_loss_follow_the_rows_of_a_csv() {
    let trace = "time_s,rate_kbit_per_s,delay_ms,loss_percent\n0,1000,0,0\n1,100,30,0\n\
                 2,0,0,0\n3,1000,0,20\n";
    let link =
        "delay = '5 ms', queue = '1000 packets', trace.steps = { file = 'FILE', every = '4 s' }";
    let flow = "[flow.f]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
                load.periodic = { size = '97 B', every = '20 ms', synchronised = true }";
    // Packets of 125 B, 1000 bit: 1 ms, then 10 ms.
    let answer = run_with_file(&two_nodes("duration = '400 s'", link, flow), trace);
    // A quarter of the packets is sent in the last second, and those of the pause with them.
    close(mean(&answer, "f", Metric::MessageLoss), 0.2 * 2.0 / 4.0, 0.05);
    // The first packet of a pause waits for 1 s.
    close(mean(&answer, "f", Metric::DelayMax), 1.006, 1e-3);
    let utilisation = mean(&answer, "line.forward", Metric::Utilisation);
    close(utilisation, 50.0 * 1000.0 / ((1e6 + 1e5 + 1e6) / 4.0), 1e-3);
}
