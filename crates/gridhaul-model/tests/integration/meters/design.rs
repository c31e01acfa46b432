//! Random scenarios of meters over the parameter space that the solver supports: 10³ to 10⁷ meters,
//! 0 to 10⁴ aggregators, 64 kbit/s to 1 Gbit/s, queues of 1 to 10⁴ packets, round-trip times of 1
//! ms to 5 s, Reno and Vegas, all profiles, bursts and messages, one region or two different ones.

use gridhaul_model::Model;
use gridhaul_scenario::answer::{Answer, Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// A random number generator: SplitMix64 of Steele, Lea and Flood (OOPSLA 2014).
pub(crate) struct RandomStream(u64);

impl RandomStream {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A random number whose logarithm is uniform.
    fn between(&mut self, minimum: f64, maximum: f64) -> u64 {
        (minimum * (maximum / minimum).powf(self.share())).round() as u64
    }

    fn one<'a>(&mut self, mean: &[&'a str]) -> &'a str {
        mean[(self.share() * mean.len() as f64) as usize]
    }
}

/// The random scenario of a number (deterministic).
pub(crate) fn scenario(number: u64) -> (String, Scenario) {
    let mut random = RandomStream::new(number);
    let regions = if random.share() < 0.3 { 2 } else { 1 };
    let mut text = String::from(
        "title = \"random\"\nduration = \"300 s\"\n[node.head]\n[node.hub]\n[link.wan]\nfrom \
         = \"hub\"\nto = \
         \"head\"\n",
    );
    let (rate, queue) = (random.between(64e3, 1e9), random.between(1.0, 1e4));
    let delay = random.between(500.0, 2.5e6);
    text += &format!(
        "both = {{ rate = \"{rate} bit/s\", delay = \"{delay} us\", queue = \"{queue} packets\" \
         }}\n"
    );
    for region in 0..regions {
        let meters = random.between(1e3, 1e7);
        let aggregators = if random.share() < 0.25 { 0 } else { random.between(1.0, 1e4) };
        let aggregators = aggregators.min(meters);
        text += &format!("[node.meter{region}]\ncount = {meters}\n");
        let from = if aggregators == 0 { "meter" } else { "aggregator" };
        text += &format!(
            "[link.spur{region}]\nfrom = \"{from}{region}\"\nto = \"hub\"\nboth = {{ rate = \"1 \
             Gbit/s\" }}\n"
        );
        if aggregators > 0 {
            let (rate, queue) = (random.between(64e3, 1e9), random.between(1.0, 1e4));
            let buffer = random.between(1.0, 1e4);
            text += &format!(
                "[node.aggregator{region}]\ncount = {aggregators}\naggregator = {{ buffer \
                 = \"{buffer} \
                 messages\", stack = \"upstream\" }}\n[link.access{region}]\nfrom \
                 = \"meter{region}\"\n\
                 to = \"aggregator{region}\"\nshared = true\nboth = {{ rate = \"{rate} bit/s\", \
                 delay = \"{delay} us\", queue = \"{queue} packets\" }}\n"
            );
        }
        let size = random.between(1.0, 2000.0);
        let every = random.between(1.0, 86_400.0);
        let load = match random.one(&["bursts", "long bursts", "periodic", "poisson"]) {
            "bursts" => {
                "on_off = { on = \"100 ms\", off = \"1 min\", size = \"200 B\" }".to_owned()
            }
            "long bursts" => {
                let (on, off) = (random.between(1.0, 1e5), random.between(1.0, 1e6));
                format!("on_off = {{ on = \"{on} ms\", off = \"{off} ms\", size = \"{size} B\" }}")
            }
            kind => format!("{kind} = {{ every = \"{every} s\", size = \"{size} B\" }}"),
        };
        let deadline = random.between(1.0, 60_000.0);
        text += &format!(
            "[flow.reading{region}]\nfrom = \"meter{region}\"\nto = \"head\"\nstack = \"meter\"\n\
             deadline = \"{deadline} ms\"\nload.{load}\n"
        );
    }
    for (name, window) in [("meter", random.between(1.0, 2.0)), ("upstream", 64)] {
        let profile = random.one(&["ns2", "rfc", "linux"]);
        let congestion_control = random.one(&["reno", "vegas"]);
        text += &format!(
            "[stack.{name}]\nprofile = \"{profile}\"\ncongestion_control \
             = \"{congestion_control}\"\nmss = \"200 B\"\n\
             receive_window = \"{window} segments\"\n"
        );
    }
    let scenario = Scenario::from_toml(&text, "random.toml");
    let scenario = scenario.unwrap_or_else(|error| panic!("{number}: {error}\n{text}"));
    (text, scenario)
}

