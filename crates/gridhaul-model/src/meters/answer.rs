//! From a solution to the answer.

use gridhaul_scenario::answer::{Answer, Estimate, Metric, Point, Row, Warning};
use gridhaul_scenario::scenario::{Scenario, ScenarioPoint};
use indexmap::IndexMap;

use super::build::Layout;
use crate::fixed_point::Solution;

/// An answer without points.
pub(super) fn empty(scenario: &Scenario) -> Answer {
    Answer {
        schema: Answer::SCHEMA,
        gridhaul: env!("CARGO_PKG_VERSION").to_owned(),
        backend: "model".to_owned(),
        title: scenario.title.clone(),
        scenario_sha256: scenario.sha256(),
        seed: scenario.seed,
        repeats: 1,
        points: Vec::new(),
        warnings: Vec::new(),
        series: Vec::new(),
        captures: Vec::new(),
    }
}

/// Solves a point and adds what comes out.
pub(super) fn add(answer: &mut Answer, point: &ScenarioPoint, layout: &Layout) {
    let solution = layout.network.solve();
    for (about, message) in &layout.warnings {
        answer.warnings.push(Warning { about: about.clone(), message: message.clone() });
    }
    warn(answer, layout, &solution);
    answer.points.push(Point {
        parameters: point.parameters.clone(),
        flows: flows(layout, &solution),
        links: links(&point.scenario, layout, &solution),
        verdicts: Vec::new(),
    });
}

fn flows(layout: &Layout, solution: &Solution) -> Vec<Row> {
    let rows = layout.flows.iter().zip(&layout.network.classes).zip(&solution.classes);
    rows.map(|((place, class), stream)| {
        let all = class.senders;
        let offered = all * stream.sent.rates.offered;
        let fresh = all * stream.sent.rates.fresh;
        let carried = all * stream.sent.rates.arriving;
        let repeated = if offered > 0.0 { 1.0 - fresh / offered } else { 0.0 };
        let metrics = [
            (Metric::Goodput, fresh * place.payload_bits),
            (Metric::Throughput, carried * class.segment_bits),
            (Metric::ReverseThroughput, carried * place.ack_bits),
            (Metric::OfferedLoad, offered * class.segment_bits),
            (Metric::RetransmissionRatio, repeated),
            (Metric::RttMean, stream.rtt),
            (Metric::SegmentLoss, stream.loss),
            (Metric::SegmentLossTotal, stream.loss),
            (Metric::SegmentDelayMean, stream.delay),
            (Metric::SegmentDelayTotal, stream.delay),
            (Metric::Residual, solution.residual),
            (Metric::Iterations, f64::from(solution.evaluations)),
        ];
        Row { name: place.name.clone(), count: all as u64, metrics: known(&metrics) }
    })
    .collect()
}

fn links(scenario: &Scenario, layout: &Layout, solution: &Solution) -> Vec<Row> {
    let places = layout.links.iter().zip(&solution.resources).zip(&layout.network.resources);
    places
        .map(|((place, response), resource)| {
            let (link, _) = scenario.link.get_index(place.hop.link).expect("a hop is a link");
            let side = if place.hop.forward { "forward" } else { "backward" };
            let busy = response.carried();
            let metrics = [
                (Metric::LinkThroughput, busy * resource.rate),
                (Metric::Utilisation, busy),
                (Metric::LossRatio, response.loss),
                // Little's law.
                (Metric::QueueMean, busy * response.wait / response.service),
            ];
            Row { name: format!("{link}.{side}"), count: place.count, metrics: known(&metrics) }
        })
        .collect()
}

/// Numbers without chance: one run, no interval.
fn known(metrics: &[(Metric, f64)]) -> IndexMap<Metric, Estimate> {
    let mut known: IndexMap<Metric, Estimate> = metrics
        .iter()
        .map(|&(metric, value)| {
            let mean = value.is_finite().then_some(value);
            (metric, Estimate { mean, ci95: None, n: 1 })
        })
        .collect();
    known.sort_keys();
    known
}

fn warn(answer: &mut Answer, layout: &Layout, solution: &Solution) {
    let mut warn =
        |about: String, message: String| answer.warnings.push(Warning { about, message });
    if !solution.converged {
        warn(
            "model".to_owned(),
            format!(
                "the fixed point was not reached: residual {:.1e}; do not trust these numbers",
                solution.residual
            ),
        );
    }
    for (place, stream) in layout.flows.iter().zip(&solution.classes) {
        if stream.sent.backlog {
            warn(
                format!("flow.{}", place.name),
                "more messages come than the connections can carry: the backlog of the senders \
                 grows for as long as this lasts, and there is no steady state"
                    .to_owned(),
            );
        }
    }
}
