//! What is counted during a run; `measure.rs` turns the counters into metrics.

use std::ops::Range;

use gridhaul_core::link::{LossCause, PathCounters};
use gridhaul_core::load::{DeadlineCounter, MessageDelays};
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::{Duration, Instant};

use crate::account::RowAccount;
use crate::copies::Copies;
use crate::opening::Handshakes;
use crate::truth::Truth;

/// The counters of a run.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Message delays of each row of flows.
    pub delays: Vec<MessageDelays>,
    /// The account of each row of flows.
    pub accounts: Vec<RowAccount>,
    /// How the data packets of each row of flows cross its stage.
    pub crossings: Vec<PathCounters>,
    /// Payload of each flow that was delivered apart from its own connection: datagrams, and what
    /// aggregators have forwarded. Empty where there are neither.
    pub apart: Vec<u64>,
    /// Deadline checks of the messages of each row of flows that has a deadline.
    pub judges: Vec<Option<DeadlineCounter>>,
    /// Which datagrams have arrived and are lost, where links make copies of packets.
    pub copies: Option<Copies>,
    /// How senders classify losses, beside the ground truth.
    pub truth: Truth,
    pub handshakes: Handshakes,
    /// The measured time: from the end of the warm-up to the end of the run.
    pub measured: Range<Instant>,
}

impl Ledger {
    /// One row for each of the judges: `None` where there is no deadline. `apart` has a zero for
    /// each flow, if some of their payload will arrive apart from connections.
    pub(crate) fn new(
        judges: Vec<Option<DeadlineCounter>>,
        apart: Vec<u64>,
        truth: Truth,
        measured: Range<Instant>,
    ) -> Self {
        let rows = judges.len();
        Self {
            delays: (0..rows).map(|_| MessageDelays::new()).collect(),
            accounts: vec![RowAccount::default(); rows],
            crossings: vec![PathCounters::default(); rows],
            apart,
            judges,
            copies: None,
            truth,
            handshakes: Handshakes::new(rows),
            measured,
        }
    }

    /// A data segment of a flow is lost, and why.
    #[inline]
    pub(crate) fn on_segment_lost(
        &mut self,
        row: u32,
        flow: u32,
        segment: &Segment,
        cause: LossCause,
    ) {
        self.crossings[row as usize].lost += 1;
        self.truth.on_lost(flow, segment, cause);
    }

    /// A datagram is lost.
    pub(crate) fn on_datagram_lost(&mut self, row: u32, number: u32) {
        let account = &mut self.accounts[row as usize];
        match &mut self.copies {
            Some(copies) => copies.on_lost(row, number, account),
            None => account.datagrams_lost += 1,
        }
    }

    /// A datagram has arrived: whether nothing of its message has before.
    pub(crate) fn is_first(&mut self, row: u32, number: u32) -> bool {
        let account = &mut self.accounts[row as usize];
        self.copies.as_mut().is_none_or(|copies| copies.on_arrived(row, number, account))
    }

    /// A message of a row is ready.
    #[inline]
    pub(crate) fn on_ready(&mut self, row: u32, ready: Instant) {
        self.accounts[row as usize].due += u64::from(self.measured.contains(&ready));
        if let Some(judge) = &mut self.judges[row as usize] {
            judge.on_ready(ready);
        }
    }

    /// A message of a row has arrived whole.
    pub(crate) fn on_delivered(&mut self, row: u32, ready: Instant, delay: Duration) {
        if ready >= self.measured.start {
            self.delays[row as usize].record(delay);
        }
        if let Some(judge) = &mut self.judges[row as usize] {
            judge.on_delivered(ready, delay);
        }
    }
}
