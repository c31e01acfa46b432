//! Random scenarios of meters over the whole box that the solver must stand: 10³ to 10⁷ meters, none
//! to 10⁴ collectors, 64 kbit/s to 1 Gbit/s, room for 1 to 10⁴ packets, round trips of 1 ms to 5 s, both
//! variants, all profiles, bursts and messages, one region or two different ones.

use gridhaul_model::{Model, PaperModel};
use gridhaul_scenario::answer::{Answer, Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// Numbers without order from a number: the generator of Steele, Lea and Flood (OOPSLA 2014).
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

    /// Evenly spread in its logarithm.
    fn between(&mut self, least: f64, most: f64) -> u64 {
        (least * (most / least).powf(self.share())).round() as u64
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[(self.share() * of.len() as f64) as usize]
    }
}

/// A scenario; the same for the same number.
pub(crate) fn scenario(number: u64) -> (String, Scenario) {
    let mut chance = RandomStream::new(number);
    let regions = if chance.share() < 0.3 { 2 } else { 1 };
    let mut text = String::from(
        "title = \"random\"\nduration = \"300 s\"\n[node.head]\n[node.hub]\n[link.wan]\nfrom = \"hub\"\nto = \
         \"head\"\n",
    );
    let (rate, room) = (chance.between(64e3, 1e9), chance.between(1.0, 1e4));
    let delay = chance.between(500.0, 2.5e6);
    text += &format!(
        "both = {{ rate = \"{rate} bit/s\", delay = \"{delay} us\", queue = \"{room} packets\" }}\n"
    );
    for region in 0..regions {
        let meters = chance.between(1e3, 1e7);
        let collectors = if chance.share() < 0.25 { 0 } else { chance.between(1.0, 1e4) };
        let collectors = collectors.min(meters);
        text += &format!("[node.meter{region}]\ncount = {meters}\n");
        let from = if collectors == 0 { "meter" } else { "collector" };
        text += &format!(
            "[link.spur{region}]\nfrom = \"{from}{region}\"\nto = \"hub\"\nboth = {{ rate = \"1 Gbit/s\" }}\n"
        );
        if collectors > 0 {
            let (rate, room) = (chance.between(64e3, 1e9), chance.between(1.0, 1e4));
            let buffer = chance.between(1.0, 1e4);
            text += &format!(
                "[node.collector{region}]\ncount = {collectors}\naggregator = {{ buffer = \"{buffer} \
                 messages\", stack = \"upstream\" }}\n[link.access{region}]\nfrom = \"meter{region}\"\n\
                 to = \"collector{region}\"\nshared = true\nboth = {{ rate = \"{rate} bit/s\", delay = \
                 \"{delay} us\", queue = \"{room} packets\" }}\n"
            );
        }
        let size = chance.between(1.0, 2000.0);
        let every = chance.between(1.0, 86_400.0);
        let load = match chance.one(&["bursts", "long bursts", "periodic", "poisson"]) {
            "bursts" => {
                "on_off = { on = \"100 ms\", off = \"1 min\", size = \"200 B\" }".to_owned()
            }
            "long bursts" => {
                let (on, off) = (chance.between(1.0, 1e5), chance.between(1.0, 1e6));
                format!("on_off = {{ on = \"{on} ms\", off = \"{off} ms\", size = \"{size} B\" }}")
            }
            kind => format!("{kind} = {{ every = \"{every} s\", size = \"{size} B\" }}"),
        };
        let deadline = chance.between(1.0, 60_000.0);
        text += &format!(
            "[flow.reading{region}]\nfrom = \"meter{region}\"\nto = \"head\"\nstack = \"meter\"\n\
             deadline = \"{deadline} ms\"\nload.{load}\n"
        );
    }
    for (name, window) in [("meter", chance.between(1.0, 2.0)), ("upstream", 64)] {
        let profile = chance.one(&["ns2", "rfc", "linux"]);
        let congestion_control = chance.one(&["reno", "vegas"]);
        text += &format!(
            "[stack.{name}]\nprofile = \"{profile}\"\ncongestion_control = \"{congestion_control}\"\nmss = \"200 B\"\n\
             receive_window = \"{window} segments\"\n"
        );
    }
    let scenario = Scenario::from_toml(&text, "random.toml");
    let scenario = scenario.unwrap_or_else(|error| panic!("{number}: {error}\n{text}"));
    (text, scenario)
}

/// What a point came to.
pub(crate) struct Outcome {
    pub(crate) residual: f64,
    /// The answer says that its numbers are not to be trusted.
    pub(crate) unsolved: bool,
}

/// Solves a random scenario by either set of rules.
///
/// # Errors
/// What is wrong with the answer: a number that is none or is out of its range, or a residual that is
/// not reported.
pub(crate) fn solve(number: u64, paper: bool) -> Result<Outcome, String> {
    let (text, scenario) = scenario(number);
    let backend: &dyn Backend = if paper { &PaperModel } else { &Model };
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
            let most = if share(*metric) { 1.0 + 1e-9 } else { f64::MAX };
            if !(0.0..=most).contains(&value) {
                return Err(format!("{}: {metric} is {value}", row.name));
            }
        }
        residual = residual.max(row.mean(Metric::Residual).unwrap_or(0.0));
        order(row)?;
    }
    for verdict in &point.deadline_checks {
        if verdict.met.is_some() != verdict.measured.is_some() {
            return Err(format!("{verdict:?}"));
        }
    }
    Ok(residual)
}

/// What the equations give of every row.
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

/// Without a steady state, or where nothing arrives, no message has a delay; else all delays are known.
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

/// A message takes at least what its segments take.
fn order(row: &Row) -> Result<(), String> {
    let of = |metric| row.mean(metric);
    if let (Some(half), Some(most)) = (of(Metric::DelayMedian), of(Metric::DelayP98))
        && half > most
    {
        return Err(format!("{}: median {half}, 98 % {most}", row.name));
    }
    if let (Some(message), Some(segment)) = (of(Metric::DelayMean), of(Metric::SegmentDelayTotal))
        && message < 0.95 * segment
    {
        return Err(format!("{}: message {message}, segment {segment}", row.name));
    }
    Ok(())
}
