//! Classification of packets.

use std::ops::Range;

use gridhaul_scenario::scenario::{Dscp, Flow, Scenario, Scheduler};

use crate::link::LinkPayload;

/// Assigns packets to classes: by their flow, if a class names it; otherwise by the code point in
/// the packet or, if the packet has none, by that of the flow.
#[derive(Debug, Clone)]
pub(super) struct Classifier {
    /// Flows of the scenario, in the order of their ranges.
    flows: Vec<ClassifiedFlow>,
    of_code_point: [u8; Dscp::COUNT],
}

/// The packets of one flow of the scenario.
#[derive(Debug, Clone)]
struct ClassifiedFlow {
    /// The [`LinkPayload::flow`] of the packets.
    range: Range<u64>,
    class: u8,
    /// Whether a class names the flow: the code point of a packet does not matter.
    is_named: bool,
}

impl Classifier {
    /// A classifier that knows no flow.
    pub(super) fn new(keys: &Scheduler) -> Self {
        let mut of_code_point = [0; Dscp::COUNT];
        for (class, number) in of_code_point.iter_mut().zip(0..) {
            *class = Dscp::new(number).map_or(0, |dscp| keys.class_of_code_point(dscp) as u8);
        }
        Self { flows: Vec::new(), of_code_point }
    }

    /// Adds the flows of a scenario; `range` returns the [`LinkPayload::flow`] of the packets of a
    /// flow by its number. Ranges are in the order of the flows.
    pub(super) fn add_flows(
        &mut self,
        keys: &Scheduler,
        scenario: &Scenario,
        range: impl Fn(usize) -> Range<u64>,
    ) {
        let flow = |(number, (name, flow)): (usize, (&String, &Flow))| {
            let named = keys.class_that_names(name);
            let class = named.unwrap_or_else(|| keys.class_of_code_point(flow.dscp)) as u8;
            ClassifiedFlow { range: range(number), class, is_named: named.is_some() }
        };
        self.flows = scenario.flow.iter().enumerate().map(flow).collect();
    }

    /// Number of the class of a packet.
    pub(super) fn class_of(&self, packet: &impl LinkPayload) -> usize {
        let number = packet.flow();
        let after = self.flows.partition_point(|flow| flow.range.start <= number);
        let flow = self.flows[..after].last().filter(|flow| flow.range.contains(&number));
        let code_point = packet.code_point();
        let class = match (flow, code_point) {
            (Some(flow), None) => flow.class,
            (Some(flow), Some(_)) if flow.is_named => flow.class,
            (_, code_point) => {
                self.of_code_point[usize::from(code_point.unwrap_or_default().number())]
            }
        };
        usize::from(class)
    }
}
