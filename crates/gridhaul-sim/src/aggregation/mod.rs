//! Aggregators in a run: the connections that end at them, and their upstream connections.
//!
//! `topology.rs` derives the groups of upstream connections from the scenario, `wiring.rs` builds
//! the aggregators, `events.rs` handles segments, `results.rs` computes metrics, and
//! `unsupported.rs` lists the flows that cannot be aggregated. Admission and forwarding follow
//! [`gridhaul_core::pep::aggregation`]; this module adds the flow and the time of each message,
//! which a simulation records.

mod events;
mod results;
mod topology;
mod unsupported;
mod wiring;

use std::collections::VecDeque;

use gridhaul_core::pep::aggregation::{MessageSizes, SegmentAggregator};
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::scenario::Load;

use crate::audit::AggregatorAudit;
use crate::end_id::EndId;
use crate::flow::Flow;
use crate::waiting_message::WaitingMessage;

pub(crate) use events::Context;
pub(crate) use results::BufferIntegrals;
use topology::Group;
pub(crate) use topology::{FirstStage, Topology};
pub(crate) use unsupported::unsupported;
pub(crate) use wiring::{GroupMember, Wiring};

/// The aggregators of a run. All lists are empty in a run without aggregators.
#[derive(Debug, Clone, Default)]
pub(crate) struct Aggregators {
    /// For each flow, the index of the upstream connection that forwards its data, or
    /// [`NO_UPSTREAM`].
    pub forwarded_by: Vec<u32>,
    /// Number of the flow of the first upstream connection. Upstream connection i is flow
    /// `first_flow + i`.
    pub first_flow: u32,
    pub connections: Vec<UpstreamConnection>,
    pub nodes: Vec<AggregatorNode>,
}

/// Marks flows whose data no aggregator forwards.
pub(crate) const NO_UPSTREAM: u32 = u32::MAX;

/// One aggregator.
#[derive(Debug, Clone)]
pub(crate) struct AggregatorNode {
    pub aggregator: SegmentAggregator,
    pub audit: AggregatorAudit,
    /// Whether a full buffer closes receive windows instead of dropping segments.
    pub backpressure: bool,
}

/// The messages of one upstream connection.
#[derive(Debug, Clone)]
pub(crate) struct UpstreamConnection {
    /// The aggregator, and the index of the connection at this aggregator.
    pub node: u32,
    pub slot: u32,
    /// Messages that the receiver does not yet have completely, in order.
    pub messages: VecDeque<WaitingMessage>,
    /// End of the last message that the receiver has completely, as a position in the stream.
    pub delivered: u64,
}

/// State of an upstream connection at its aggregator that its events show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AggregatorSnapshot {
    /// Complete messages that were not sent yet.
    pub waiting: u64,
    /// Payload that is acknowledged to the senders and not by the next hop.
    pub at_risk: u64,
}

impl Aggregators {
    /// State of the upstream connection with this index.
    pub(crate) fn snapshot(&self, index: u32) -> AggregatorSnapshot {
        let connection = &self.connections[index as usize];
        let aggregator = &self.nodes[connection.node as usize].aggregator;
        let slot = connection.slot as usize;
        AggregatorSnapshot {
            waiting: aggregator.waiting(slot).value(),
            at_risk: aggregator.bytes_at_risk(slot).value(),
        }
    }

    /// Whether there is an aggregator.
    pub(crate) const fn is_active(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Index of the upstream connection that forwards the data of a flow.
    #[inline]
    pub(crate) fn upstream_after(&self, flow: u32) -> Option<u32> {
        self.forwarded_by.get(flow as usize).copied().filter(|&index| index != NO_UPSTREAM)
    }

    /// Whether the connection of a flow failed to open, or an upstream connection that would
    /// forward its data.
    pub(crate) fn has_failed_to_open(&self, flows: &[Flow], flow: u32) -> bool {
        let upstream = |&flow: &u32| Some(self.first_flow + self.upstream_after(flow)?);
        std::iter::successors(Some(flow), upstream)
            .any(|flow| flows[flow as usize].has_failed_to_open())
    }

    /// Whether a segment to this end carries data that an aggregator must admit.
    #[inline]
    pub(crate) fn receives(&self, to: EndId, segment: &Segment) -> bool {
        !self.forwarded_by.is_empty()
            && segment.len > 0
            && !to.is_from()
            && self.forwarded_by[to.flow() as usize] != NO_UPSTREAM
    }

    /// Whether this end is the sending end of an upstream connection.
    #[inline]
    pub(crate) fn sends_from(&self, end: EndId) -> bool {
        !self.connections.is_empty() && end.flow() >= self.first_flow && end.is_from()
    }

    /// Index of the upstream connection that is this flow.
    #[inline]
    pub(crate) fn upstream_index(&self, flow: u32) -> Option<usize> {
        let index = flow.checked_sub(self.first_flow)? as usize;
        (index < self.connections.len()).then_some(index)
    }
}

/// Sizes of the messages of a load. A byte stream is divided into chunks of one segment.
fn sizes(load: &Load, mss: u32) -> MessageSizes {
    let size = match &*load.plain() {
        Load::Periodic(load) => load.size.get(),
        Load::Poisson(load) => load.size.get(),
        Load::OnOff(load) => load.size.get(),
        Load::Burst(load) => load.size.get(),
        // Unknown before the message is sent, or of loads with answers, and never used: see
        // `unsupported.rs`.
        Load::Trace(_)
        | Load::External
        | Load::RequestResponse(_)
        | Load::Exchange(_)
        | Load::Modbus(_)
        | Load::Dlms(_)
        | Load::Iec104(_)
        | Load::Mqtt(_)
        | Load::MqttSubscription(_) => 1,
        Load::Bulk | Load::Transfer(_) | Load::Application(_) => u64::from(mss),
    };
    MessageSizes { min: size, max: size }
}
