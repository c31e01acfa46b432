//! Measurements at the sockets of one row of flows.

use gridhaul_core::load::{
    AcknowledgementCounters, CoapCounters, ConnectionCounters, DeadlineCounter, HandshakeTimes,
    InProgress, MessageDelays, Transfers, WaitingTimes,
};
use gridhaul_scenario::scenario::{Flow, Load, Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant};

use super::coap::CoapSockets;
use super::connection::{Connection, Observer};
use super::managed::ManagedConnections;
use super::samples::{SampleMeans, SenderCounts};
use crate::link_emulator::Lateness;
use crate::loss_classification::MemberClassification;

/// Measurements at the sockets of one row of flows.
#[derive(Debug)]
pub(crate) struct RowTraffic {
    warmup: Instant,
    pub delays: MessageDelays,
    /// The first messages one by one: member, ready time, and delay.
    pub messages: Vec<(u32, Instant, Duration)>,
    /// Messages after these.
    pub omitted_messages: u64,
    pub deadline_counter: Option<DeadlineCounter>,
    pub has_messages: bool,
    /// Lateness of the applications when they send messages.
    pub lateness: Lateness,
    /// Payload received by each member at the end of the warm-up, and at the end.
    pub before: Vec<u64>,
    pub after: Vec<u64>,
    /// Counters of the senders at these times.
    pub counts: [SenderCounts; 2],
    pub averages: SampleMeans,
    /// Classifications of losses by MEDX in order of time; `None` if MEDX is not used.
    pub classifications: Option<Vec<MemberClassification>>,
    /// Messages that became ready after the warm-up.
    pub ready: u64,
    /// When the messages were ready that another flow is to forward; `None` if none forwards them.
    pub published: Option<Vec<Instant>>,
    /// Transfers, with their completion times.
    pub transfers: Transfers,
    /// Periods in which messages of a `burst` load are in progress; `None` for other loads.
    pub in_progress: Option<InProgress>,
    /// Handshakes of the connections; `None` for datagrams.
    pub openings: Option<HandshakeTimes>,
    /// Connections that open and close during the run; `None` for other flows.
    pub connections: Option<ConnectionCounters>,
    /// Confirmable messages; `None` for flows with another transport.
    pub coap: Option<CoapCounters>,
    /// Ages of the messages that became ready after the warm-up and have not arrived, and the
    /// number of messages that were never sent: their connection failed to open, or the socket did
    /// not accept them.
    pub waiting: WaitingTimes,
    pub unsent: u64,
    /// Bytes that are acknowledged to their senders and were not delivered until the end.
    pub acknowledged_undelivered: u64,
    /// Number of connections that the kernel has aborted, and the first error.
    pub failed: u64,
    pub failure: Option<String>,
}

