//! Flows that forward the messages of other flows.

use gridhaul_scenario::scenario::Scenario;

use crate::flow::Flow;

/// A flow that forwards the messages which the flows of a row have delivered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subscription {
    /// Row of the publications.
    pub publications: u32,
    /// Row of the subscription, which has one flow.
    pub row: u32,
    pub flow: u32,
}

/// The subscriptions of a scenario with these flows.
pub(crate) fn subscriptions(scenario: &Scenario, flows: &[Flow]) -> Vec<Subscription> {
    let rows = scenario.flow.values().enumerate();
    let subscriptions = rows.filter_map(|(row, spec)| {
        let (publications, _) = scenario.publications_of(spec)?;
        let (publications, row) = (publications as u32, row as u32);
        let flow = flows.iter().position(|flow| flow.row == row)? as u32;
        Some(Subscription { publications, row, flow })
    });
    subscriptions.collect()
}
