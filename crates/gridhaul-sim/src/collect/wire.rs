//! Building the collectors and the connections that lead on from them.

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_core::pep::aggregation::{SegmentAggregator, window_share};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{Aggregator, FullBufferPolicy, Scenario, assigned_member};
use gridhaul_scenario::units::Duration;

use super::{Collectors, Group, Machine, NO_OUTLET, Outlet, Plan, sizes};
use crate::audit::CollectorAudit;
use crate::stacks::Stacks;

/// Where the collectors and outlets of a plan have their places.
#[derive(Debug)]
pub(crate) struct Wiring<'a> {
    scenario: &'a Scenario,
    plan: &'a Plan,
    /// For each group, the number of its first outlet and of its collector's first member.
    outlet: Vec<u64>,
    machine: Vec<u64>,
    outlets: u64,
    machines: u64,
    /// Connections that end at each collector, counted where one of them closes windows.
    members: Vec<u32>,
}

impl<'a> Wiring<'a> {
    pub(crate) fn new(scenario: &'a Scenario, plan: &'a Plan) -> Self {
        let mut wiring = Self {
            scenario,
            plan,
            outlet: Vec::new(),
            machine: Vec::new(),
            outlets: 0,
            machines: 0,
            members: Vec::new(),
        };
        for (index, group) in plan.groups.iter().enumerate() {
            wiring.outlet.push(wiring.outlets);
            wiring.outlets += group.count;
            let known = plan.groups[..index].iter().position(|g| g.collector == group.collector);
            let first = known.map_or(wiring.machines, |known| wiring.machine[known]);
            wiring.machine.push(first);
            wiring.machines = wiring.machines.max(first + group.count);
        }
        wiring.count_members();
        wiring
    }

    /// The outlet into which a member of so many delivers, if the group takes that on.
    pub(crate) fn outlet_for(&self, next: Option<usize>, member: u64, of: u64) -> u32 {
        next.map_or(NO_OUTLET, |group| {
            let count = self.plan.groups[group].count;
            (self.outlet[group] + assigned_member(member, of, count)) as u32
        })
    }

    /// Prepares the stacks of a connection from one member of so many to a collector. Where the
    /// collector waits instead of dropping, its window is a share of the buffer; returns whether.
    pub(crate) fn receive(
        &self,
        stacks: &mut Stacks,
        next: Option<usize>,
        (member, of): (u64, u64),
        sizes: impl Fn() -> (u64, u64),
    ) -> bool {
        let Some(next) = next else { return false };
        let group = &self.plan.groups[next];
        let keys = self.keys(group);
        if keys.when_full != FullBufferPolicy::Backpressure {
            return false;
        }
        let machine = self.machine[next] + assigned_member(member, of, group.count);
        let members = u64::from(self.members[machine as usize]);
        let share = window_share(keys.buffer, members, sizes());
        let receive_window = u64::from(stacks.0.receive_window).min(share) as u32;
        if stacks.1.receive_window != receive_window {
            stacks.1 = Arc::new(StackParams { receive_window, ..(*stacks.0).clone() });
        }
        true
    }

    /// Smallest and largest message of a flow.
    pub(crate) fn sizes(&self, flow: usize) -> (u64, u64) {
        let flow = &self.scenario.flow[flow];
        let params = StackParams::named(self.scenario, flow.stack.as_ref(), flow.ip);
        sizes(&flow.load, params.mss)
    }

    /// Smallest and largest message that a group carries.
    pub(crate) fn carried(&self, group: usize) -> (u64, u64) {
        let flows = 0..self.plan.flows.len();
        let carried = flows.filter(|&flow| self.plan.after(flow).any(|other| other == group));
        carried.map(|flow| self.sizes(flow)).fold((u64::MAX, 0), |(smallest, largest), sizes| {
            (smallest.min(sizes.0), largest.max(sizes.1))
        })
    }

    /// The collectors, for flows of which the upstream connections begin at `first`.
    pub(crate) fn build(&self, into: Vec<u32>, first: u32) -> Collectors {
        if self.plan.groups.is_empty() {
            return Collectors::default();
        }
        let mut outlets = Vec::with_capacity(self.outlets as usize);
        let mut machines: Vec<Option<Machine>> = Vec::new();
        machines.resize_with(self.machines as usize, || None);
        for (index, group) in self.plan.groups.iter().enumerate() {
            let slots = self.plan.groups.iter().filter(|g| g.collector == group.collector).count();
            let slot = self.plan.slot(index) as u32;
            for member in 0..group.count {
                let machine = self.machine[index] + member;
                machines[machine as usize].get_or_insert_with(|| self.machine(group, slots));
                let machine = machine as u32;
                outlets.push(Outlet { machine, slot, parcels: VecDeque::new(), delivered: 0 });
            }
        }
        Collectors { into, first, outlets, machines: machines.into_iter().flatten().collect() }
    }

    fn machine(&self, group: &Group, slots: usize) -> Machine {
        let keys = self.keys(group);
        Machine {
            aggregate: SegmentAggregator::new(keys.buffer, slots),
            audit: CollectorAudit::new(keys.buffer, slots),
            waits: keys.when_full == FullBufferPolicy::Backpressure,
        }
    }

    /// Over which time the upstream connections of a group open, where that is given.
    pub(crate) fn start_spread(&self, group: &Group) -> Option<Duration> {
        self.keys(group).start_spread
    }

    fn keys(&self, group: &Group) -> &'a Aggregator {
        let node = &self.scenario.node[&group.collector];
        node.aggregator.as_ref().expect("stages are cut at nodes that aggregate")
    }

    fn count_members(&mut self) {
        if !self
            .plan
            .groups
            .iter()
            .any(|group| self.keys(group).when_full == FullBufferPolicy::Backpressure)
        {
            return;
        }
        self.members = vec![0; self.machines as usize];
        let flows = self.scenario.flow.values().zip(&self.plan.flows);
        let own = flows.map(|(flow, way)| {
            let group = self.scenario.members(&flow.from, &flow.to).map_or(1, u64::from);
            (way.next, group, flow.count)
        });
        let upstream = self.plan.groups.iter().map(|group| (group.next, group.count, 1));
        for (next, of, each) in own.chain(upstream) {
            let Some(next) = next else { continue };
            for member in 0..of {
                let machine =
                    self.machine[next] + assigned_member(member, of, self.plan.groups[next].count);
                self.members[machine as usize] += each;
            }
        }
    }
}
