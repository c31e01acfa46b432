//! `bench reserve`: the measurements of the paper `reserve`: protocols, rates and sizes on emulated systems, about 20 minutes.
//! Needs root, mosquitto and RabbitMQ.
//!
//! Run it on an idle machine, because other load delays the generator, the broker and the links.

use anyhow::Context;
use serde_json::Value;

use super::{Measurement, install, path_text};
use crate::process::{cargo, installed, output, target};

/// Statements that do not depend on the speed of the machine: they are limits. The others are printed.
const LIMITS: [&str; 4] = [
    "Ethernet is faster than the 5G prototype",
    "5G-ready: Nagle's algorithm",
    "No protocol loses a message",
    "After an outage, Sampled Values",
];

pub(super) fn run(quick: bool) -> anyhow::Result<Vec<Measurement>> {
    let has_broker = ["/usr/sbin/mosquitto", "/usr/bin/mosquitto"]
        .iter()
        .any(|path| std::path::Path::new(path).is_file());
    let has_rabbitmq = std::path::Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server").is_file();
    install(&[
        ("mosquitto", has_broker || installed("mosquitto")),
        ("rabbitmq-server", has_rabbitmq),
    ])?;
    let folder = path_text(&target().join("bench/reserve"))?;
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", "gridhaul-measure", "--", "reserve"]);
    command.args(["--json", "--out", &folder]).args(quick.then_some("--quick"));
    let document: Value = serde_json::from_str(&output(&mut command)?).context("not JSON")?;
    let claims = document["claims"].as_array().context("there are no claims")?;
    println!("\nreserve: statements of the report on emulated systems; report in {folder}");
    let mut measurements = Vec::new();
    for claim in claims {
        let text = |key: &str| claim[key].as_str().unwrap_or_default().to_owned();
        let result = match claim["holds"].as_bool() {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not decidable",
        };
        let (statement, measured) = (text("statement"), text("measured"));
        println!("  {result}: {statement} ({measured})");
        if LIMITS.iter().any(|limit| statement.starts_with(limit)) {
            let line = format!("reserve: {statement}: {measured} (limit: holds)");
            measurements.push(Measurement { line, passed: result == "holds" });
        }
    }
    Ok(measurements)
}
