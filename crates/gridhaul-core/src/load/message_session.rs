//! Messages that the application of the receiver acknowledges, over successive connections.

use std::collections::VecDeque;

use gridhaul_scenario::scenario::{Acknowledgement, ConnectionPolicy, Flow, FlowEnd, RetransmitOn};
use gridhaul_scenario::units::Instant;

use super::{Arrival, MessageEvent, Source};

/// Both ends of a member: the `from` end sends messages, and the `to` end acknowledges them.
///
/// Call order: report the connection with [`handle_connection`](Self::handle_connection) before
/// other calls; at each [`next_deadline`](Self::next_deadline), report the messages that
/// [`poll_ready`](Self::poll_ready) returns, and write the frames that
/// [`poll_frame`](Self::poll_frame) returns; call [`handle_frame`](Self::handle_frame) when a frame
/// has arrived completely. Then [`poll_abort`](Self::poll_abort), [`poll_event`](Self::poll_event)
/// and [`needs_connection`](Self::needs_connection) have the effects.
#[derive(Debug, Clone)]
pub struct MessageSession {
    keys: Acknowledgement,
    /// Whether a connection carries one message.
    is_per_message: bool,
    source: Source,
    /// Messages that are ready and have not been written.
    waiting: VecDeque<Arrival>,
    /// Messages without an acknowledgement, in their order.
    sent: VecDeque<SentMessage>,
    /// Messages that were given up before a copy arrived, whose copies are in transit.
    given_up: Vec<u64>,
    next_number: u64,
    /// Acknowledgements that the receiver is to write, and when.
    owed: VecDeque<(Instant, u64)>,
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

/// A message without an acknowledgement.
#[derive(Debug, Clone, Copy)]
struct SentMessage {
    number: u64,
    message: Arrival,
    /// When it was written first.
    began: Instant,
    transmissions: u32,
    /// When its timer expires; [`Instant::NEVER`] if the present connection has not carried it.
    timeout: Instant,
    /// Whether a copy has arrived.
    is_delivered: bool,
}

/// A frame on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageFrame {
    /// A message, by its number.
    Message(u64, Arrival),
    /// The acknowledgement of the message with this number.
    Acknowledgement(u64),
}

impl MessageSession {
    /// The session of a member of a flow with this source of messages; `None` if nothing
    /// acknowledges them.
    #[must_use]
    pub fn new(flow: &Flow, source: &Source) -> Option<Self> {
        let keys = flow.acknowledgement?;
        Some(Self {
            keys,
            is_per_message: flow.connection == ConnectionPolicy::PerMessage,
            source: source.clone(),
            waiting: VecDeque::new(),
            sent: VecDeque::new(),
            given_up: Vec::new(),
            next_number: 0,
            owed: VecDeque::new(),
            connection: None,
            aborted: None,
            aborts: false,
            has_carried: false,
            write_at: Instant::NEVER,
            delivered: 0,
            events: VecDeque::new(),
        })
    }

    /// Size of a frame in bytes.
    #[must_use]
    pub const fn size(&self, frame: MessageFrame) -> u64 {
        match frame {
            MessageFrame::Message(_, message) => message.bytes,
            MessageFrame::Acknowledgement(_) => self.keys.size.get(),
        }
    }

    /// When the next message is ready.
    #[must_use]
    pub fn next_ready(&self) -> Instant {
        self.source.next_time()
    }

