//! The same flows in the simulator (profile `linux`) and on the kernel of this machine.
//!
//! Each case runs on the kernel with several seeds: random losses differ, and without loss the
//! timing of the kernel differs. A metric agrees if its deviation is within the limit or within the
//! 95 % confidence interval of the difference. Other deviations need an entry with the reason in a
//! file of exceptions. A case is undecided if the machine was too busy in most of its runs.

mod estimate;
mod runs;

use std::fs;

use toml::Table;

use self::estimate::{Estimate, agrees};
use super::Measurement;
use crate::process::root;

/// A scenario with one flow, and its settings.
#[derive(Debug, Clone)]
pub(super) struct Case {
    /// Words that identify the case among the exceptions.
    pub key: String,
    /// First columns of the table.
    pub label: String,
    /// Path of the scenario file.
    pub scenario: String,
    /// Values that replace those of the file.
    pub settings: Vec<(String, String)>,
    /// Largest relative deviation of the goodput.
    pub goodput_share: f64,
    /// Sum of the rates of all links that the flow fills, which limits the concurrent runs.
    pub load_kbit_per_s: u64,
}

/// Headings of a table, and the place where deviations are listed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report<'a> {
    /// Name of the benchmark.
    pub name: &'static str,
    /// Heading of the labels.
    pub heading: &'a str,
    /// Path of the file of exceptions.
    pub exceptions: &'static str,
}

/// A compared metric.
struct Metric {
    /// Name in answers, and in the file of exceptions.
    column: &'static str,
    name: &'static str,
    /// Heading in the table.
    heading: &'static str,
    unit: f64,
    decimals: usize,
    /// Largest deviation: relative (`None`: that of the case), or absolute.
    share: Option<f64>,
    minimum: f64,
}

/// Largest deviation of the number of retransmissions: relative, or absolute.
const RETRANSMISSIONS: (f64, f64) = (0.2, 2.0);

const METRICS: [Metric; 3] = [
    Metric {
        column: "goodput_bit_per_s",
        name: "goodput",
        heading: "goodput in kbit/s",
        unit: 1e3,
        decimals: 1,
        share: None,
        minimum: 0.0,
    },
    Metric {
        column: "retransmissions_count",
        name: "retransmissions",
        heading: "retransmissions",
        unit: 1.0,
        decimals: 1,
        share: Some(RETRANSMISSIONS.0),
        minimum: RETRANSMISSIONS.1,
    },
    Metric {
        column: "proxy_retransmissions_count",
        name: "proxy_retransmissions",
        heading: "retransmissions of proxies",
        unit: 1.0,
        decimals: 1,
        share: Some(RETRANSMISSIONS.0),
        minimum: RETRANSMISSIONS.1,
    },
];

/// The metrics of one run or more, in the order of [`METRICS`]; `None` without proxies.
type Outcome = [Option<Estimate>; METRICS.len()];

/// Results of a comparison.
#[derive(Default)]
struct Verdicts {
    /// Number of agreeing cases, by metric.
    agreeing: [usize; METRICS.len()],
    /// Number of compared cases, by metric.
    compared: [usize; METRICS.len()],
    /// Deviations that are not listed, and cases without a result.
    unexplained: Vec<String>,
    undecided: Vec<String>,
}

/// Simulates the cases, runs them on the kernel and prints a table. The caller prints the returned
/// value.
pub(super) fn compare(cases: &[Case], report: Report<'_>) -> anyhow::Result<Vec<Measurement>> {
    let Report { name, heading, exceptions } = report;
    println!("\n{name}: {} flows, each in the simulator and on the kernel", cases.len());
    let simulated = runs::simulate(name, cases)?;
    let kernel = runs::run_on_kernel(name, cases)?;
    let listed: Table = fs::read_to_string(root().join(exceptions))?.parse()?;
    let has = |metric: usize| simulated.iter().any(|outcome| outcome[metric].is_some());
    let metrics: Vec<usize> = (0..METRICS.len()).filter(|metric| has(*metric)).collect();
    print_headings(heading, &metrics);
    let mut verdicts = Verdicts::default();
    for (case, (simulated, kernel)) in cases.iter().zip(simulated.iter().zip(&kernel)) {
        let Some(kernel) = kernel else {
            println!("  {}  undecided: late in most runs", case.label);
            verdicts.undecided.push(case.key.clone());
            continue;
        };
        print!("  {}", case.label);
        for &metric in &metrics {
            verdicts.print(case, metric, [simulated[metric], kernel[metric]], &listed);
        }
        println!();
    }
    let counts = metrics.iter().map(|&metric| {
        let (agreeing, compared) = (verdicts.agreeing[metric], verdicts.compared[metric]);
        format!("{} in {agreeing} of {compared}", METRICS[metric].heading)
    });
    println!("  agreement: {}", counts.collect::<Vec<_>>().join(", "));
    for key in &verdicts.unexplained {
        println!("  deviation without an entry in {exceptions}: {key}");
    }
    for key in &verdicts.undecided {
        println!("  undecided, because this machine was too busy: {key}");
    }
    let (unexplained, undecided) = (verdicts.unexplained.len(), verdicts.undecided.len());
    let line =
        format!("{name}: {unexplained} unexplained deviations, {undecided} undecided (limit 0)");
    Ok(vec![Measurement::verdict(line, unexplained + undecided == 0)])
}

fn print_headings(heading: &str, metrics: &[usize]) {
    print!("  {:<width$}", "", width = heading.len());
    for &metric in metrics {
        print!("{:^40}", METRICS[metric].heading);
    }
    print!("\n  {heading}");
    for _ in metrics {
        print!("{:>11}{:>11}{:>7}  {:<9}", "simulator", "kernel", "ratio", "result");
    }
    println!();
}

impl Verdicts {
    /// Prints the columns of a metric, and records its result.
    fn print(
        &mut self,
        case: &Case,
        metric: usize,
        [simulated, kernel]: [Option<Estimate>; 2],
        listed: &Table,
    ) {
        let Metric { name, unit, decimals, share, minimum, .. } = METRICS[metric];
        let (Some(simulated), Some(kernel)) = (simulated, kernel) else {
            print!("{:>11}{:>11}{:>7}  {:<9}", "-", "-", "-", "-");
            return;
        };
        self.compared[metric] += 1;
        let agree = agrees(simulated, kernel, share.unwrap_or(case.goodput_share), minimum);
        let key = format!("{} {name}", case.key);
        let result = match (agree, listed.contains_key(&key)) {
            (true, _) => "agree",
            (false, true) => "listed",
            (false, false) => "DIFFER",
        };
        self.agreeing[metric] += usize::from(agree);
        let ratio = match kernel.mean > 0.0 {
            true => format!("{:.3}", simulated.mean / kernel.mean),
            false => "-".to_owned(),
        };
        let (simulated, kernel) = (simulated.mean / unit, kernel.mean / unit);
        print!("{simulated:>11.decimals$}{kernel:>11.decimals$}{ratio:>7}  {result:<9}");
        if result == "DIFFER" {
            self.unexplained.push(key);
        }
    }
}
