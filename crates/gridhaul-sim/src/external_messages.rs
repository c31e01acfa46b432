//! Messages of the program that steps the simulation: waiting, in flight, delivered or lost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;

use gridhaul_scenario::answer::LossReason;
use gridhaul_scenario::scenario::{Flow, Load};
use gridhaul_scenario::units::Instant;

use crate::events::ReservedPlace;

/// Identifies a message of a session: the number of messages sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// The end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageReport {
    /// The message.
    pub id: MessageId,
    /// When it was sent.
    pub sent: Instant,
    /// When it was delivered or lost.
    pub at: Instant,
    /// Whether it was delivered.
    pub fate: MessageFate,
}

/// Whether a message was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFate {
    /// The last byte has arrived; with transport `echo`, back at the sender.
    Delivered,
    /// As `Delivered`, but the content was altered on the way, with a valid checksum.
    Altered,
    /// The message will not arrive.
    Lost(LossReason),
}

impl MessageFate {
    pub(crate) const fn delivered(is_altered: bool) -> Self {
        if is_altered { Self::Altered } else { Self::Delivered }
    }
}

/// The messages of a session. There are none in a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExternalMessages {
    channels: Vec<Channel>,
    /// The channel of each row of flows, for the rows up to that of the last channel.
    of_row: Vec<Option<u32>>,
    /// Channels whose first message may have changed since they were scheduled.
    changed: Vec<u32>,
    reports: Vec<MessageReport>,
}

/// The flows of one row, over which messages are sent.
#[derive(Debug, Clone)]
struct Channel {
    flows: Range<u32>,
    /// Messages that are not due yet, the next one on top.
    queued: BinaryHeap<Reverse<QueuedMessage>>,
    /// Place of the next message among events at the same time: that of the next row of a recorded
    /// trace, so that the order does not depend on when the message is sent.
    place: Option<ReservedPlace>,
    /// Messages in flight on the connection of each flow, in the order of the stream.
    streams: Vec<VecDeque<SentMessage>>,
    /// Datagrams in flight, by their number in the row.
    datagrams: BTreeMap<u32, SentMessage>,
}

/// A message that is not due yet. Messages that are due at the same time are sent in the order of
/// the members, and those of a member in the order of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuedMessage {
    pub at: Instant,
    /// Number of the flow within the row.
    pub member: u32,
    pub id: MessageId,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy)]
struct SentMessage {
    id: MessageId,
    sent: Instant,
}

impl ExternalMessages {
    /// Adds a channel for the flows of a row, if their load is `external`.
    pub(crate) fn add_row(&mut self, spec: &Flow, row: u32, flows: Range<u32>) {
        if spec.load != Load::External {
            return;
        }
        let channel = Channel {
            streams: vec![VecDeque::new(); flows.len()],
            flows,
            queued: BinaryHeap::new(),
            place: None,
            datagrams: BTreeMap::new(),
        };
        self.of_row.resize(row as usize + 1, None);
        self.of_row[row as usize] = Some(self.channels.len() as u32);
        self.channels.push(channel);
    }

    #[inline]
    pub(crate) const fn is_active(&self) -> bool {
        !self.channels.is_empty()
    }

    pub(crate) const fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Number of the flow of a member.
    pub(crate) fn flow(&self, channel: u32, member: u32) -> u32 {
        self.channels[channel as usize].flows.start + member
    }

    /// Queues a message to be sent over the flows of a row.
    pub(crate) fn queue(&mut self, row: usize, message: QueuedMessage) {
        let Some(channel) = self.of_row.get(row).copied().flatten() else { return };
        self.channels[channel as usize].queued.push(Reverse(message));
        self.changed.push(channel);
    }

    /// The channels whose first message may have changed.
    pub(crate) fn take_changed(&mut self) -> Vec<u32> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// When the next message of a channel is due; [`Instant::NEVER`] without messages.
    pub(crate) fn next_at(&self, channel: u32) -> Instant {
        let first = self.channels[channel as usize].queued.peek();
        first.map_or(Instant::NEVER, |Reverse(message)| message.at)
    }

    /// When the next message of any channel is due.
    pub(crate) fn next_of_all(&self) -> Instant {
        let channels = 0..self.channels.len() as u32;
        channels.map(|channel| self.next_at(channel)).min().unwrap_or(Instant::NEVER)
    }

