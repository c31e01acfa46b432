//! Comparison with ns-2 packet by packet: the same packets at the same times, with listed packets
//! lost. ns-2 generates the traces (`conformance/ns2/drops.tcl`); the lists are
//! `conformance/ns2/drops.csv`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use gridhaul_scenario::units::Instant;

use crate::backend::{RunOptions, SimBackend};
use crate::case::{Case, Endpoint};
use crate::ns2_grid::algorithm_of;

/// Names in ns-2 of the algorithms that are compared.
pub const ALGORITHMS: [&str; 4] = ["Tahoe", "Reno", "Newreno", "Sack1"];

/// Largest permitted difference between the times of a packet. Propagation and transmission times
/// are equal to the nanosecond, but ns-2 adds times in floating point.
pub const TOLERANCE_MS: f64 = 1.0;

/// Cases per process: ns-2 computes routes between all nodes, which is slow for many cases.
const CASES_PER_PROCESS: usize = 40;

/// A path, a stack and the packets to lose.
#[derive(Debug, Clone, PartialEq)]
pub struct DropCase {
    /// Unique name.
    pub name: String,
    /// Name of the congestion control algorithm in ns-2.
    pub congestion_control: String,
    /// The other cells of the line.
    cells: Vec<String>,
}

/// Packets of a sender: number (0 is SYN) and time in milliseconds.
pub type Series = Vec<(u64, f64)>;

/// The trace of a sender in ns-2.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Phase of the sender's clock in seconds.
    pub phase_s: f64,
    /// The packets of the sender.
    pub sent: Series,
}

/// Each list of the file with each algorithm.
#[must_use]
pub fn drop_cases() -> Vec<DropCase> {
    let lines = include_str!("../ns2/drops.csv").lines().skip(1);
    lines
        .flat_map(|line| {
            ALGORITHMS.map(|congestion_control| DropCase::parse(line, congestion_control))
        })
        .collect()
}

/// The traces of ns-2, by name.
///
/// # Errors
/// `ns` cannot be run, or its output has another format.
pub fn trace_with_ns2(cases: &[DropCase]) -> Result<BTreeMap<String, Trace>, String> {
    let mut traces = BTreeMap::new();
    for batch in cases.chunks(CASES_PER_PROCESS) {
        let printed = run_ns(&batch.iter().map(DropCase::line).collect::<String>())?;
        for line in printed.lines() {
            let unexpected = || format!("drops.tcl prints {line:?}");
            let [first, second, third] = line.split(',').collect::<Vec<_>>()[..] else {
                return Err(unexpected());
            };
            let number = |text: &str| text.parse::<f64>().map_err(|_| unexpected());
            if first == "boot" {
                let trace = Trace { phase_s: number(third)?, sent: Series::new() };
                traces.insert(second.to_owned(), trace);
            } else {
                let trace = traces.get_mut(first).ok_or_else(unexpected)?;
                trace.sent.push((number(third)? as u64, number(second)? * 1e3));
            }
        }
    }
    Ok(traces)
}

