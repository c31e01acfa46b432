//! The counters of a run, from which `metrics/` computes metrics.

use std::ops::Range;

use gridhaul_core::link::{LossCause, PathCounters};
use gridhaul_core::load::{CoapCounters, DeadlineCounter, InProgress, MessageDelays};
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::{Duration, Instant};

use crate::duplicates::Duplicates;
use crate::flow::Flow;
use crate::handshakes::Handshakes;
use crate::loss_cause::LossCauses;
use crate::managed_flow::RowConnections;
use crate::member_counters::MemberCounters;
use crate::outage_ends::OutageEnds;
use crate::packet::Packet;
use crate::row_counters::RowCounters;
use crate::subscriptions::Subscription;

/// The counters of a run.
#[derive(Debug, Clone)]
pub(crate) struct RunCounters {
    /// Message delays of each row of flows.
    pub delays: Vec<MessageDelays>,
    /// Counters of each row of flows.
    pub rows: Vec<RowCounters>,
    /// Delay and loss of the data packets of each row of flows on their stage.
    pub path_counters: Vec<PathCounters>,
    /// Payload of each flow that was not delivered by the connection of the flow: datagrams, and
    /// payload that aggregators have forwarded. Empty in runs without either.
    pub indirect_payload: Vec<u64>,
    /// Periods in which messages of each row of `burst` loads are in progress; `None` for other
    /// rows.
    pub in_progress: Vec<Option<InProgress>>,
    /// Deadline checks of the messages of each row of flows that has a deadline.
    pub deadline_checks: Vec<Option<DeadlineCounter>>,
    /// Arrived and lost datagrams, in runs with links that duplicate packets.
    pub duplicates: Option<Duplicates>,
    /// How senders classify losses, compared with the ground truth.
    pub loss_causes: LossCauses,
    pub handshakes: Handshakes,
    /// Connections of the rows whose flows open and close them; `None` for other rows.
    pub connections: Vec<Option<Box<RowConnections>>>,
    /// Confirmable messages of each row; `None` for rows with another transport.
    pub coap: Vec<Option<Box<CoapCounters>>>,
    /// Flows that forward messages of others.
    pub subscriptions: Vec<Subscription>,
    pub members: MemberCounters,
    /// Timers that expired close to the end of an outage.
    pub outage_ends: OutageEnds,
    /// The measurement interval: from the end of the warm-up to the end of the run.
    pub measured: Range<Instant>,
}

/// A message that has arrived completely.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ArrivedMessage {
    pub row: u32,
    pub flow: u32,
    /// When it was ready.
    pub ready: Instant,
    /// Whether its content was altered on the way.
    pub is_altered: bool,
}

impl RunCounters {
    /// `deadline_checks` has an entry for each row, `None` for a row without a deadline.
    /// `indirect_payload` has a zero for each flow, or is empty.
    pub(crate) fn new(
        deadline_checks: Vec<Option<DeadlineCounter>>,
        indirect_payload: Vec<u64>,
        loss_causes: LossCauses,
        measured: Range<Instant>,
    ) -> Self {
        let rows = deadline_checks.len();
        Self {
            delays: (0..rows).map(|_| MessageDelays::new()).collect(),
            rows: vec![RowCounters::default(); rows],
            path_counters: vec![PathCounters::default(); rows],
            indirect_payload,
            in_progress: vec![None; rows],
            deadline_checks,
            duplicates: None,
            loss_causes,
            handshakes: Handshakes::new(rows),
            connections: vec![None; rows],
            coap: vec![None; rows],
            subscriptions: Vec::new(),
            members: MemberCounters::default(),
            outage_ends: OutageEnds::default(),
            measured,
        }
    }

    /// Counts the handshakes that have failed at the end of the run.
    pub(crate) fn finish_handshakes(&mut self, flows: &[Flow]) {
        self.handshakes.finish(flows);
        if self.connections.iter().all(Option::is_none) {
            return;
        }
        for flow in flows.iter().filter(|flow| flow.has_failed_to_open()) {
            if let Some(connections) = &mut self.connections[flow.row as usize] {
                connections.counters.tcp.on_failed();
            }
        }
    }

