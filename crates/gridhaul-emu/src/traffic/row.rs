//! What the traffic of one row has shown at the sockets.

use gridhaul_core::load::{DeadlineCounter, HandshakeTimes, MessageDelays, Transfers};
use gridhaul_scenario::scenario::{Flow, Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant};

use super::connection::{Connection, Observer};
use super::samples::{Averages, SenderCounts};
use crate::truth::Judgement;
use crate::wire::Lateness;

/// What the traffic of one row has shown.
#[derive(Debug)]
pub(crate) struct RowTraffic {
    warmup: Instant,
    pub delays: MessageDelays,
    /// The first of them one by one: when the message was ready, and its delay.
    pub messages: Vec<(u32, Instant, Duration)>,
    pub judge: Option<DeadlineCounter>,
    pub has_messages: bool,
    /// How late applications handed over their messages.
    pub lateness: Lateness,
    /// Payload received by each member at the end of the warm-up, and at the end.
    pub before: Vec<u64>,
    pub after: Vec<u64>,
    /// Counters of the senders at these times.
    pub counts: [SenderCounts; 2],
    pub averages: Averages,
    /// What MEDX said of losses, in the order of time; nothing where it is not used.
    pub judgements: Option<Vec<Judgement>>,
    /// Messages that were ready in the measured time.
    pub ready: u64,
    /// Those that are complete.
    pub transfers: Transfers,
    /// How connections opened; nothing for datagrams.
    pub openings: Option<HandshakeTimes>,
    /// How long messages have waited that were ready in the measured time and have not arrived, and how
    /// many of them were never sent: their connection failed to open, or the socket did not take them.
    pub waiting: Vec<Duration>,
    pub unsent: u64,
    /// Connections that the kernel gave up, and why the first was.
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
            judge: flow
                .effective_deadline()
                .map(|deadline| DeadlineCounter::new(deadline, warmup, end)),
            has_messages: flow.transport != Transport::Tcp,
            lateness: Lateness::new(),
            before: Vec::new(),
            after: Vec::new(),
            counts: Default::default(),
            averages: Averages::default(),
            judgements: None,
            ready: 0,
            transfers: Transfers::default(),
            openings: (flow.transport == Transport::Tcp).then(HandshakeTimes::default),
            waiting: Vec::new(),
            unsent: 0,
            failed: 0,
            failure: None,
        }
    }

    pub(super) fn finish(&mut self, connection: &Connection, end: Instant) {
        let failed = connection.has_failed_to_open();
        if failed && let Some(openings) = &mut self.openings {
            openings.on_failed();
        }
        let measured = self.warmup..end;
        for ready in connection.undelivered().filter(|ready| measured.contains(ready)) {
            self.waiting.push(end.since(ready));
            self.unsent += u64::from(failed);
        }
        if let Some(transfer) = connection.application.transfer() {
            self.transfers.add(transfer, connection.delivered(), end);
        }
        if let Some(failure) = connection.failure() {
            self.failed += 1;
            self.failure.get_or_insert_with(|| failure.to_owned());
        }
    }
}

impl Observer for RowTraffic {
    fn on_ready(&mut self, ready: Instant) {
        self.ready += u64::from(ready >= self.warmup);
        if let Some(judge) = &mut self.judge {
            judge.on_ready(ready);
        }
    }

    fn on_delivered(&mut self, member: u32, ready: Instant, delay: Duration) {
        if self.messages.len() < MESSAGES_MAX {
            self.messages.push((member, ready, delay));
        }
        if ready >= self.warmup {
            self.delays.record(delay);
        }
        if let Some(judge) = &mut self.judge {
            judge.on_delivered(ready, delay);
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

/// Messages that are kept one by one, in case a series is asked for.
const MESSAGES_MAX: usize = 100_000;
