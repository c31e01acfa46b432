//! Messages that the application of the receiver acknowledges, over successive connections.

mod probe_timer;
mod receipt;
mod rules;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, VecDeque};

use gridhaul_scenario::scenario::{FlowEnd, Mqtt, RetransmitOn};
use gridhaul_scenario::units::Instant;

use self::probe_timer::{ProbeAction, ProbeTimer};
use super::{Arrival, MessageEvent, Source};

pub use rules::SessionRules;

/// Both ends of a member: one sends messages, and the other one acknowledges them.
///
/// Call order: report the connection with [`handle_connection`](Self::handle_connection) before
/// other calls; at each [`next_deadline`](Self::next_deadline), report the messages that
/// [`poll_ready`](Self::poll_ready) returns, and write the frames that
/// [`poll_frame`](Self::poll_frame) returns; call [`handle_frame`](Self::handle_frame) when a frame
/// has arrived completely. Then [`poll_abort`](Self::poll_abort), [`poll_event`](Self::poll_event)
/// and [`needs_connection`](Self::needs_connection) have the effects.
#[derive(Debug, Clone)]
pub struct MessageSession {
    rules: SessionRules,
    /// The messages of the sender; `None` if they are forwarded ones.
    source: Option<Source>,
    /// Messages that are ready and have not been written.
    waiting: VecDeque<Publication>,
    /// Messages without an acknowledgement, in their order.
    sent: VecDeque<SentMessage>,
    /// Messages that were given up before a copy arrived, whose copies are in transit.
    given_up: Vec<u64>,
    next_number: u64,
    /// The number of the next message of the source.
    next_ready_number: u64,
    /// Replies that an end is to write, and when.
    owed: VecDeque<(Instant, FlowEnd, MessageFrame)>,
    /// Whether the present connection is open for messages, and whether one has been.
    is_open: bool,
    has_been_open: bool,
    probes: ProbeTimer,
    /// Messages that the receiver is to forward.
    arrivals: VecDeque<Publication>,
    /// Forwarded messages that are lost, of which another copy may follow.
    lost: BTreeSet<PublicationId>,
    connection: Option<u64>,
    /// The last connection that the sender has aborted.
    aborted: Option<u64>,
    aborts: bool,
    /// Whether the connection has carried a message.
    has_carried: bool,
    /// When frames are to be written that do not wait for a timer.
    write_at: Instant,
    /// Payload of first copies that have arrived.
    delivered: u64,
    events: VecDeque<(Instant, MessageEvent)>,
}

/// A message of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The message.
    pub message: Arrival,
    /// The same for all copies of the message.
    pub id: PublicationId,
    /// Whether it is a further copy.
    pub is_copy: bool,
}

/// Names a message among those that one broker forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicationId {
    /// The publisher, as the broker counts them.
    pub publisher: usize,
    /// The number of the message at its publisher.
    pub number: u64,
}

/// A message without an acknowledgement.
#[derive(Debug, Clone, Copy)]
struct SentMessage {
    number: u64,
    publication: Publication,
    /// When it was written first.
    began: Instant,
    transmissions: u32,
    /// When its timer expires; [`Instant::NEVER`] without a timer.
    timeout: Instant,
    /// Whether the present connection has carried it, and it waits for a reply.
    is_written: bool,
    /// Whether a copy has arrived.
    is_delivered: bool,
    /// Whether the sender has the first of several replies.
    is_received: bool,
}

/// A frame on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFrame {
    /// A frame before the messages of a connection, by its number from 0.
    Opening(usize),
    /// A message, by its number.
    Message(u64, Publication),
    /// A reply about the message with this number, by the number of the reply from 0.
    Reply(u64, usize),
    /// A probe of the `from` end, and its response.
    Probe,
    /// The response to a probe.
    ProbeResponse,
}

impl MessageSession {
    /// The session of a member with this source of messages.
    #[must_use]
    pub fn new(rules: SessionRules, source: Option<Source>) -> Self {
        Self {
            probes: ProbeTimer::new(rules.keep_alive),
            rules,
            source,
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            given_up: Vec::new(),
            next_number: 0,
            next_ready_number: 0,
            owed: VecDeque::new(),
            is_open: false,
            has_been_open: false,
            arrivals: VecDeque::new(),
            lost: BTreeSet::new(),
            connection: None,
            aborted: None,
            aborts: false,
            has_carried: false,
            write_at: Instant::NEVER,
            delivered: 0,
            events: VecDeque::new(),
        }
    }