fn run_ns(cases: &str) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("ns: {error}");
    let mut child = Command::new("ns")
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/ns2"))
        .arg("drops.tcl")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // The script reads all cases before it prints.
    child
        .stdin
        .take()
        .map_or(Ok(()), |mut stdin| stdin.write_all(cases.as_bytes()))
        .map_err(failed)?;
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Err(format!("ns: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl DropCase {
    fn parse(line: &str, congestion_control: &str) -> Self {
        let mut cells = line.split(',').map(str::to_owned);
        let name = cells.next().unwrap_or_default();
        Self {
            name: format!("{name}.{congestion_control}"),
            congestion_control: congestion_control.to_owned(),
            cells: cells.collect(),
        }
    }

    fn line(&self) -> String {
        format!("{},{},{}\n", self.name, self.congestion_control, self.cells.join(","))
    }

    fn number(&self, cell: usize) -> f64 {
        self.cells[cell].parse().unwrap_or_else(|_| panic!("{}: {:?}", self.name, self.cells))
    }

    /// End of the comparison in milliseconds: before the end of the run, because the last packets
    /// may be sent before or after it.
    #[must_use]
    pub fn end_ms(&self) -> f64 {
        self.number(9) * 1e3 - 2.0 * TOLERANCE_MS
    }

    /// Packets to lose: their positions among the packets that reach the bottleneck, from 0.
    #[must_use]
    pub fn drops(&self) -> Vec<u64> {
        self.cells[10].split_whitespace().filter_map(|drop| drop.parse().ok()).collect()
    }

    /// The packets that gridhaul sends with the clock phase of ns-2.
    ///
    /// # Errors
    /// The reason why the case cannot be run.
    pub fn simulate(&self, phase_s: f64) -> Result<Series, String> {
        let case = Case::parse(&self.name, &self.text(phase_s))?;
        let observation = SimBackend
            .run_within(&case, RunOptions { start: Instant::ZERO, ..RunOptions::default() })?;
        let size = self.number(4) as u64;
        let sent = observation.packets.iter().filter(|packet| {
            packet.captured_at == Endpoint::Client
                && packet.from == Endpoint::Client
                && (packet.len > 0 || packet.syn)
        });
        let series = sent.map(|packet| (packet.seq.div_ceil(size), packet.at.as_secs_f64() * 1e3));
        Ok(series.collect())
    }

    fn text(&self, phase_s: f64) -> String {
        let mut impairments = String::new();
        for drop in self.drops() {
            let _ = write!(impairments, " {}", drop + 1);
        }
        if !impairments.is_empty() {
            impairments = format!("client any{impairments} lost");
        }
        let bottleneck = format!(
            r#"rate = "{} bit/s", delay = "{} ns""#,
            self.number(0) * 1e3,
            (self.number(1) * 1e6).round(),
        );
        format!(
            r#"
title = "{name}"
source = "ns-2"
requirement = "the same packets"
backends = ["sim"]
not_kernel = "compared with ns-2"
until = "{duration} s"
input = "0 write forever"
impairments = "{impairments}"
[stack]
profile = "ns2"
congestion_control = "{congestion_control}"
mss = "{size} B"
receive_window = "{window} segments"
delayed_ack = "{delayed_ack} ms"
limited_transmit = {limited_transmit}
rto_min = "{rto_min} ms"
rto_initial = "{rto_initial} ms"
clock_phase = "{phase} ns"
[path]
forward = [
    {{ rate = "100 Mbit/s", delay = "100 us", queue = "unlimited" }},
    {{ {bottleneck}, queue = "{queue} packets" }},
]
reverse = [
    {{ {bottleneck}, queue = "unlimited" }},
    {{ rate = "100 Mbit/s", delay = "100 us", queue = "unlimited" }},
]
[expect.totals]
client_state = "Established"
"#,
            name = self.name,
            duration = self.cells[9],
            congestion_control = algorithm_of(&self.congestion_control),
            size = self.cells[4],
            window = self.cells[3],
            delayed_ack = self.cells[5],
            limited_transmit = self.cells[6] == "1",
            rto_min = self.number(7) * 1e3,
            rto_initial = self.number(8) * 1e3,
            phase = (phase_s * 1e9).round(),
            queue = self.number(2) - 1.0,
        )
    }
}

/// The first packet up to `end_ms` that differs in number or time, with the packets around it.
#[must_use]
pub fn difference(ns2: &Series, sim: &Series, end_ms: f64) -> Option<String> {
    let until = |series: &Series| series.iter().take_while(|sent| sent.1 <= end_ms).count();
    let (ns2, sim) = (&ns2[..until(ns2)], &sim[..until(sim)]);
    let equal = |a: &(u64, f64), b: &(u64, f64)| a.0 == b.0 && (a.1 - b.1).abs() <= TOLERANCE_MS;
    let at = ns2.iter().zip(sim).position(|(ns2, sim)| !equal(ns2, sim));
    let at = at.or((ns2.len() != sim.len()).then_some(ns2.len().min(sim.len())))?;
    let mut text = format!("packet {at} of {} and {}\n", ns2.len(), sim.len());
    for index in at.saturating_sub(4)..at + 8 {
        let show = |series: &[(u64, f64)]| {
            let sent = series.get(index);
            sent.map_or(String::new(), |(number, ms)| format!("{number:>5} {ms:>10.3}"))
        };
        let mark = if index == at { '!' } else { ' ' };
        let _ = writeln!(text, "{mark} ns-2 {:<18} sim {}", show(ns2), show(sim));
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_up_to_eight_packets_are_lost() {
        let cases = drop_cases();
        let names: BTreeSet<_> = cases.iter().map(|case| &case.name).collect();
        assert_eq!(names.len(), cases.len());
        let losses: BTreeSet<_> = cases.iter().map(|case| case.drops().len()).collect();
        assert!((0..=6).chain([8]).all(|count| losses.contains(&count)), "{losses:?}");
        assert!(cases.len() >= 48, "{}", cases.len());
    }

    #[test]
    fn difference_detects_order_time_and_number_of_packets() {
        let sent = vec![(0, 0.0), (1, 100.0), (2, 100.0), (3, 110.0)];
        let end = 120.0;
        assert_eq!(difference(&sent, &sent, end), None);
        let mut other = sent.clone();
        other.swap(1, 2);
        assert!(difference(&sent, &other, end).is_some());
        other.clone_from(&sent);
        other[3].1 += 1.01;
        assert!(difference(&sent, &other, end).is_some());
        other.truncate(3);
        assert!(difference(&sent, &other, end).is_some());
        assert_eq!(difference(&sent, &other, 105.0), None);
    }
}
