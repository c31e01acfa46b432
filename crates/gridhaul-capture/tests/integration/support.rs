//! Captures of simulations.

use std::io::Cursor;

use gridhaul_capture::{CaptureFile, ConnectionExplanation, Explanation, explain};
use gridhaul_scenario::Scenario;
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_sim::Sim;

/// Simulates a scenario that records captures.
pub(crate) fn simulate(text: &str) -> Answer {
    let scenario = Scenario::from_toml(text, "test.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    Sim { threads: 1 }.run(&scenario, &NoProgress).unwrap()
}

/// The capture files of these links, in both directions.
pub(crate) fn captures(answer: &Answer, links: &[&str]) -> Vec<Vec<u8>> {
    let chosen = answer
        .captures
        .iter()
        .filter(|capture| links.iter().any(|link| capture.name.starts_with(&format!("{link}."))));
    let files: Vec<_> = chosen
        .map(|capture| {
            let mut bytes = Vec::new();
            capture.pcapng.copy_to(&mut bytes).unwrap();
            bytes
        })
        .collect();
    assert_eq!(files.len(), 2 * links.len(), "{links:?}");
    files
}

/// Explains capture files.
pub(crate) fn explained(files: Vec<Vec<u8>>) -> Explanation {
    let files = files
        .into_iter()
        .enumerate()
        .map(|(index, bytes)| CaptureFile::new(&format!("{index}.pcapng"), Cursor::new(bytes)));
    explain(files.collect(), &mut |_| true).unwrap()
}

/// Explains the only connection that these links have captured.
pub(crate) fn connection(answer: &Answer, links: &[&str]) -> ConnectionExplanation {
    let mut explanation = explained(captures(answer, links));
    assert_eq!(explanation.connections.len(), links.len());
    explanation.connections.swap_remove(0)
}
