//! Helpers of the integration tests: scenarios of two nodes, and runs of scenario texts.

use gridhaul_scenario::answer::{Answer, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;
use gridhaul_sim::Sim;

/// Simulates a scenario on this number of threads.
pub(crate) fn try_run(text: &str, threads: usize) -> Result<Answer, RunError> {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|error| panic!("{error}"));
    Sim { threads }.run(&scenario, &NoProgress)
}

/// Simulates a scenario that must succeed.
pub(crate) fn run(text: &str) -> Answer {
    try_run(text, 1).unwrap_or_else(|error| panic!("{error}"))
}

/// A metric of the first flow, if the flow has it.
pub(crate) fn flow_metric(answer: &Answer, metric: Metric) -> Option<f64> {
    answer.points[0].flows[0].mean(metric)
}

/// Nodes `a` and `b`, and a link `line` with these keys in both directions. `keys` are keys of the
/// scenario, and `rest` has stacks and flows.
pub(crate) fn two_nodes(keys: &str, link: &str, rest: &str) -> String {
    format!(
        r#"
        title = "two nodes"
        {keys}
        [node]
        a = {{}}
        b = {{}}
        [link.line]
        from = "a"
        to = "b"
        both = {{ {link} }}
        {rest}
        "#
    )
}

/// A packet of a capture.
pub(crate) struct CapturedPacket {
    pub(crate) at_ns: u64,
    /// From the IP header on.
    pub(crate) headers: Vec<u8>,
    /// Bytes of the whole packet.
    pub(crate) length: u32,
}

/// The packets of all captures, each in the order of its times.
pub(crate) fn captured(answer: &Answer) -> Vec<CapturedPacket> {
    let mut packets = Vec::new();
    for capture in &answer.captures {
        let mut file = Vec::new();
        capture.pcapng.copy_to(&mut file).unwrap();
        let mut rest = file.as_slice();
        while rest.len() >= 12 {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            // Enhanced packet blocks.
            if word(0) == 6 {
                packets.push(CapturedPacket {
                    at_ns: u64::from(word(12)) << 32 | u64::from(word(16)),
                    headers: rest[28..28 + word(20) as usize].to_vec(),
                    length: word(24),
                });
            }
            rest = &rest[word(4) as usize..];
        }
    }
    packets
}