    /// Size of a frame in bytes.
    #[must_use]
    pub fn size(&self, frame: MessageFrame) -> u64 {
        match frame {
            MessageFrame::Opening(number) => self.opening()[number],
            MessageFrame::Message(_, publication) => {
                self.rules.frame_size(publication.message.bytes)
            }
            MessageFrame::Reply(_, number) => self.rules.replies[number],
            MessageFrame::Probe | MessageFrame::ProbeResponse => Mqtt::EMPTY_PACKET,
        }
    }

    fn opening(&self) -> &[u64] {
        &self.rules.openings[usize::from(self.has_been_open)]
    }

    /// When the next message is ready.
    #[must_use]
    pub fn next_ready(&self) -> Instant {
        self.source.as_ref().map_or(Instant::NEVER, Source::next_time)
    }

    /// When a message is ready, or a frame is to be written.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let ready = self.next_ready();
        if self.connection.is_none() {
            return ready;
        }
        let owed = self.owed.front().map_or(Instant::NEVER, |(at, ..)| *at);
        let timeouts = self.sent.iter().map(|sent| sent.timeout);
        let other = ready.min(owed).min(self.write_at).min(self.probes.next_deadline());
        timeouts.fold(other, Instant::min)
    }

    /// The number of the connection that carries messages, if there is one. What a connection
    /// that has ended had not delivered is lost.
    pub fn handle_connection(&mut self, now: Instant, connection: Option<u64>) -> bool {
        let connection = connection.filter(|number| Some(*number) != self.aborted);
        if connection == self.connection {
            return false;
        }
        self.leave_connection();
        self.connection = connection;
        self.is_open = connection.is_some() && self.opening().is_empty();
        let awaits_response = connection.is_some() && !self.is_open;
        self.probes.begin(now, awaits_response);
        if awaits_response {
            self.owed.push_back((now, FlowEnd::From, MessageFrame::Opening(0)));
        }
        self.write_at = now;
        true
    }

    fn leave_connection(&mut self) {
        self.connection = None;
        self.has_carried = false;
        self.is_open = false;
        self.owed.clear();
        self.given_up.clear();
        for sent in &mut self.sent {
            (sent.timeout, sent.is_written) = (Instant::NEVER, false);
        }
        if self.rules.replies.is_empty() {
            let sent = std::mem::take(&mut self.sent);
            let own = sent.iter().filter(|sent| !sent.publication.is_copy);
            own.for_each(|sent| self.lose(&sent.publication));
        }
    }

    /// A message that nothing acknowledges ends with its connection. Its first copy that waits for
    /// the next connection takes its place; without one, the message is lost.
    fn lose(&mut self, publication: &Publication) {
        let mut waiting = self.waiting.iter_mut();
        if let Some(copy) = waiting.find(|copy| copy.is_copy && copy.id == publication.id) {
            copy.is_copy = false;
            return;
        }
        let lost = MessageEvent::Unconfirmed { is_delivered: false };
        self.events.push_back((publication.message.at, lost));
        if self.source.is_none() {
            self.lost.insert(publication.id);
        }
    }

    /// The time of a message that is ready by now and has not been returned before.
    pub fn poll_ready(&mut self, now: Instant) -> Option<Instant> {
        let message = self.source.as_mut()?.next_message_by(now)?;
        let id = PublicationId { publisher: 0, number: self.next_ready_number };
        self.next_ready_number += 1;
        self.push(now, Publication { message, id, is_copy: false });
        Some(message.at)
    }

    /// A message is to be sent.
    pub fn push(&mut self, now: Instant, publication: Publication) {
        self.waiting.push_back(publication);
        self.write_at = now;
    }

    /// The next message that the receiver forwards.
    pub fn poll_arrival(&mut self) -> Option<Publication> {
        self.arrivals.pop_front()
    }

    /// The next frame to write by now, and its sender.
    pub fn poll_frame(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        self.expire_timers(now);
        if self.connection.is_some() {
            let frame = self.poll_reply(now).or_else(|| self.poll_message(now));
            let frame = frame.or_else(|| self.poll_probe(now));
            if let Some((sender, _)) = frame {
                if sender == FlowEnd::From {
                    self.probes.on_output(now);
                }
                return frame;
            }
        }
        self.write_at = Instant::NEVER;
        None
    }

    /// Retransmits or gives up the messages whose timers have expired.
    fn expire_timers(&mut self, now: Instant) {
        let has_expired = |sent: &SentMessage| sent.timeout <= now;
        if !self.sent.iter().any(has_expired) {
            return;
        }
        for sent in self.sent.iter_mut().filter(|sent| has_expired(sent)) {
            (sent.timeout, sent.is_written) = (Instant::NEVER, false);
        }
        let timer = self.rules.timer.map(|timer| timer.retransmit_on);
        if timer == Some(RetransmitOn::NewConnection) {
            self.abort();
        }
        self.give_up_exhausted();
    }

    fn abort(&mut self) {
        self.aborts = true;
        self.aborted = self.connection;
        self.leave_connection();
    }

    fn poll_probe(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        match self.probes.poll(now)? {
            ProbeAction::Probe => Some((FlowEnd::From, MessageFrame::Probe)),
            ProbeAction::Abort => {
                self.abort();
                None
            }
        }
    }

    /// Gives up the messages that wait for a retransmission and have had all of them.
    fn give_up_exhausted(&mut self) {
        let Self { rules, sent, events, given_up, .. } = self;
        let Some(timer) = rules.timer else { return };
        sent.retain(|sent| {
            let keep = sent.is_written || sent.transmissions <= timer.retransmissions;
            if !keep {
                let is_delivered = sent.is_delivered;
                let ready = sent.publication.message.at;
                events.push_back((ready, MessageEvent::GivenUp { is_delivered }));
                if !is_delivered {
                    given_up.push(sent.number);
                }
            }
            keep
        });
    }

    fn poll_reply(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        let (_, end, frame) = *self.owed.front().filter(|(at, ..)| *at <= now)?;
        self.owed.pop_front();
        // Messages may follow the last frame of the opening at once.
        if let MessageFrame::Opening(number) = frame
            && number + 1 == self.opening().len()
            && end == self.rules.writer
        {
            self.is_open = true;
        }
        Some((end, frame))
    }

    fn poll_message(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        if !self.is_open {
            return None;
        }
        self.give_up_exhausted();
        let writer = self.rules.writer;
        let timeout = self.rules.timer.map_or(Instant::NEVER, |timer| now + timer.timeout);
        let has_replies = !self.rules.replies.is_empty();
        if let Some(sent) = self.sent.iter_mut().find(|sent| !sent.is_written) {
            (sent.is_written, sent.timeout) = (true, timeout);
            self.has_carried = true;
            if sent.is_received {
                return Some((writer, MessageFrame::Reply(sent.number, 1)));
            }
            sent.transmissions += 1;
            let ready = sent.publication.message.at;
            self.events.push_back((ready, MessageEvent::Retransmitted));
            return Some((writer, MessageFrame::Message(sent.number, sent.publication)));
        }
        let is_full = has_replies && self.sent.len() >= self.rules.window;
        if is_full || self.rules.is_per_message && self.has_carried {
            return None;
        }
        let publication = self.waiting.pop_front()?;
        let number = self.next_number;
        self.next_number += 1;
        self.has_carried = true;
        self.sent.push_back(SentMessage {
            number,
            publication,
            began: now,
            transmissions: 1,
            timeout,
            is_written: true,
            is_delivered: false,
            is_received: false,
        });
        Some((writer, MessageFrame::Message(number, publication)))
    }

    /// Whether the sender aborts its connection now.
    pub const fn poll_abort(&mut self) -> bool {
        std::mem::replace(&mut self.aborts, false)
    }

    /// The next event that has not been returned, of a message that was ready at a time.
    pub fn poll_event(&mut self) -> Option<(Instant, MessageEvent)> {
        self.events.pop_front()
    }

    /// Whether the applications need a connection, or the present one further on.
    #[must_use]
    pub fn needs_connection(&self) -> bool {
        let is_used_up = self.rules.is_per_message && self.has_carried && self.connection.is_some();
        let in_progress = !self.sent.is_empty() || !self.owed.is_empty();
        in_progress || !self.waiting.is_empty() && !is_used_up
    }

    /// Payload of messages that has arrived, without further copies.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// When the messages were ready that have not arrived and have not been given up.
    pub fn undelivered(&self) -> impl Iterator<Item = Instant> {
        let sent = self.sent.iter().filter(|sent| !sent.is_delivered);
        let publications = sent.map(|sent| sent.publication).chain(self.waiting.iter().copied());
        let own = publications.filter(|publication| !publication.is_copy);
        own.map(|publication| publication.message.at)
    }
}
