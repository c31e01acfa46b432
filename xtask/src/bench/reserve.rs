//! `bench reserve`: the measurements of the paper `reserve`: protocols, rates and sizes on emulated
//! systems, more than an hour. Needs root, mosquitto and RabbitMQ.
//!
//! Run it on an idle machine, because other load delays the generator, the broker and the links.

use std::process::Stdio;

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Measurement, install, path_text};
use crate::process::{cargo, installed, target};

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
    command.args(["--json", "--force", "--out", &folder]).args(quick.then_some("--quick"));
    let output = command.stderr(Stdio::inherit()).output().context("cannot start the program")?;
    // With 1, a verdict is not the recorded one; the measurements below name it.
    ensure!(matches!(output.status.code(), Some(0 | 1)), "the program failed: {}", output.status);
    let document: Value = serde_json::from_slice(&output.stdout).context("not JSON")?;
    let claims = document["claims"].as_array().context("there are no claims")?;
    println!("\nreserve: statements of the report on emulated systems; report in {folder}");
    let mut measurements = Vec::new();
    for claim in claims {
        let text = |key: &str| claim[key].as_str().unwrap_or_default().to_owned();
        let (statement, measured) = (text("text"), text("measured"));
        let (verdict, recorded) = (text("measured_verdict"), text("verdict"));
        println!("  {verdict}: {statement} ({measured})");
        let line = format!("reserve: {statement} {verdict}: {measured} (recorded: {recorded})");
        measurements.push(Measurement::verdict(line, claim["as_recorded"] == true));
    }
    Ok(measurements)
}
