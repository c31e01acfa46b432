//! Time series, on request: windows, queues, throughput and message delays.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use gridhaul_core::load::MessageEvent;
use gridhaul_scenario::answer::{
    LossReason, LostMessage, Recording, RecordingFile, Series, WindowSample,
};
use gridhaul_scenario::units::{Duration, Instant};

use crate::flow::{Ends, Flow};
use crate::network::Network;

/// Records series during a run.
#[derive(Debug)]
pub(crate) struct Recorder {
    interval: Duration,
    flow_names: Vec<String>,
    link_names: Vec<String>,
    /// For each row, its first flow and the start of this flow.
    firsts: Vec<(u32, Instant)>,
    /// The rows in the order of their first flows.
    flow_rows: Vec<u32>,
    /// The recorded directions, each with its row: the first member of each group.
    links: Vec<(u32, u32)>,
    /// Bytes delivered by each row of directions up to the last sample.
    arrived: Vec<u64>,
    recording: Recording,
    /// Lost datagrams with their numbers: with duplicates, another copy may still arrive.
    lost: Vec<(u32, LostMessage)>,
    /// Messages that were given up or lost with their connection, with their number: by row, member
    /// and the time at which they were ready. A copy in transit may still arrive.
    given_up: BTreeMap<(u32, u32, Instant), (LostMessage, u32)>,
    /// Losses beyond the largest number of recorded ones.
    omitted_losses: u64,
}

/// Largest numbers of lost datagrams, and of messages given up, that are recorded.
const LOST_MAX: usize = 1_000_000;

impl Recorder {
    pub(crate) fn new(
        interval: Duration,
        (flow_names, firsts): (Vec<String>, Vec<(u32, Instant)>),
        (link_names, link_row): (Vec<String>, Vec<u32>),
        file: Option<&Arc<RecordingFile>>,
    ) -> Self {
        let arrived = vec![0; link_names.len()];
        let recording = Recording::new(file);
        let mut flow_rows: Vec<u32> = (0..firsts.len() as u32).collect();
        flow_rows.sort_by_key(|&row| firsts[row as usize].0);
        let mut links: Vec<(u32, u32)> = (0..).zip(link_row).collect();
        let mut seen = BTreeSet::new();
        links.retain(|&(_, row)| seen.insert(row));
        Self {
            interval,
            flow_names,
            link_names,
            firsts,
            flow_rows,
            links,
            arrived,
            recording,
            lost: Vec::new(),
            given_up: BTreeMap::new(),
            omitted_losses: 0,
        }
    }

    /// Takes a sample. Returns the time of the next one.
    pub(crate) fn sample(&mut self, now: Instant, net: &mut Network, flows: &[Flow]) -> Instant {
        self.sample_flows(now, flows);
        for &(link, row) in &self.links {
            let (slot, row_index) = (net.links.entry_mut(link), row as usize);
            self.recording.on_queue(now, row, slot.direction.queue_length(now));
            let arrived = slot.account.arrived_bytes;
            let bits = (arrived - self.arrived[row_index]) * 8;
            self.arrived[row_index] = arrived;
            if now > Instant::ZERO {
                let rate = bits as f64 / self.interval.as_secs_f64();
                self.recording.on_throughput(now, row, rate);
            }
        }
        now + self.interval
    }

    fn sample_flows(&mut self, now: Instant, flows: &[Flow]) {
        for &row in &self.flow_rows {
            let (first, start) = self.firsts[row as usize];
            // Rows of several flows, such as that of a fairness, have no flow of their own.
            let Some(flow) = flows.get(first as usize).filter(|flow| flow.row == row) else {
                continue;
            };
            let Ends::Tcp(ends) = &flow.ends else { continue };
            if now < start {
                continue;
            }
            let Some(sender) = ends[0].sender() else { continue };
            let limited = sender.ssthresh() != u32::MAX;
            let window = WindowSample {
                cwnd: u64::from(sender.cwnd()),
                ssthresh: limited.then(|| u64::from(sender.ssthresh())),
                in_flight: sender.in_flight(),
                srtt: sender.rtt().srtt(),
                rto: sender.rtt().rto(ends[0].params()),
            };
            self.recording.on_window(now, flow.row, window);
        }
    }

    /// A message of a flow that was ready at `ready` has arrived after `delay`.
    pub(crate) fn on_message(&mut self, ready: Instant, row: u32, flow: u32, delay: Duration) {
        let member = self.member(row, flow);
        self.recording.on_message(ready, row, member, delay);
        if let Entry::Occupied(mut given_up) = self.given_up.entry((row, member, ready)) {
            given_up.get_mut().1 -= 1;
            if given_up.get().1 == 0 {
                given_up.remove();
            }
        }
    }

    /// An event of a message that was ready at `ready` and that applications acknowledge.
    pub(crate) fn on_message_event(
        &mut self,
        now: Instant,
        row: u32,
        flow: u32,
        ready: Instant,
        event: MessageEvent,
    ) {
        let reason = match event {
            MessageEvent::GivenUp { is_delivered: false } => LossReason::GivenUp,
            MessageEvent::Unconfirmed { is_delivered: false } => LossReason::ConnectionClosed,
            _ => return,
        };
        let member = self.member(row, flow);
        self.on_given_up(LostMessage { ready, flow: row, member, lost: Some(now), reason });
    }

    /// A message that its sender has given up, or that was lost with its connection, and of which
    /// no copy has arrived.
    pub(crate) fn on_given_up(&mut self, message: LostMessage) {
        let LostMessage { ready, flow, member, .. } = message;
        if self.given_up.len() < LOST_MAX {
            self.given_up.entry((flow, member, ready)).or_insert((message, 0)).1 += 1;
        } else {
            self.omitted_losses += 1;
        }
    }

    /// The messages given up of which no copy has arrived by the end of the run.
    pub(crate) fn take_given_up(&mut self) -> impl Iterator<Item = LostMessage> + use<> {
        let given_up = std::mem::take(&mut self.given_up).into_values();
        given_up.flat_map(|(message, count)| std::iter::repeat_n(message, count as usize))
    }

    /// The member of a row with the number of its flow.
    pub(crate) fn member(&self, row: u32, flow: u32) -> u32 {
        // The flows of a row have consecutive numbers.
        flow.saturating_sub(self.firsts[row as usize].0)
    }

    /// A datagram is lost.
    pub(crate) fn on_datagram_lost(&mut self, number: u32, message: LostMessage) {
        if self.lost.len() < LOST_MAX {
            self.lost.push((number, message));
        } else {
            self.omitted_losses += 1;
        }
    }

    /// Records the lost datagrams that are missing at the end of the run; `is_missing` gets the row
    /// and the number of a datagram.
    pub(crate) fn retain_losses(&mut self, is_missing: impl Fn(u32, u32) -> bool) {
        let mut seen = BTreeSet::new();
        for (number, message) in std::mem::take(&mut self.lost) {
            // Several copies of a datagram may be lost.
            if is_missing(message.flow, number) && seen.insert((message.flow, number)) {
                self.recording.on_lost(message);
            }
        }
    }

    /// A message over TCP of a flow has not arrived at the end of the run.
    pub(crate) fn on_undelivered(&mut self, message: LostMessage) {
        self.recording.on_lost(message);
    }

    /// The tables.
    ///
    /// # Errors
    /// The recorded data could not be stored.
    pub(crate) fn into_series(mut self) -> io::Result<Vec<Series>> {
        self.recording.omit_losses(self.omitted_losses);
        self.recording.into_series(&self.flow_names, &self.link_names)
    }
}