    pub(crate) fn place(&self, channel: u32) -> Option<ReservedPlace> {
        self.channels[channel as usize].place
    }

    pub(crate) fn set_place(&mut self, channel: u32, place: ReservedPlace) {
        self.channels[channel as usize].place = Some(place);
    }

    /// Removes the next message of a channel that is due by `now`.
    pub(crate) fn take_due(&mut self, channel: u32, now: Instant) -> Option<QueuedMessage> {
        if self.next_at(channel) > now {
            return None;
        }
        self.channels[channel as usize].queued.pop().map(|Reverse(message)| message)
    }

    /// A message is written to the connection of a flow.
    pub(crate) fn on_written(&mut self, channel: u32, message: &QueuedMessage) {
        let sent = SentMessage { id: message.id, sent: message.at };
        self.channels[channel as usize].streams[message.member as usize].push_back(sent);
    }

    /// A message is sent as the datagram with this number in its row.
    pub(crate) fn on_datagram(&mut self, channel: u32, number: u32, message: &QueuedMessage) {
        let sent = SentMessage { id: message.id, sent: message.at };
        self.channels[channel as usize].datagrams.insert(number, sent);
    }

    /// The first message in flight on the connection of a flow has arrived.
    pub(crate) fn on_delivered(&mut self, now: Instant, row: u32, flow: u32, fate: MessageFate) {
        let Some(channel) = self.channel_of(row) else { return };
        let member = (flow - channel.flows.start) as usize;
        if let Some(message) = channel.streams[member].pop_front() {
            self.report(now, message, fate);
        }
    }

    /// A datagram has arrived, or is lost.
    pub(crate) fn on_datagram_ended(
        &mut self,
        now: Instant,
        row: u32,
        number: u32,
        fate: MessageFate,
    ) {
        let Some(channel) = self.channel_of(row) else { return };
        if let Some(message) = channel.datagrams.remove(&number) {
            self.report(now, message, fate);
        }
    }

    /// A message cannot be sent.
    pub(crate) fn on_refused(&mut self, now: Instant, message: &QueuedMessage, reason: LossReason) {
        let sent = SentMessage { id: message.id, sent: message.at };
        self.report(now, sent, MessageFate::Lost(reason));
    }

    /// The connection of a flow is closed: its messages are lost.
    pub(crate) fn on_closed(&mut self, now: Instant, row: u32, flow: u32, reason: LossReason) {
        let Some(channel) = self.channel_of(row) else { return };
        let member = (flow - channel.flows.start) as usize;
        for message in std::mem::take(&mut channel.streams[member]) {
            self.report(now, message, MessageFate::Lost(reason));
        }
    }

    /// The flows with messages in flight on their connections.
    pub(crate) fn flows_in_flight(&self) -> impl Iterator<Item = u32> {
        self.channels.iter().flat_map(|channel| {
            let streams = channel.flows.clone().zip(&channel.streams);
            streams.filter(|(_, stream)| !stream.is_empty()).map(|(flow, _)| flow)
        })
    }

    /// Number of messages that were sent and have no report yet.
    pub(crate) fn in_flight(&self) -> usize {
        let of_channel = |channel: &Channel| {
            let in_streams: usize = channel.streams.iter().map(VecDeque::len).sum();
            channel.queued.len() + in_streams + channel.datagrams.len()
        };
        self.channels.iter().map(of_channel).sum()
    }

    /// Whether messages were delivered or lost since the last call of `take_reports`.
    #[inline]
    pub(crate) const fn has_reports(&self) -> bool {
        !self.reports.is_empty()
    }

    /// The reports since the last call, in the order of time.
    pub(crate) fn take_reports(&mut self) -> Vec<MessageReport> {
        std::mem::take(&mut self.reports)
    }

    #[inline]
    fn channel_of(&mut self, row: u32) -> Option<&mut Channel> {
        let channel = self.of_row.get(row as usize).copied().flatten()?;
        self.channels.get_mut(channel as usize)
    }

    fn report(&mut self, now: Instant, message: SentMessage, fate: MessageFate) {
        let SentMessage { id, sent } = message;
        self.reports.push(MessageReport { id, sent, at: now, fate });
    }
}