/// The outcome of a point.
pub(crate) struct Outcome {
    pub(crate) residual: f64,
    /// Whether the answer warns that the solver did not converge.
    pub(crate) unsolved: bool,
}

/// Solves a random scenario with either set of assumptions.
///
/// # Errors
/// The error in the answer: a value that is not a number or is out of range, or an
/// unreported residual.
pub(crate) fn solve(number: u64, paper: bool) -> Result<Outcome, String> {
    let (text, scenario) = scenario(number);
    let backend: &dyn Backend = if paper { &Model::PAPER } else { &Model::REFINED };
    let answer = backend.run(&scenario, &NoProgress).map_err(|error| format!("{error}\n{text}"))?;
    let unsolved = answer.warnings.iter().any(|warning| warning.about == "model");
    let residual = check(&answer).map_err(|wrong| format!("{wrong}\n{text}"))?;
    if residual >= 1e-6 && !unsolved {
        return Err(format!("residual {residual:e} is not reported\n{text}"));
    }
    Ok(Outcome { residual, unsolved })
}

fn check(answer: &Answer) -> Result<f64, String> {
    let mut residual = 0.0_f64;
    let point = &answer.points[0];
    for row in point.flows.iter().chain(&point.links) {
        if row.metrics.values().all(|estimate| estimate.mean.is_none()) {
            return Err(format!("{}: nothing is known", row.name));
        }
        for (metric, estimate) in &row.metrics {
            let Some(value) = estimate.mean else {
                if ALWAYS_KNOWN.contains(metric) || is_partly_known(row, *metric) {
                    return Err(format!("{}: {metric} is not a number", row.name));
                }
                continue;
            };
            let maximum = if share(*metric) { 1.0 + 1e-9 } else { f64::MAX };
            if !(0.0..=maximum).contains(&value) {
                return Err(format!("{}: {metric} is {value}", row.name));
            }
        }
        residual = residual.max(row.mean(Metric::Residual).unwrap_or(0.0));
        order(row)?;
    }
    for check in &point.deadline_checks {
        if check.met.is_some() != check.measured.is_some() {
            return Err(format!("{check:?}"));
        }
    }
    Ok(residual)
}

/// Metrics of every row.
const ALWAYS_KNOWN: [Metric; 16] = [
    Metric::Goodput,
    Metric::Throughput,
    Metric::ReverseThroughput,
    Metric::OfferedLoad,
    Metric::RetransmissionRatio,
    Metric::RttMean,
    Metric::SegmentLoss,
    Metric::SegmentLossTotal,
    Metric::SegmentDelayMean,
    Metric::SegmentDelayTotal,
    Metric::Residual,
    Metric::Iterations,
    Metric::LinkThroughput,
    Metric::Utilisation,
    Metric::LossRatio,
    Metric::QueueMean,
];

/// Whether a metric may be missing: delays are missing without a steady state or without
/// deliveries.
fn is_partly_known(row: &Row, metric: Metric) -> bool {
    let delays = [Metric::DelayMean, Metric::DelayMedian, Metric::DelayP98];
    delays.contains(&metric) && delays.iter().any(|delay| row.mean(*delay).is_some())
}

const fn share(metric: Metric) -> bool {
    matches!(
        metric,
        Metric::SegmentLoss
            | Metric::SegmentLossTotal
            | Metric::RetransmissionRatio
            | Metric::DeadlineMet
            | Metric::LossRatio
            | Metric::Utilisation
    )
}

/// Checks the order of the delays: a message takes at least as long as its segments.
fn order(row: &Row) -> Result<(), String> {
    let mean = |metric| row.mean(metric);
    if let (Some(half), Some(maximum)) = (mean(Metric::DelayMedian), mean(Metric::DelayP98))
        && half > maximum
    {
        return Err(format!("{}: median {half}, 98 % {maximum}", row.name));
    }
    if let (Some(message), Some(segment)) =
        (mean(Metric::DelayMean), mean(Metric::SegmentDelayTotal))
        && message < 0.95 * segment
    {
        return Err(format!("{}: message {message}, segment {segment}", row.name));
    }
    Ok(())
}
