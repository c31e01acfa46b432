//! The upstream connections of the aggregators of a scenario.

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Hop, IpVersion, Scenario, Stage, upstream_name};

/// The first stage of every flow, and the groups of upstream connections.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    /// In the order of the scenario's flows.
    pub flows: Vec<FirstStage>,
    pub groups: Vec<Group>,
}

/// The part of a flow up to its destination or the first aggregator.
#[derive(Debug)]
pub(crate) struct FirstStage {
    /// Node at which the connections of the flow end.
    pub to: String,
    pub forward: Vec<Hop>,
    pub reverse: Vec<Hop>,
    /// Index of the group of upstream connections that forwards the data, if the flow ends at an
    /// aggregator.
    pub next: Option<usize>,
}

/// Equal upstream connections: one for each member of a group of aggregators.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub aggregator: String,
    pub to: String,
    pub forward: Vec<Hop>,
    pub reverse: Vec<Hop>,
    /// Names of the stacks of both ends.
    pub stack: Option<String>,
    pub to_stack: Option<String>,
    /// IP version of the connections.
    pub ip: IpVersion,
    /// Number of connections.
    pub count: u64,
    /// Index of the next group that forwards the data of these connections.
    pub next: Option<usize>,
}

impl Topology {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let mut topology = Self::default();
        for (name, flow) in &scenario.flow {
            let stages =
                scenario.stages(name).map_err(|error| RunError::Invalid(error.to_string()))?;
            let mut stages = stages.into_iter();
            let Some(first) = stages.next() else { continue };
            // From the last stage to the second, because each group refers to the next one.
            let next = stages.rev().fold(None, |next, stage| {
                let last = next.is_none();
                let to_stack = flow.to_stack.clone().filter(|_| last);
                Some(topology.group(stage, to_stack, next))
            });
            topology.flows.push(FirstStage {
                to: first.to,
                forward: first.forward,
                reverse: first.reverse,
                next,
            });
        }
        Ok(topology)
    }

    /// The index of the group of this stage. Flows with the same path and stacks share a group.
    fn group(&mut self, stage: Stage, to_stack: Option<String>, next: Option<usize>) -> usize {
        let Stage { from, to, forward, reverse, connections, stack, ip } = stage;
        let to_stack = to_stack.or_else(|| stack.clone());
        let (aggregator, count) = (from, connections);
        let group = Group { aggregator, to, forward, reverse, stack, to_stack, ip, count, next };
        self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        })
    }

    /// The groups that the data of a flow crosses after its first stage.
    pub(crate) fn after(&self, flow: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.flows[flow].next, |&group| self.groups[group].next)
    }

    /// The index of this group at its aggregator: the number of earlier groups that begin there.
    pub(crate) fn slot(&self, group: usize) -> usize {
        let aggregator = &self.groups[group].aggregator;
        self.groups[..group].iter().filter(|other| other.aggregator == *aggregator).count()
    }
}

impl Group {
    /// Name of the row of the group in the answer.
    pub(crate) fn row_name(&self) -> String {
        upstream_name(&self.aggregator, &self.to)
    }
}
