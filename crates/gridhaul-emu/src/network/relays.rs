//! Aggregators of a scenario: the connections of their flows end at the aggregator, and further
//! connections lead to the node of the server.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Scenario, Stage, Transport, upstream_name};

use super::address::AddressFamily;
use super::flow_layout::FlowLayout;

/// The aggregators that a flow passes: equal relay daemons at one node.
#[derive(Debug, Clone)]
pub(crate) struct RelayLayout {
    /// Index of the flow, and of the layout of the upstream connections.
    pub flow: usize,
    pub upstream: usize,
    /// Name of the row of the upstream connections in the answer.
    pub row: String,
    /// Name of the node.
    pub node: String,
}

/// Divides the flows that pass an aggregator into stages, and appends a layout for each second
/// stage.
pub(super) fn add_relays(
    scenario: &Scenario,
    flows: &mut Vec<FlowLayout>,
) -> Result<Vec<RelayLayout>, RunError> {
    let mut relays = Vec::new();
    for (flow, name) in scenario.flow.keys().enumerate() {
        let stages =
            scenario.stages(name).map_err(|problem| RunError::Invalid(problem.to_string()))?;
        let [first, second] = &stages[..] else { continue };
        let node = |name: &str| {
            scenario.node.get_index_of(name).expect("a stage is between nodes of the scenario")
        };
        let upstream = flows.len();
        let layout = &mut flows[flow];
        layout.paths = [first.forward.clone(), first.reverse.clone()];
        layout.ends[1] = node(&first.to);
        layout.aggregators = second.connections as u32;
        layout.limits_window = true;
        let server = layout.server;
        let to_stack = scenario.flow[flow].to_stack.as_ref();
        flows.push(upstream_layout(scenario, second, to_stack, [node(&first.to), server]));
        let row = upstream_name(&second.from, &second.to);
        relays.push(RelayLayout { flow, upstream, row, node: second.from.clone() });
    }
    Ok(relays)
}

fn upstream_layout(
    scenario: &Scenario,
    stage: &Stage,
    to_stack: Option<&String>,
    ends: [usize; 2],
) -> FlowLayout {
    let names = [stage.stack.as_ref(), to_stack.or(stage.stack.as_ref())];
    FlowLayout {
        idle: None,
        count: stage.connections as u32,
        group: stage.connections,
        family: AddressFamily::of(stage.ip),
        transport: Transport::Tcp,
        ends,
        server: ends[1],
        traffic_class: 0,
        aggregators: 0,
        limits_window: true,
        stacks: names.map(|name| StackParams::named(scenario, name, stage.ip)),
        paths: [stage.forward.clone(), stage.reverse.clone()],
        chosen: [false; 2],
        // The sockets are those of the relay daemons.
        for_external_programs: true,
        controls: [None, None],
    }
}

impl FlowLayout {
    /// Index of the aggregator of a member: of n members, member i is assigned to aggregator
    /// ⌊i·k/n⌋ of k.
    pub(crate) fn aggregator_of(&self, member: u32) -> u32 {
        let (member, group) = (u64::from(member) % self.group, self.group);
        (member * u64::from(self.aggregators) / group) as u32
    }
}