    /// A segment in a packet has reached an end of a flow of this row; data is counted that the
    /// `from` end has sent.
    #[inline(always)]
    pub(crate) fn on_segment_arrived(
        &mut self,
        now: Instant,
        row: u32,
        packet: &Packet,
        segment: &Segment,
    ) {
        if segment.len > 0 && !packet.is_reverse() {
            self.path_counters[row as usize].on_arrived(now.since(packet.sent));
        }
    }

    /// A data segment of a flow is lost for this cause.
    #[inline]
    pub(crate) fn on_segment_lost(
        &mut self,
        row: u32,
        flow: u32,
        segment: &Segment,
        cause: LossCause,
    ) {
        self.path_counters[row as usize].lost += 1;
        self.loss_causes.on_lost(flow, segment, cause);
    }

    /// A datagram with a message that was ready at this time is lost.
    pub(crate) fn on_datagram_lost(&mut self, row: u32, number: u32, ready: Instant) {
        let duplicates = self.duplicates.as_mut();
        let is_new = duplicates.is_none_or(|duplicates| duplicates.on_lost(row, number));
        let counts = is_new && self.measured.contains(&ready);
        self.rows[row as usize].datagrams_lost += u64::from(counts);
    }

    /// Whether a datagram that was lost is still missing: another copy may have arrived since.
    pub(crate) fn is_missing(&self, row: u32, number: u32) -> bool {
        self.duplicates.as_ref().is_none_or(|duplicates| duplicates.is_lost(row, number))
    }

    /// A datagram has arrived, with a message that was ready at this time. Returns whether it is
    /// the first copy. A message of which a copy has arrived no longer counts as lost.
    pub(crate) fn is_first_copy(&mut self, row: u32, number: u32, ready: Instant) -> bool {
        let Some(duplicates) = &mut self.duplicates else { return true };
        let counted = duplicates.is_lost(row, number) && self.measured.contains(&ready);
        self.rows[row as usize].datagrams_lost -= u64::from(counted);
        duplicates.on_arrived(row, number)
    }

    /// A message of a flow of this row is ready.
    #[inline]
    pub(crate) fn on_ready(&mut self, row: u32, flow: u32, ready: Instant) {
        if self.measured.contains(&ready) {
            self.rows[row as usize].due += 1;
            self.members.on_due(flow);
        }
        if let Some(check) = &mut self.deadline_checks[row as usize] {
            check.on_ready(ready);
        }
    }

    /// A message of a flow of this row is ready, for this flow and for those that forward it.
    pub(crate) fn on_published(&mut self, row: u32, flow: u32, ready: Instant) {
        self.on_ready(row, flow, ready);
        for index in 0..self.subscriptions.len() {
            let subscription = self.subscriptions[index];
            if subscription.publications == row {
                self.on_ready(subscription.row, subscription.flow, ready);
            }
        }
    }

    /// The row whose messages the flow of this row forwards.
    pub(crate) fn publications_of(&self, row: usize) -> Option<usize> {
        let own = self.subscriptions.iter().find(|own| own.row as usize == row)?;
        Some(own.publications as usize)
    }

    /// A message has arrived completely.
    pub(crate) fn on_delivered(&mut self, message: &ArrivedMessage, delay: Duration) {
        let ArrivedMessage { row, flow, ready, is_altered } = *message;
        let (start, end) = (self.measured.start, ready + delay);
        if ready >= start {
            self.rows[row as usize].altered += u64::from(is_altered);
            self.delays[row as usize].record(delay);
            self.members.on_delivered(flow, delay);
        }
        if let Some(in_progress) = &mut self.in_progress[row as usize] {
            if ready >= start {
                in_progress.add(ready, end);
            } else if end > start {
                in_progress.carry_over(start, end);
            }
        }
        if let Some(check) = &mut self.deadline_checks[row as usize] {
            check.on_delivered(ready, delay);
        }
    }
}
