//! `bench emu`: how exact emulated links are, and what a packet costs. Needs root.
//!
//! Quiet machine, please: what this measures is how soon threads run.

use anyhow::Context;
use serde_json::Value;

use super::Figure;
use crate::shell::{cargo, output};

/// Relative error of the rate, from 20 kbit/s to 100 Mbit/s.
const RATE: f64 = 0.005;
/// Error of the one-way delay in milliseconds: median, and 99th percentile.
const DELAY_P50_MS: f64 = 0.1;
const DELAY_P99_MS: f64 = 0.5;
/// Packets a second through one link: what is sent must come out at that rate, to a thousandth.
const PACKETS: f64 = 100_000.0 * 0.999;

pub(super) fn run() -> anyhow::Result<Vec<Figure>> {
    let mut command = cargo();
    command.args(["run", "--release", "--quiet", "--package", "gridhaul-emu"]);
    let printed = output(command.args(["--example", "accuracy"]))?;
    println!("\nemu: one link between two namespaces, stamps of datagrams at both ends");
    let mut figures = Vec::new();
    for line in printed.lines() {
        let measured: Value = serde_json::from_str(line).context("a line of JSON")?;
        let number = |key: &str| measured[key].as_f64().unwrap_or(f64::NAN);
        figures.extend(match measured["measure"].as_str() {
            Some("rate") => vec![rate(number("bit_per_s"), number("relative_error"))],
            Some("delay") => delay(number("delay_ms"), number("p50_ms"), number("p99_ms")),
            Some("loss") => vec![loss(number("probability"), number("sent"), number("lost"))],
            _ => {
                vec![packets(number("packets_per_s"), number("lost"), number("cpu_us_per_packet"))]
            }
        });
    }
    Ok(figures)
}

fn rate(nominal: f64, error: f64) -> Figure {
    let (nominal, percent) = (nominal / 1e3, error * 100.0);
    let line = format!("emu-rate-{nominal}k: {percent:+.4} % (bar {} %)", RATE * 100.0);
    Figure { line, reached: error.abs() <= RATE }
}

fn delay(millis: f64, p50: f64, p99: f64) -> Vec<Figure> {
    let figure = |name: &str, error: f64, bar: f64| Figure {
        line: format!("emu-delay-{millis}ms-{name}: {error:.3} ms off (bar {bar} ms)"),
        reached: error <= bar,
    };
    vec![figure("p50", p50, DELAY_P50_MS), figure("p99", p99, DELAY_P99_MS)]
}

/// Losses are binomial: within 3.29 standard deviations in 999 of 1,000 runs.
fn loss(probability: f64, sent: f64, lost: f64) -> Figure {
    let expected = sent * probability;
    let bar = 3.29 * (expected * (1.0 - probability)).sqrt();
    let line = format!("emu-loss: {lost} of {sent} lost, expected {expected} (bar ±{bar:.0})");
    Figure { line, reached: (lost - expected).abs() <= bar }
}

fn packets(per_s: f64, lost: f64, cpu_us: f64) -> Figure {
    let line = format!(
        "emu-packets: {per_s:.0} a second, {lost} lost without order, {cpu_us:.1} µs CPU each with \
         both ends (bar 100000 and none)"
    );
    Figure { line, reached: per_s >= PACKETS && lost == 0.0 }
}
