//! Which connections lead on from the collectors of a scenario.

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Hop, IpVersion, Scenario, Stage, upstream_name};

/// The first stage of every flow, and the groups of upstream connections.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// In the order of the scenario's flows.
    pub flows: Vec<Way>,
    pub groups: Vec<Group>,
}

/// The way of a flow.
#[derive(Debug)]
pub(crate) struct Way {
    /// Node where its own connections end.
    pub to: String,
    pub out: Vec<Hop>,
    pub back: Vec<Hop>,
    /// Number of the group that takes on what they deliver, if they end at a collector.
    pub next: Option<usize>,
}

/// Equal upstream connections: one for each member of a collector.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub collector: String,
    pub to: String,
    pub out: Vec<Hop>,
    pub back: Vec<Hop>,
    /// Names of the stacks of both ends.
    pub stack: Option<String>,
    pub to_stack: Option<String>,
    /// Version of IP of the connections.
    pub ip: IpVersion,
    /// Number of connections.
    pub count: u64,
    /// The group that takes on what these deliver.
    pub next: Option<usize>,
}

impl Plan {
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, RunError> {
        let mut plan = Self::default();
        for (name, flow) in &scenario.flow {
            let stages =
                scenario.stages(name).map_err(|error| RunError::Invalid(error.to_string()))?;
            let mut stages = stages.into_iter();
            let Some(first) = stages.next() else { continue };
            // From the last stage to the second: each knows where it leads.
            let next = stages.rev().fold(None, |next, stage| {
                let last = next.is_none();
                let to_stack = flow.to_stack.clone().filter(|_| last);
                Some(plan.group(stage, to_stack, next))
            });
            plan.flows.push(Way { to: first.to, out: first.forward, back: first.reverse, next });
        }
        Ok(plan)
    }

    /// The number of the group of this stage: flows that go the same way share it.
    fn group(&mut self, stage: Stage, to_stack: Option<String>, next: Option<usize>) -> usize {
        let Stage { from, to, forward: out, reverse: back, connections, stack, ip } = stage;
        let to_stack = to_stack.or_else(|| stack.clone());
        let (collector, count) = (from, connections);
        let group = Group { collector, to, out, back, stack, to_stack, ip, count, next };
        self.groups.iter().position(|known| *known == group).unwrap_or_else(|| {
            self.groups.push(group);
            self.groups.len() - 1
        })
    }

    /// The groups that the data of a flow crosses after its first stage.
    pub(crate) fn after(&self, flow: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.flows[flow].next, |&group| self.groups[group].next)
    }

    /// How many of the groups before this one leave the same collector: which of the collector's
    /// outlets it is.
    pub(crate) fn slot(&self, group: usize) -> usize {
        let collector = &self.groups[group].collector;
        self.groups[..group].iter().filter(|other| other.collector == *collector).count()
    }
}

impl Group {
    /// Name of its row in the answer.
    pub(crate) fn row_name(&self) -> String {
        upstream_name(&self.collector, &self.to)
    }
}
