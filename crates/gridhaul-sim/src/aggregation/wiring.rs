//! Builds the aggregators of a run and assigns upstream connections to them.

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_core::pep::aggregation::{MessageSizes, SegmentAggregator, window_share};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{Aggregator, FullBufferPolicy, Scenario, assigned_member};
use gridhaul_scenario::units::Duration;

use super::{AggregatorNode, Aggregators, Group, NO_UPSTREAM, Topology, UpstreamConnection, sizes};
use crate::audit::AggregatorAudit;
use crate::stacks::Stacks;

/// A member of a group of connections.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupMember {
    pub number: u64,
    /// Number of members of the group.
    pub of: u64,
}

/// Indices of the aggregators and upstream connections of a topology.
#[derive(Debug)]
pub(crate) struct Wiring<'a> {
    scenario: &'a Scenario,
    topology: &'a Topology,
    /// For each group, the index of its first upstream connection and of its first aggregator.
    first_connection: Vec<u64>,
    first_node: Vec<u64>,
    connections: u64,
    nodes: u64,
    /// Number of connections that end at each aggregator; empty without backpressure.
    members: Vec<u32>,
}

impl<'a> Wiring<'a> {
    pub(crate) fn new(scenario: &'a Scenario, topology: &'a Topology) -> Self {
        let mut wiring = Self {
            scenario,
            topology,
            first_connection: Vec::new(),
            first_node: Vec::new(),
            connections: 0,
            nodes: 0,
            members: Vec::new(),
        };
        for (index, group) in topology.groups.iter().enumerate() {
            wiring.first_connection.push(wiring.connections);
            wiring.connections += group.count;
            // Groups that begin at the same aggregator, because its data has several destinations,
            // share its nodes: each node has one connection of each group.
            let known =
                topology.groups[..index].iter().position(|g| g.aggregator == group.aggregator);
            let first = known.map_or(wiring.nodes, |known| wiring.first_node[known]);
            wiring.first_node.push(first);
            wiring.nodes = wiring.nodes.max(first + group.count);
        }
        wiring.count_members();
        wiring
    }

    /// Index of the upstream connection that forwards the data of one of `of` members.
    pub(crate) fn upstream_for(&self, next: Option<usize>, member: u64, of: u64) -> u32 {
        next.map_or(NO_UPSTREAM, |group| {
            let count = self.topology.groups[group].count;
            (self.first_connection[group] + assigned_member(member, of, count)) as u32
        })
    }

    /// Prepares the stacks of a connection from a member of a group to an aggregator. With
    /// backpressure the receive window is a share of the buffer. Returns whether the aggregator
    /// applies backpressure.
    pub(crate) fn receive(
        &self,
        stacks: &mut Stacks,
        next: Option<usize>,
        member: GroupMember,
        sizes: impl Fn() -> MessageSizes,
    ) -> bool {
        let Some(next) = next else { return false };
        let group = &self.topology.groups[next];
        let keys = self.keys(group);
        if keys.when_full != FullBufferPolicy::Backpressure {
            return false;
        }
        let node = self.first_node[next] + assigned_member(member.number, member.of, group.count);
        let members = u64::from(self.members[node as usize]);
        // All members may send at once, so that together their windows must fit into the buffer.
        let share = window_share(keys.buffer, members, sizes());
        let receive_window = u64::from(stacks.0.receive_window).min(share) as u32;
        if stacks.1.receive_window != receive_window {
            stacks.1 = Arc::new(StackParams { receive_window, ..(*stacks.0).clone() });
        }
        true
    }

    /// Sizes of the messages of a flow.
    pub(crate) fn sizes(&self, flow: usize) -> MessageSizes {
        let flow = &self.scenario.flow[flow];
        let params = StackParams::named(self.scenario, flow.stack.as_ref(), flow.ip);
        sizes(&flow.load, params.mss)
    }

    /// Sizes of the messages that a group carries.
    pub(crate) fn carried(&self, group: usize) -> MessageSizes {
        let flows = 0..self.topology.flows.len();
        let carried = flows.filter(|&flow| self.topology.after(flow).any(|other| other == group));
        // Neutral for minimum and maximum.
        let none = MessageSizes { min: u64::MAX, max: 0 };
        carried.map(|flow| self.sizes(flow)).fold(none, |all, sizes| MessageSizes {
            min: all.min.min(sizes.min),
            max: all.max.max(sizes.max),
        })
    }

    /// The aggregators of a run. `forwarded_by` has an upstream connection for each flow, and
    /// `first_flow` is the flow of the first upstream connection.
    pub(crate) fn build(&self, forwarded_by: Vec<u32>, first_flow: u32) -> Aggregators {
        if self.topology.groups.is_empty() {
            return Aggregators::default();
        }
        let mut connections = Vec::with_capacity(self.connections as usize);
        let mut nodes: Vec<Option<AggregatorNode>> = Vec::new();
        nodes.resize_with(self.nodes as usize, || None);
        for (index, group) in self.topology.groups.iter().enumerate() {
            let slots =
                self.topology.groups.iter().filter(|g| g.aggregator == group.aggregator).count();
            let slot = self.topology.slot(index) as u32;
            for member in 0..group.count {
                let node = self.first_node[index] + member;
                nodes[node as usize].get_or_insert_with(|| self.build_node(group, slots));
                let node = node as u32;
                connections.push(UpstreamConnection {
                    node,
                    slot,
                    messages: VecDeque::new(),
                    delivered: 0,
                });
            }
        }
        let nodes = nodes.into_iter().flatten().collect();
        Aggregators { forwarded_by, first_flow, connections, nodes }
    }

    fn build_node(&self, group: &Group, slots: usize) -> AggregatorNode {
        let keys = self.keys(group);
        AggregatorNode {
            aggregator: SegmentAggregator::new(keys.buffer, slots),
            audit: AggregatorAudit::new(keys.buffer, slots),
            backpressure: keys.when_full == FullBufferPolicy::Backpressure,
        }
    }

    /// Time over which the upstream connections of a group open, if the scenario has one.
    pub(crate) fn start_spread(&self, group: &Group) -> Option<Duration> {
        self.keys(group).start_spread
    }

    fn keys(&self, group: &Group) -> &'a Aggregator {
        let node = &self.scenario.node[&group.aggregator];
        node.aggregator.as_ref().expect("stages are cut at aggregators")
    }

    fn count_members(&mut self) {
        if !self
            .topology
            .groups
            .iter()
            .any(|group| self.keys(group).when_full == FullBufferPolicy::Backpressure)
        {
            return;
        }
        self.members = vec![0; self.nodes as usize];
        let flows = self.scenario.flow.values().zip(&self.topology.flows);
        let own = flows.map(|(flow, stage)| {
            let group = self.scenario.members(&flow.from, &flow.to).map_or(1, u64::from);
            (stage.next, group, flow.count)
        });
        let upstream = self.topology.groups.iter().map(|group| (group.next, group.count, 1));
        // An aggregator may end connections of flows and upstream connections of other aggregators.
        for (next, members, connections) in own.chain(upstream) {
            let Some(next) = next else { continue };
            for member in 0..members {
                let node = self.first_node[next]
                    + assigned_member(member, members, self.topology.groups[next].count);
                self.members[node as usize] += connections;
            }
        }
    }
}
