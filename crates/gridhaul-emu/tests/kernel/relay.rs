//! Aggregators: relay daemons in the namespaces of a run.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::Metric;
use gridhaul_scenario::backend::Backend;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_testing::has_tool;

use crate::{close, is_trustworthy, mean, row, run};

/// Meters, two aggregators and a shared line; `node` and `flow` are further keys.
fn scenario(aggregator: &str, flow: &str) -> String {
    format!(
        "title = 'test'\n[node]\nmeter = {{ count = 20 }}\nhead = {{}}\n\
         [node.collector]\ncount = 2\naggregator = {{ {aggregator} }}\n\
         [link.access]\nfrom = 'meter'\nto = 'collector'\nboth = {{ rate = '10 Mbit/s', delay = \
         '10 ms' }}\n\
         [link.wan]\nfrom = 'collector'\nto = 'head'\nshared = true\n\
         both = {{ rate = '2 Mbit/s', delay = '30 ms' }}\n\
         [stack.upstream]\nnagle = false\n\
         [flow.reading]\nfrom = 'meter'\nto = 'head'\n{flow}"
    )
}

const BACKPRESSURE: &str = "when_full = 'backpressure', stack = 'upstream'";
const READINGS: &str = "load.periodic = { size = '500 B', every = '500 ms' }";

/// The relay daemon is a program of another package, which tests of this package do not build.
pub(crate) fn is_installed() -> bool {
    let program = std::env::current_exe().ok().and_then(|own| {
        let folder = own.parent()?.parent()?;
        Some(folder.join("gridhaul-relay").is_file())
    });
    has_tool(program == Some(true), "gridhaul-relay (`cargo build -p gridhaul-relay`)")
}

#[test]
fn messages_pass_the_relay_daemons() {
    if !is_installed() {
        return;
    }
    let text = scenario(BACKPRESSURE, READINGS);
    let Some(answer) = run("duration = '4 s'\nwarmup = '2 s'", &text) else { return };
    close(mean(&answer, "reading", Metric::MessagesDue), 80.0, 0.06);
    // 20 meters send 500 B every 500 ms.
    close(mean(&answer, "reading", Metric::Goodput), 160_000.0, 0.1);
    // 40 ms of propagation, 0.4 ms and some 2.5 ms of transmission; a busy machine adds to that.
    let median = mean(&answer, "reading", Metric::DelayMedian);
    assert!(median > 0.0425, "{median} s");
    // Every attempt may have run on a busy machine.
    assert!(median < 0.060 || !is_trustworthy(&answer), "{median} s");
    let upstream = row(&answer, "collector>head");
    let sent = upstream.mean(Metric::SegmentsSent).expect("data segments of the aggregators");
    assert!((20.0..=120.0).contains(&sent), "80 messages, some of which share a segment: {sent}");
    let retransmissions = upstream.mean(Metric::Retransmissions);
    assert!(retransmissions == Some(0.0) || !is_trustworthy(&answer), "{retransmissions:?}");
}

#[test]
fn what_the_relay_daemon_does_not_do_is_refused() {
    let keys = |aggregator: &str, flow: &str| -> Vec<String> {
        let text = format!("duration = '1 s'\n{}", scenario(aggregator, flow));
        let scenario = Scenario::from_toml(&text, "test.toml").expect("a scenario");
        let unsupported = Emu::default().supports(&scenario).err().unwrap_or_default();
        unsupported.into_iter().map(|unsupported| unsupported.key).collect()
    };
    assert_eq!(keys(BACKPRESSURE, READINGS), [""; 0]);
    assert_eq!(keys("stack = 'upstream'", READINGS), ["node.collector.aggregator.when_full"]);
    let nagle = "when_full = 'backpressure'";
    assert_eq!(keys(nagle, READINGS), ["node.collector.aggregator.stack"]);
    let replies = "load.request_response = { request = '10 B', response = '10 B' }";
    assert_eq!(keys(BACKPRESSURE, replies), ["flow.reading.load.request_response"]);
    let second = format!("{READINGS}\n[flow.other]\nfrom = 'meter'\nto = 'head'\nload = 'bulk'");
    assert_eq!(keys(BACKPRESSURE, &second), ["flow.other"]);
}
