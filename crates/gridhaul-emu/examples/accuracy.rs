//! Accuracy of emulated links as measured by applications: one line of JSON for each measurement.
//!
//! All measurements use the timestamps of datagrams at both ends: the time at which a message was
//! due, and the time at which it was received. The lateness of the sender is part of the error.

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, ColumnData, Metric};
use gridhaul_scenario::backend::{Backend, NoProgress, RunError};
use gridhaul_scenario::scenario::Scenario;

/// Bytes of a packet, headers included.
const PACKET: f64 = 1_000.0;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for rate in [20e3, 100e3, 1e6, 10e6, 100e6] {
        let error = rate_error(rate)?;
        println!(r#"{{"measure": "rate", "bit_per_s": {rate}, "relative_error": {error}}}"#);
    }
    for millis in [1.0, 20.0, 300.0] {
        let (p50, p99) = delay_error(millis)?;
        println!(
            r#"{{"measure": "delay", "delay_ms": {millis}, "p50_ms": {p50}, "p99_ms": {p99}}}"#
        );
    }
    let (sent, lost) = loss(0.01)?;
    println!(r#"{{"measure": "loss", "probability": 0.01, "sent": {sent}, "lost": {lost}}}"#);
    let (per_s, lost, cpu_us) = throughput()?;
    println!(
        r#"{{"measure": "throughput", "packets_per_s": {per_s}, "lost": {lost}, "cpu_us_per_packet": {cpu_us}}}"#
    );
    Ok(())
}

/// Relative error of the rate of a saturated link, from the first to the last arrival.
fn rate_error(rate: f64) -> Result<f64, RunError> {
    let transmission_s = PACKET * 8.0 / rate;
    let answer = run(&format!(
        "duration = '{} s'\nrecord = {{ interval = '1 s' }}\n{}",
        (transmission_s * 30.0).max(3.0),
        network(
            // Queue space for a tenth of a second, in which the sender may not be scheduled.
            &format!(
                "rate = '{rate} bit/s', queue = '{} packets'",
                (0.1 / transmission_s).max(20.0) as u32
            ),
            972,
            transmission_s / 1.25,
        ),
    ))?;
    let arrivals = arrivals(&answer);
    let span = arrivals[arrivals.len() - 1] - arrivals[0];
    Ok((arrivals.len() - 1) as f64 * PACKET * 8.0 / span / rate - 1.0)
}

/// Median and 99th percentile of the error of delays, in milliseconds.
fn delay_error(millis: f64) -> Result<(f64, f64), RunError> {
    let answer = run(&format!(
        "duration = '8 s'\nrecord = {{ interval = '1 s' }}\n{}",
        network(&format!("rate = '10 Mbit/s', delay = '{millis} ms'"), 97, 0.002),
    ))?;
    let expected = 125.0 * 8.0 / 10e6 + millis / 1e3;
    let mut errors: Vec<f64> =
        delays(&answer).iter().map(|(_, delay)| (delay - expected).abs() * 1e3).collect();
    errors.sort_by(f64::total_cmp);
    let quantile = |share: f64| errors[((errors.len() - 1) as f64 * share) as usize];
    Ok((quantile(0.5), quantile(0.99)))
}

/// Number of sent packets and of lost packets, with this loss probability.
fn loss(probability: f64) -> Result<(f64, f64), RunError> {
    let answer = run(&format!(
        "duration = '8 s'\n{}",
        network(
            &format!("rate = '100 Mbit/s', loss = {{ bernoulli = '{} %' }}", probability * 100.0),
            97,
            0.0002
        ),
    ))?;
    let sent = link(&answer, Metric::PacketsIn);
    Ok((sent, sent - flow(&answer, Metric::Messages)))
}

/// 100,000 packets per second through one link for four seconds: the rate at which the first of
/// them arrived, the number of lost packets, and the CPU time per packet in microseconds, including
/// both ends.
fn throughput() -> Result<(f64, f64, f64), RunError> {
    const PACKETS: u32 = 400_000;
    let before = cpu_seconds();
    let answer = run(&format!(
        "duration = '5 s'\nrecord = {{ interval = '1 s' }}\n{}",
        one_link(
            "rate = '1 Gbit/s', queue = '5000 packets'",
            &format!("burst = {{ size = '72 B', at = '0 s', count = {PACKETS}, gap = '10 us' }}")
        ),
    ))?;
    let cpu_us = (cpu_seconds() - before) * 1e6 / f64::from(PACKETS);
    // The series holds the first 100,000 messages.
    let arrivals = arrivals(&answer);
    let span = arrivals[arrivals.len() - 1] - arrivals[0];
    let lost = f64::from(PACKETS) - flow(&answer, Metric::Messages);
    Ok(((arrivals.len() - 1) as f64 / span, lost, cpu_us))
}

/// One link, and one sender of datagrams with `size` bytes of payload at a fixed interval.
fn network(direction: &str, size: u32, step_s: f64) -> String {
    let every = (step_s * 1e9).round();
    one_link(direction, &format!("periodic = {{ size = '{size} B', every = '{every} ns' }}"))
}

/// One link, and one sender of datagrams.
fn one_link(direction: &str, load: &str) -> String {
    format!(
        "title = 'accuracy'\n\
         [node]\na = {{}}\nb = {{}}\n\
         [link.wire]\nfrom = 'a'\nto = 'b'\nforward = {{ {direction} }}\n\
         [flow.stamps]\nfrom = 'a'\nto = 'b'\ntransport = 'datagram'\n\
         load = {{ {load} }}"
    )
}

fn run(text: &str) -> Result<Answer, RunError> {
    let scenario = Scenario::from_toml(text, "accuracy")
        .map_err(|error| RunError::Invalid(error.to_string()))?;
    let answer = Emu::default().run(&scenario, &NoProgress)?;
    for warning in &answer.warnings {
        eprintln!("warning: {}: {}", warning.about, warning.message);
    }
    Ok(answer)
}

/// Ready time and delay of each message, in seconds.
fn delays(answer: &Answer) -> Vec<(f64, f64)> {
    let series = answer.series.iter().find(|series| series.name == "delays");
    let series = series.expect("the scenario records a series");
    let values = |column| series.values(column, 0..series.row_count());
    match (values(0), values(2)) {
        (Ok(ColumnData::Real(times)), Ok(ColumnData::Real(delays))) => {
            times.into_iter().zip(delays).collect()
        }
        _ => Vec::new(),
    }
}

/// Arrival times of the messages in order, in seconds.
fn arrivals(answer: &Answer) -> Vec<f64> {
    let mut all: Vec<f64> = delays(answer).iter().map(|(ready, delay)| ready + delay).collect();
    all.sort_by(f64::total_cmp);
    all
}

fn flow(answer: &Answer, metric: Metric) -> f64 {
    answer.points[0].flows[0].mean(metric).unwrap_or(f64::NAN)
}

fn link(answer: &Answer, metric: Metric) -> f64 {
    answer.points[0].links[0].mean(metric).unwrap_or(f64::NAN)
}

/// CPU time of this process so far: user and system, fields 14 and 15 of `/proc/self/stat` in
/// hundredths of a second (proc(5)).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}
