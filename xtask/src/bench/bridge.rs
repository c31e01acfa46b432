//! `cargo xtask bench bridge`: rate, CPU time, latency and memory of the bridge with proxies,
//! beside the bridge of the kernel in the same run.
//!
//! Two hosts in network namespaces are connected by virtual Ethernet devices (veth), with and
//! without segmentation and checksum offloads. As root.

use anyhow::Context;
use serde_json::Value;

use super::{Bounds, Measurement};
use crate::process::{self, cargo, output, program, target};

/// Rate of a bulk transfer with offloads.
const RATES: [(&str, Bounds); 2] =
    [("none", Bounds::at_least(1_000.0, 4_000.0)), ("reflect", Bounds::at_least(1_000.0, 1_000.0))];

/// CPU time of the relay for a packet without offloads.
const PACKETS: [(&str, Bounds); 6] = [
    ("none", Bounds::at_most(3.0, 8.0)),
    ("reflect", Bounds::at_most(5.0, 12.0)),
    ("spoof", Bounds::at_most(5.0, 12.0)),
    ("snoop", Bounds::at_most(5.0, 14.0)),
    ("ack", Bounds::at_most(5.0, 8.0)),
    ("split", Bounds::at_most(5.0, 13.0)),
];

/// Median time that a request and its response take longer than through the kernel's bridge.
const ADDED_LATENCY: Bounds = Bounds::at_most(100.0, 150.0);

/// Memory of an idle connection.
const MEMORY: [(&str, Bounds); 4] = [
    ("reflect", Bounds::at_most(1_500.0, 1_500.0)),
    ("spoof", Bounds::at_most(1_500.0, 1_250.0)),
    ("snoop", Bounds::at_most(1_500.0, 900.0)),
    ("ack", Bounds::at_most(1_500.0, 800.0)),
];

pub(super) fn run() -> anyhow::Result<Vec<Measurement>> {
    let build = ["build", "--release", "--package", "gridhaul-relay", "--bin", "gridhaul-relay"];
    process::run(cargo().args(build).args(["--example", "bridge_bench"]))?;
    let folder = target().join("release");
    let mut bench = program(folder.join("examples/bridge_bench").display().to_string());
    bench.env("GRIDHAUL_RELAY", folder.join("gridhaul-relay"));
    let printed = output(bench.arg("rate,latency,memory"))?;
    let results: Value = serde_json::from_str(&printed).context("the results are not JSON")?;
    let mut measurements = rates(&results["rate"])?;
    measurements.extend(latencies(&results["latency"])?);
    measurements.extend(memory(&results["memory"])?);
    Ok(measurements)
}

/// A value of the result of a subject.
fn value(
    results: &Value,
    has_offloads: Option<bool>,
    subject: &str,
    key: &str,
) -> anyhow::Result<f64> {
    let mut results = results.as_array().into_iter().flatten();
    let found = results.find(|result| {
        let is_same = has_offloads.is_none_or(|offloads| result["has_offloads"] == offloads);
        is_same && result["subject"] == subject
    });
    let value = found.and_then(|result| result[key].as_f64());
    value.with_context(|| format!("the results have no {key} of {subject}"))
}

fn rates(results: &Value) -> anyhow::Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    let rate = |subject| value(results, Some(true), subject, "rate_mbit_per_s");
    let kernel = rate("kernel")?;
    for (mode, bounds) in RATES {
        let (own, name) = (rate(mode)?, format!("bridge {mode}, rate"));
        measurements.push(Measurement::new(&name, (own, 0, " Mbit/s"), bounds));
        println!("bridge {mode}: {:.2} times the rate of the kernel's bridge", own / kernel);
    }
    for (mode, bounds) in PACKETS {
        let own = value(results, Some(false), mode, "packet_cpu_us")?;
        let name = format!("bridge {mode}, CPU time of a packet");
        measurements.push(Measurement::new(&name, (own, 2, " µs"), bounds));
    }
    Ok(measurements)
}

fn latencies(results: &Value) -> anyhow::Result<Vec<Measurement>> {
    let mut measurements = Vec::new();
    let median = |subject| value(results, None, subject, "p50_us");
    let kernel = median("kernel")?;
    for (mode, _) in PACKETS {
        let added = median(mode)? - kernel;
        let name = format!("bridge {mode}, added latency");
        measurements.push(Measurement::new(&name, (added, 0, " µs"), ADDED_LATENCY));
    }
    Ok(measurements)
}

fn memory(results: &Value) -> anyhow::Result<Vec<Measurement>> {
    let measurement = |(mode, bounds): (&str, Bounds)| {
        let bytes = value(results, None, mode, "idle_byte")?;
        let name = format!("bridge {mode}, memory of an idle connection");
        Ok(Measurement::new(&name, (bytes, 0, " B"), bounds))
    };
    MEMORY.into_iter().map(measurement).collect()
}
