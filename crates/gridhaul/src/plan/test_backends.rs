//! A scenario and a backend for tests of the planner.

use std::sync::atomic::{AtomicUsize, Ordering};

use gridhaul_scenario::answer::{Answer, Estimate, Metric, Point, Row};
use gridhaul_scenario::backend::{Backend, Progress, RunError, Unsupported};
use gridhaul_scenario::scenario::{
    Choices, CongestionControlAlgorithm, PlanSpecification, Scenario,
};

/// A thousand meters with aggregators; a plan with these choices and costs, and a loss limit of 2
/// %.
pub(crate) fn district(choose: &str, cost: &str) -> Scenario {
    let text = format!(
        r#"
title = "A district"
duration = "60 s"
[node]
meter.count = 1000
head = {{}}
[node.collector]
count = 4
aggregator.stack = "upstream"
[link]
access = {{ from = "meter", to = "collector", shared = true, both.rate = "1 Mbit/s" }}
wan = {{ from = "collector", to = "head", shared = true, both.rate = "1 Mbit/s" }}
[stack.upstream]
congestion_control = "vegas"
[flow.reading]
from = "meter"
to = "head"
load.periodic = {{ size = "200 B", every = "10 s" }}
[plan]
limit.reading.loss = "2 %"
[plan.choose]
{choose}
[plan.cost]
{cost}
"#
    );
    Scenario::from_toml(&text, "district.toml").unwrap()
}

/// The plan of a scenario and its choices.
pub(crate) fn plan_of(scenario: &Scenario) -> (PlanSpecification, Choices) {
    (scenario.plan.clone().unwrap(), scenario.choices().unwrap())
}

/// A point whose only row is flow `reading`, with these metrics.
pub(crate) fn point(metrics: &[(Metric, f64)]) -> Point {
    let known = metrics.iter().map(|&(metric, value)| (metric, Estimate::exact(value, 1)));
    let row =
        Row { name: "reading".to_owned(), count: 1, metrics: known.collect(), ..Row::default() };
    Point { flows: vec![row], ..Point::default() }
}

/// Answers with a loss that is a function of the scenario, and does not support BBR.
pub(crate) struct FakeBackend<F> {
    loss: F,
    runs: AtomicUsize,
}

impl<F: Fn(&Scenario) -> Option<f64>> FakeBackend<F> {
    pub(crate) fn new(loss: F) -> Self {
        Self { loss, runs: AtomicUsize::new(0) }
    }

    /// Number of scenarios that were answered.
    pub(crate) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }
}

impl<F: Fn(&Scenario) -> Option<f64>> Backend for FakeBackend<F> {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn supports(&self, scenario: &Scenario) -> Result<(), Vec<Unsupported>> {
        if scenario.stack["upstream"].congestion_control != Some(CongestionControlAlgorithm::Bbr) {
            return Ok(());
        }
        let key = "stack.upstream.congestion_control".to_owned();
        Err(vec![Unsupported { key, reason: "no equations for bbr".to_owned() }])
    }

    fn run(&self, scenario: &Scenario, progress: &dyn Progress) -> Result<Answer, RunError> {
        if progress.is_interrupted() {
            return Err(RunError::Interrupted);
        }
        self.runs.fetch_add(1, Ordering::Relaxed);
        let metrics: Vec<_> = (self.loss)(scenario)
            .into_iter()
            .map(|loss| (Metric::SegmentLossTotal, loss))
            .collect();
        Ok(Answer {
            schema: Answer::SCHEMA,
            gridhaul: String::new(),
            backend: "fake".to_owned(),
            title: scenario.title.clone(),
            scenario_sha256: String::new(),
            seed: scenario.seed,
            replications: 1,
            incomplete: false,
            points: vec![point(&metrics)],
            warnings: Vec::new(),
            series: Vec::new(),
            captures: Vec::new(),
            event_logs: Vec::new(),
        })
    }
}