    /// When a message is ready, or a frame is to be written.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        let ready = self.next_ready();
        if self.connection.is_none() {
            return ready;
        }
        let owed = self.owed.front().map_or(Instant::NEVER, |(at, _)| *at);
        let timeouts = self.sent.iter().map(|sent| sent.timeout);
        timeouts.fold(ready.min(owed).min(self.write_at), Instant::min)
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
        self.write_at = now;
        true
    }

    fn leave_connection(&mut self) {
        self.connection = None;
        self.has_carried = false;
        self.owed.clear();
        self.given_up.clear();
        for sent in &mut self.sent {
            sent.timeout = Instant::NEVER;
        }
    }

    /// The time of a message that is ready by now and has not been returned before.
    pub fn poll_ready(&mut self, now: Instant) -> Option<Instant> {
        let message = self.source.next_message_by(now)?;
        self.waiting.push_back(message);
        self.write_at = now;
        Some(message.at)
    }

    /// The next frame to write by now, and its sender.
    pub fn poll_frame(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        self.expire_timers(now);
        if self.connection.is_some() {
            let frame = self.poll_acknowledgement(now).or_else(|| self.poll_message(now));
            if frame.is_some() {
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
            sent.timeout = Instant::NEVER;
        }
        if self.keys.retransmit_on == RetransmitOn::NewConnection {
            self.aborts = true;
            self.aborted = self.connection;
            self.leave_connection();
        }
        self.give_up_exhausted();
    }

    /// Gives up the messages that wait for a retransmission and have had all of them.
    fn give_up_exhausted(&mut self) {
        let Self { keys, sent, events, given_up, .. } = self;
        sent.retain(|sent| {
            let is_waiting = sent.timeout == Instant::NEVER;
            let keep = !is_waiting || sent.transmissions <= keys.retransmissions;
            if !keep {
                let is_delivered = sent.is_delivered;
                events.push_back((sent.message.at, MessageEvent::GivenUp { is_delivered }));
                if !is_delivered {
                    given_up.push(sent.number);
                }
            }
            keep
        });
    }

    fn poll_acknowledgement(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        let (_, number) = *self.owed.front().filter(|(at, _)| *at <= now)?;
        self.owed.pop_front();
        Some((FlowEnd::To, MessageFrame::Acknowledgement(number)))
    }

    fn poll_message(&mut self, now: Instant) -> Option<(FlowEnd, MessageFrame)> {
        self.give_up_exhausted();
        let timeout = now + self.keys.timeout;
        if let Some(sent) = self.sent.iter_mut().find(|sent| sent.timeout == Instant::NEVER) {
            sent.transmissions += 1;
            sent.timeout = timeout;
            self.has_carried = true;
            self.events.push_back((sent.message.at, MessageEvent::Retransmitted));
            return Some((FlowEnd::From, MessageFrame::Message(sent.number, sent.message)));
        }
        let is_full = self.sent.len() >= self.keys.window as usize;
        if is_full || self.is_per_message && self.has_carried {
            return None;
        }
        let message = self.waiting.pop_front()?;
        let (number, began) = (self.next_number, now);
        self.next_number += 1;
        self.has_carried = true;
        let (transmissions, is_delivered) = (1, false);
        self.sent.push_back(SentMessage {
            number,
            message,
            began,
            transmissions,
            timeout,
            is_delivered,
        });
        Some((FlowEnd::From, MessageFrame::Message(number, message)))
    }

    /// A frame has arrived. Returns when its message was ready, if it is the first copy.
    pub fn handle_frame(&mut self, now: Instant, frame: MessageFrame) -> Option<Instant> {
        match frame {
            MessageFrame::Message(number, message) => {
                self.owed.push_back((now + self.keys.think, number));
                self.handle_copy(number, message)
            }
            MessageFrame::Acknowledgement(number) => {
                self.handle_acknowledgement(now, number);
                None
            }
        }
    }

    fn handle_copy(&mut self, number: u64, message: Arrival) -> Option<Instant> {
        let sent = self.sent.iter_mut().find(|sent| sent.number == number);
        let given_up = self.given_up.iter().position(|given_up| *given_up == number);
        match (sent, given_up) {
            (Some(sent), _) if !sent.is_delivered => sent.is_delivered = true,
            (_, Some(index)) => {
                self.given_up.swap_remove(index);
                self.events.push_back((message.at, MessageEvent::LateDelivery));
            }
            _ => {
                self.events.push_back((message.at, MessageEvent::Duplicate));
                return None;
            }
        }
        self.delivered += message.bytes;
        Some(message.at)
    }

    /// Acknowledgements of further copies have no effect.
    fn handle_acknowledgement(&mut self, now: Instant, number: u64) {
        let Some(index) = self.sent.iter().position(|sent| sent.number == number) else { return };
        let Some(sent) = self.sent.remove(index) else { return };
        let took = now.since(sent.began);
        self.events.push_back((sent.message.at, MessageEvent::Acknowledged(took)));
        self.write_at = now;
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
        let is_used_up = self.is_per_message && self.has_carried && self.connection.is_some();
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
        sent.map(|sent| sent.message).chain(self.waiting.iter().copied()).map(|message| message.at)
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::Scenario;
    use gridhaul_scenario::units::Duration;

    use super::*;
    use crate::load::{Demand, SharedLoad};
    use crate::random::RandomStream;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A session with a message of 100 B every second, on its first connection.
    fn session(keys: &str) -> MessageSession {
        let text = format!(
            "title = 't'\nduration = '1000 s'\n[node]\na = {{}}\nb = {{}}\n\
             [link.l]\nfrom = 'a'\nto = 'b'\nboth.rate = '1 Mbit/s'\n\
             [flow.f]\nfrom = 'a'\nto = 'b'\n\
             load.periodic = {{ size = '100 B', every = '1 s', synchronised = true }}\n\
             acknowledgement = {{ size = '20 B', timeout = '300 ms', {keys} }}"
        );
        let scenario = Scenario::from_toml(&text, "t.toml").unwrap();
        let flow = &scenario.flow["f"];
        let random = RandomStream::named(1, 0, "f", 0, "load");
        let demand = Demand::of_member(&SharedLoad::from(&flow.load), at(0), random);
        let Demand::Messages(mut session) = demand.acknowledged(flow) else { panic!("no session") };
        assert!(session.handle_connection(at(0), Some(1)));
        *session
    }

    const NOTHING: [Vec<u64>; 2] = [Vec::new(), Vec::new()];

    /// Numbers of the messages and of the acknowledgements that are written.
    fn written(session: &mut MessageSession, now: u64) -> [Vec<u64>; 2] {
        while session.poll_ready(at(now)).is_some() {}
        let mut written = [Vec::new(), Vec::new()];
        while let Some((end, frame)) = session.poll_frame(at(now)) {
            let (MessageFrame::Message(number, _) | MessageFrame::Acknowledgement(number)) = frame;
            written[end as usize].push(number);
        }
        written
    }

    fn message(number: u64) -> MessageFrame {
        MessageFrame::Message(number, Arrival { at: at(1_000 * number), bytes: 100 })
    }

    fn events(session: &mut MessageSession) -> Vec<MessageEvent> {
        std::iter::from_fn(|| session.poll_event()).map(|(_, event)| event).collect()
    }

    #[test]
    fn one_message_is_without_an_acknowledgement_at_a_time() {
        let mut session = session("retransmissions = 9, think = '10 ms'");
        assert_eq!(written(&mut session, 0), [vec![0], vec![]]);
        assert_eq!(session.handle_frame(at(50), message(0)), Some(at(0)));
        assert_eq!(session.next_deadline(), at(60), "the receiver thinks");
        assert_eq!(written(&mut session, 60), [vec![], vec![0]]);
        // The acknowledgement is late: a copy is on its way when it arrives.
        assert_eq!(session.next_deadline(), at(300));
        assert_eq!(written(&mut session, 300), [vec![0], vec![]]);
        assert_eq!(written(&mut session, 500), NOTHING);
        session.handle_frame(at(510), MessageFrame::Acknowledgement(0));
        assert!(!session.needs_connection());
        assert_eq!(session.handle_frame(at(520), message(0)), None);
        let took = Duration::from_millis(510);
        assert_eq!(
            events(&mut session),
            [
                MessageEvent::Retransmitted,
                MessageEvent::Acknowledged(took),
                MessageEvent::Duplicate
            ]
        );
        // Each copy is acknowledged.
        assert_eq!(written(&mut session, 1_000), [vec![1], vec![0]]);
        session.handle_frame(at(1_010), MessageFrame::Acknowledgement(0));
        assert_eq!((events(&mut session), session.delivered()), (vec![], 100));
        assert_eq!(session.undelivered().collect::<Vec<_>>(), [at(1_000)]);
    }

    #[test]
    fn a_message_may_arrive_after_it_was_given_up() {
        let mut session = session("retransmissions = 1");
        for (now, count) in [(0, 1), (300, 1), (600, 0)] {
            assert_eq!(written(&mut session, now)[0].len(), count);
        }
        let given_up = MessageEvent::GivenUp { is_delivered: false };
        assert_eq!(events(&mut session), [MessageEvent::Retransmitted, given_up]);
        assert_eq!(session.undelivered().count(), 0);
        assert_eq!(session.handle_frame(at(700), message(0)), Some(at(0)));
        assert_eq!(session.handle_frame(at(700), message(0)), None);
        assert_eq!(events(&mut session), [MessageEvent::LateDelivery, MessageEvent::Duplicate]);
    }

    #[test]
    fn the_next_connection_carries_messages_without_an_acknowledgement() {
        let keys = "retransmissions = 2, retransmit_on = 'new_connection', window = 2";
        let mut session = session(keys);
        assert_eq!(written(&mut session, 1_000)[0], [0, 1]);
        assert_eq!(session.handle_frame(at(1_100), message(0)), Some(at(0)));
        assert_eq!(written(&mut session, 1_100), [vec![], vec![0]]);
        assert_eq!(written(&mut session, 1_300), NOTHING);
        assert!(session.poll_abort() && !session.poll_abort() && session.needs_connection());
        // The carrier reports the connection until it has ended.
        assert!(!session.handle_connection(at(1_300), Some(1)));
        assert!(!session.handle_connection(at(1_310), None));
        assert_eq!(session.next_deadline(), at(2_000), "messages wait for a connection");
        assert_eq!(written(&mut session, 2_000)[0], [0_u64; 0]);
        // TCP ends the second connection: the third one carries them for the last time.
        for (number, now) in [(2, 2_100), (3, 2_200)] {
            session.handle_connection(at(now), None);
            assert!(session.handle_connection(at(now), Some(number)));
            assert_eq!(written(&mut session, now)[0], [0, 1]);
        }
        assert_eq!(written(&mut session, 2_500)[0], [0_u64; 0]);
        let given_up = [true, false].map(|is_delivered| MessageEvent::GivenUp { is_delivered });
        let events = events(&mut session);
        assert_eq!(events[..4], [MessageEvent::Retransmitted; 4]);
        assert_eq!(events[4..], given_up);
    }
}
