//! The scenario view: what can be changed, and the runs of a changed scenario.

mod controls;
mod run;
mod series;

use gridhaul_scenario::answer::{Metric, MetricInfo};
use serde::Serialize;

use crate::packets_view;
use crate::subject::Subject;

pub(crate) use run::{RunRequest, run};

/// The scenario as a page needs it.
#[derive(Serialize)]
pub(crate) struct Description<'a> {
    title: &'a str,
    description: &'a str,
    /// Path of the file; null for the built-in scenario and a point of a sweep.
    file: Option<&'a str>,
    is_first_point: bool,
    duration_s: f64,
    seed: u64,
    controls: Vec<controls::Control>,
    flows: Vec<FlowName<'a>>,
    metrics: Vec<MetricName>,
}

#[derive(Serialize)]
struct FlowName<'a> {
    name: &'a str,
    /// Whether the packets view can draw the flow.
    has_packets: bool,
}

/// A column of an answer.
#[derive(Serialize)]
pub(crate) struct MetricName {
    pub(crate) column: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) is_flow: bool,
    pub(crate) doc: &'static str,
}

impl<'a> Description<'a> {
    pub(crate) fn of(subject: &'a Subject) -> Self {
        let scenario = &subject.scenario;
        let flows = scenario
            .flow
            .keys()
            .map(|name| FlowName { name, has_packets: packets_view::is_drawable(scenario, name) });
        Self {
            title: &scenario.title,
            description: &scenario.description,
            file: subject.file.as_deref(),
            is_first_point: subject.is_first_point,
            duration_s: scenario.duration.as_secs_f64(),
            seed: scenario.seed,
            controls: controls::of(scenario),
            flows: flows.collect(),
            metrics: Metric::ALL.iter().map(|metric| MetricName::of(metric.info())).collect(),
        }
    }
}

impl MetricName {
    pub(crate) fn of(info: MetricInfo) -> Self {
        use gridhaul_scenario::answer::Scope;
        let MetricInfo { column, heading, unit, scope, doc } = info;
        Self { column, heading, unit, is_flow: scope == Scope::Flow, doc }
    }
}