impl RowTraffic {
    pub(super) fn new(scenario: &Scenario, flow: &Flow) -> Self {
        let (warmup, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
        Self {
            warmup,
            delays: MessageDelays::new(),
            messages: Vec::new(),
            omitted_messages: 0,
            deadline_counter: flow
                .effective_deadline()
                .map(|deadline| DeadlineCounter::new(deadline, warmup, end)),
            has_messages: flow.transport != Transport::Tcp,
            lateness: Lateness::new(),
            before: Vec::new(),
            after: Vec::new(),
            counts: Default::default(),
            averages: SampleMeans::default(),
            classifications: None,
            ready: 0,
            published: None,
            transfers: Transfers::default(),
            in_progress: matches!(flow.load, Load::Burst(_)).then(InProgress::default),
            openings: (flow.transport == Transport::Tcp).then(HandshakeTimes::default),
            connections: flow
                .manages_connections()
                .then(|| ConnectionCounters::new(flow, warmup..end)),
            coap: flow.confirmable().map(|_| CoapCounters::new(warmup..end, flow.dtls.is_some())),
            waiting: WaitingTimes::default(),
            unsent: 0,
            acknowledged_undelivered: 0,
            failed: 0,
            failure: None,
        }
    }

    /// Counters of acknowledged messages, if the row has them.
    pub(crate) fn acknowledged(&self) -> Option<&AcknowledgementCounters> {
        self.connections.as_ref()?.messages.as_deref()
    }

    pub(super) fn finish(&mut self, connection: &Connection, end: Instant) {
        let failed = connection.has_failed_to_open();
        if failed && let Some(openings) = &mut self.openings {
            openings.on_failed();
        }
        let undelivered = self.finish_messages(connection.undelivered(), end);
        self.unsent += if failed { undelivered } else { 0 };
        if let Some(transfer) = connection.application.transfer() {
            self.transfers.add(transfer, connection.delivered(), end);
        }
        self.acknowledged_undelivered += connection.acknowledged_undelivered();
        if let Some(failure) = connection.failure() {
            self.failed += 1;
            self.failure.get_or_insert_with(|| failure.to_owned());
        }
    }

    /// A member whose connections open and close.
    pub(super) fn finish_managed(&mut self, connections: &ManagedConnections, end: Instant) {
        let failed = connections.has_failed_to_open();
        if failed && let Some(counters) = &mut self.connections {
            counters.tcp.on_failed();
        }
        let undelivered = self.finish_messages(connections.undelivered(), end);
        self.unsent += if failed { undelivered } else { 0 };
        self.failed += connections.failed;
        if let Some(failure) = &connections.failure {
            self.failure.get_or_insert_with(|| failure.clone());
        }
    }

    /// A member with confirmable messages.
    pub(super) fn finish_coap(&mut self, sockets: &CoapSockets, end: Instant) {
        self.finish_messages(sockets.undelivered(), end);
    }

    /// Calls `act` with the counters of confirmable messages, if the row has them.
    pub(super) fn count_coap(&mut self, act: impl FnOnce((&mut Self, &mut CoapCounters))) {
        if let Some(mut counters) = self.coap.take() {
            act((&mut *self, &mut counters));
            self.coap = Some(counters);
        }
    }

    /// Notes the messages that have not arrived. Returns their number.
    pub(super) fn finish_messages(
        &mut self,
        undelivered: impl Iterator<Item = Instant>,
        end: Instant,
    ) -> u64 {
        let mut count = 0;
        for ready in undelivered.filter(|ready| *ready < end) {
            self.note_in_progress(ready, end);
            if ready >= self.warmup {
                self.waiting.add(end.since(ready));
                count += 1;
            }
        }
        count
    }

    /// A message was in progress from the time when it was ready until `end`.
    fn note_in_progress(&mut self, ready: Instant, end: Instant) {
        let Some(in_progress) = &mut self.in_progress else { return };
        if ready >= self.warmup {
            in_progress.add(ready, end);
        } else if end > self.warmup {
            in_progress.carry_over(self.warmup, end);
        }
    }
}

impl Observer for RowTraffic {
    fn on_ready(&mut self, ready: Instant) {
        self.ready += u64::from(ready >= self.warmup);
        if let Some(published) = &mut self.published {
            published.push(ready);
        }
        if let Some(deadline_counter) = &mut self.deadline_counter {
            deadline_counter.on_ready(ready);
        }
    }

    fn on_delivered(&mut self, member: u32, ready: Instant, delay: Duration) {
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push((member, ready, delay));
        } else {
            self.omitted_messages += 1;
        }
        if ready >= self.warmup {
            self.delays.record(delay);
        }
        self.note_in_progress(ready, ready + delay);
        if let Some(deadline_counter) = &mut self.deadline_counter {
            deadline_counter.on_delivered(ready, delay);
        }
    }

    fn on_opened(&mut self, took: Duration) {
        if let Some(openings) = &mut self.openings {
            openings.on_opened(took);
        }
    }

    fn on_unsent(&mut self, ready: Instant) {
        self.unsent += u64::from(ready >= self.warmup);
    }

    fn on_late(&mut self, late: Duration) {
        self.lateness.record(late);
    }
}

/// Largest number of messages that are stored one by one for a time series.
const MESSAGES_MAX: usize = 100_000;
