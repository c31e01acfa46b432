//! `bench emu`: accuracy of emulated links, and CPU time for a packet. Needs root.
//!
//! Run it on an idle machine, because other load delays the threads of the emulator.

use anyhow::Context;
use serde_json::Value;

use super::Measurement;
use crate::process::{cargo, output};

/// Largest relative error of the rate, from 20 kbit/s to 100 Mbit/s.
const RATE: f64 = 0.005;
/// Largest error of the one-way delay in milliseconds: median and 99th percentile.
const DELAY_P50_MS: f64 = 0.1;
const DELAY_P99_MS: f64 = 0.5;
/// Packets per second that one link must forward, less 0.1 % for the measurement.
const PACKETS: f64 = 100_000.0 * 0.999;

pub(super) fn run() -> anyhow::Result<Vec<Measurement>> {
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", "gridhaul-emu"]);
    let printed = output(command.args(["--example", "accuracy"]))?;
    println!("\nemu: one link between two namespaces, timestamps of datagrams at both ends");
    let mut measurements = Vec::new();
    for line in printed.lines() {
        let measured: Value = serde_json::from_str(line).context("a line is not JSON")?;
        let number = |key: &str| measured[key].as_f64().unwrap_or(f64::NAN);
        measurements.extend(match measured["measure"].as_str() {
            Some("rate") => vec![rate(number("bit_per_s"), number("relative_error"))],
            Some("delay") => delay(number("delay_ms"), number("p50_ms"), number("p99_ms")),
            Some("loss") => vec![loss(number("probability"), number("sent"), number("lost"))],
            _ => {
                vec![packets(number("packets_per_s"), number("lost"), number("cpu_us_per_packet"))]
            }
        });
    }
    Ok(measurements)
}

fn rate(nominal: f64, error: f64) -> Measurement {
    let (nominal, percent) = (nominal / 1e3, error * 100.0);
    let line = format!("emu-rate-{nominal}k: {percent:+.4} % (limit {} %)", RATE * 100.0);
    Measurement::verdict(line, error.abs() <= RATE)
}

fn delay(millis: f64, p50: f64, p99: f64) -> Vec<Measurement> {
    let measurement = |name: &str, error: f64, limit: f64| {
        let line = format!("emu-delay-{millis}ms-{name}: error {error:.3} ms (limit {limit} ms)");
        Measurement::verdict(line, error <= limit)
    };
    vec![measurement("p50", p50, DELAY_P50_MS), measurement("p99", p99, DELAY_P99_MS)]
}

/// The number of losses is binomial: 99.9 % of the runs are within 3.29 standard deviations.
fn loss(probability: f64, sent: f64, lost: f64) -> Measurement {
    let expected = sent * probability;
    let limit = 3.29 * (expected * (1.0 - probability)).sqrt();
    let line = format!("emu-loss: {lost} of {sent} lost, expected {expected} (limit ±{limit:.0})");
    Measurement::verdict(line, (lost - expected).abs() <= limit)
}

fn packets(per_s: f64, lost: f64, cpu_us: f64) -> Measurement {
    let line = format!(
        "emu-packets: {per_s:.0} per second, {lost} unintended losses, {cpu_us:.1} µs CPU per \
         packet including both ends (limit 100000 and 0)"
    );
    Measurement::verdict(line, per_s >= PACKETS && lost == 0.0)
}
