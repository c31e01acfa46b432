//! `cargo xtask bench storm`: a storm of TLS connections at a real collector, over an emulated link
//! between namespaces, beside the simulation of the same scenario. As root.
//!
//! The link is the limit of the scenario, so that the processors of the machine matter little.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::{Bounds, Measurement, path_text};
use crate::process::{self, cargo, output, program, root, target};

const SCENARIO: &str = "bench/relay/storm.toml";

/// Prefix of the namespaces.
const PREFIX: &str = "storm";

/// Keys of the scenario that are behaviour of the programs in the namespaces: `emu up` refuses
/// them.
const KEYS_OF_PROGRAMS: [&str; 3] = ["connection", "tls", "accept"];

/// Storms, and replications of the simulation: which packets find the queue full is random.
const ROUNDS: usize = 3;
const REPLICATIONS: usize = 10;

/// Deviation of the simulated time until the last report has arrived from the measured one.
const DEVIATION: Bounds = Bounds::at_most(10.0, 20.0);

/// The network of the scenario as long as the value exists.
struct Network(Child);

impl Drop for Network {
    fn drop(&mut self) {
        // SIGINT, so that the namespaces are removed.
        let _ = program("kill").args(["-INT", &self.0.id().to_string()]).status();
        let _ = self.0.wait();
    }
}

pub(super) fn run() -> anyhow::Result<Vec<Measurement>> {
    process::run(cargo().args(["build", "--release", "--package", "gridhaul"]))?;
    let build = ["build", "--release", "--package", "gridhaul-relay", "--bin", "gridhaul-relay"];
    process::run(cargo().args(build).args(["--example", "tls_storm"]))?;
    let folder = target().join("bench/storm");
    fs::create_dir_all(&folder)?;
    let measured = measure(&folder)?;
    let text = "certificate_byte";
    let certificate = measured[0][text].as_u64().context("the size of the certificate")?;
    let simulated = simulate(&folder, certificate)?;
    let mut sum = 0.0;
    println!("\nreport of the last of 5,000 meters; simulation: {simulated:.1} s");
    for round in &measured {
        let last = round["last_s"].as_f64().context("no report has arrived")?;
        println!(
            "  measured: {last:.1} s; {} attempts failed; CPU time of the collector {:.1} s",
            round["failed"],
            round["cpu_s"].as_f64().unwrap_or_default()
        );
        sum += last;
    }
    let mean = sum / measured.len() as f64;
    let deviation = 100.0 * (simulated / mean - 1.0).abs();
    println!("  mean of the measured times: {mean:.1} s");
    Ok(vec![Measurement::new("storm-prediction", (deviation, 1, " %"), DEVIATION)])
}

/// Runs the storms. Returns the results of each.
fn measure(folder: &Path) -> anyhow::Result<Vec<Value>> {
    let scenario = fs::read_to_string(root().join(SCENARIO))?;
    let is_of_network = |line: &&str| !KEYS_OF_PROGRAMS.iter().any(|key| line.starts_with(key));
    let network: Vec<_> = scenario.lines().filter(is_of_network).collect();
    let file = folder.join("network.toml");
    fs::write(&file, network.join("\n") + "\n")?;
    let release = target().join("release");
    let mut up = program(&path_text(&release.join("gridhaul"))?);
    up.args(["emu", "up", "--prefix", PREFIX]).arg(&file).stdout(Stdio::piped());
    let mut network = Network(up.spawn().context("cannot start gridhaul emu up")?);
    let table = BufReader::new(network.0.stdout.take().context("the output is a pipe")?);
    let row = table.lines().map_while(Result::ok).find(|line| line.starts_with("report "));
    let row = row.context("gridhaul emu up has built no network")?;
    let words: Vec<_> = row.split_whitespace().collect();
    ensure!(words.len() > 5, "unexpected row of gridhaul emu up: {row}");
    let [count, from, first, to, server] = [1, 2, 3, 4, 5].map(|column| words[column]);
    let mut storm = program("ip");
    storm.args(["netns", "exec", from]).arg(release.join("examples/tls_storm"));
    storm.arg(release.join("gridhaul-relay")).args([to, server, first, count]);
    let printed = output(storm.args([spread(&scenario)?, &ROUNDS.to_string()]))?;
    let rounds: Vec<Value> = serde_json::from_str(&printed).context("the results are not JSON")?;
    ensure!(rounds.len() == ROUNDS, "{} rounds instead of {ROUNDS}", rounds.len());
    Ok(rounds)
}

/// Time in which the meters of the scenario connect, in seconds.
fn spread(scenario: &str) -> anyhow::Result<&str> {
    let after = scenario.split_once("spread = \"").context("the scenario has a spread")?.1;
    Ok(after.split_once(" s\"").context("the spread is in seconds")?.0)
}

/// Mean simulated time until the last report has arrived.
fn simulate(folder: &Path, certificate: u64) -> anyhow::Result<f64> {
    let results = folder.join("results");
    let mut run = program(&path_text(&target().join("release/gridhaul"))?);
    run.args(["run", SCENARIO, "--force", "--replications", &REPLICATIONS.to_string(), "--out"]);
    run.arg(&results).args(["--set", &format!("flow.report.tls.certificate={certificate} B")]);
    process::run(run.stdout(Stdio::null()))?;
    let answer: Value = serde_json::from_slice(&fs::read(results.join("answer.json"))?)?;
    let last = &answer["points"][0]["flows"][0]["metrics"]["last_completion_s"];
    let finished = last["n"].as_u64().unwrap_or_default();
    ensure!(finished == REPLICATIONS as u64, "not all reports have arrived in each simulation");
    last["mean"].as_f64().context("the time of the last meter")
}
