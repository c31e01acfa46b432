//! The device: messages that wait, and the one in progress (NSTART = 1; RFC 7252, section 4.7).

use std::collections::VecDeque;

use gridhaul_scenario::scenario::Coap;
use gridhaul_scenario::units::{Duration, Instant};

use crate::load::Arrival;
use crate::random::RandomStream;

/// The sender of messages.
#[derive(Debug, Clone)]
pub(super) struct Client {
    random: RandomStream,
    next_id: u16,
    /// Messages that are ready and have not been sent.
    pub waiting: VecDeque<Arrival>,
    exchange: Option<Exchange>,
}

/// A message that has been sent, and its response is awaited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exchange {
    id: u16,
    pub message: Arrival,
    /// When it was sent first.
    pub began: Instant,
    /// Whether a copy has arrived at the server.
    pub is_delivered: bool,
    retransmissions: u32,
    timeout: Duration,
    deadline: Instant,
}

/// The effect of an expired timer.
#[derive(Debug, Clone, Copy)]
pub(super) enum Timeout {
    Retransmit { id: u16, message: Arrival },
    GiveUp(Exchange),
}

impl Client {
    pub(super) const fn new(random: RandomStream) -> Self {
        Self { random, next_id: 0, waiting: VecDeque::new(), exchange: None }
    }

    /// Whether a message waits and none is in progress.
    pub(super) fn may_begin(&self) -> bool {
        self.exchange.is_none() && !self.waiting.is_empty()
    }

    /// Begins with the next message: its message ID, and the message.
    pub(super) fn begin(&mut self, now: Instant, keys: &Coap) -> Option<(u16, Arrival)> {
        let message = self.waiting.pop_front()?;
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        // RFC 7252, section 4.2: a random time from ACK_TIMEOUT to ACK_TIMEOUT *
        // ACK_RANDOM_FACTOR.
        let longest_addition = keys.ack_timeout.mul_f64(keys.ack_random_factor - 1.0);
        let timeout = keys.ack_timeout + self.random.uniform(longest_addition);
        self.exchange = Some(Exchange {
            id,
            message,
            began: now,
            is_delivered: false,
            retransmissions: 0,
            timeout,
            deadline: now + timeout,
        });
        Some((id, message))
    }

    /// A copy of a message has arrived at the server. Returns whether it is in progress.
    pub(super) fn on_delivered(&mut self, id: u16) -> bool {
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.id == id);
        exchange.map(|exchange| exchange.is_delivered = true).is_some()
    }

    /// A response has arrived. Returns the exchange that it ends.
    pub(super) fn on_response(&mut self, id: u16) -> Option<Exchange> {
        self.exchange.take_if(|exchange| exchange.id == id)
    }

    /// The timer of the message in progress may have expired.
    pub(super) fn handle_timeout(&mut self, now: Instant, retransmissions: u32) -> Option<Timeout> {
        let exchange = self.exchange.as_mut().filter(|exchange| exchange.deadline <= now)?;
        if exchange.retransmissions == retransmissions {
            return self.exchange.take().map(Timeout::GiveUp);
        }
        exchange.retransmissions += 1;
        exchange.timeout = exchange.timeout * 2;
        exchange.deadline = now + exchange.timeout;
        Some(Timeout::Retransmit { id: exchange.id, message: exchange.message })
    }

    pub(super) fn deadline(&self) -> Instant {
        self.exchange.map_or(Instant::NEVER, |exchange| exchange.deadline)
    }

    /// Ready times of the messages that have not arrived.
    pub(super) fn undelivered(&self) -> impl Iterator<Item = Instant> {
        let exchange = self.exchange.iter().filter(|exchange| !exchange.is_delivered);
        let messages = exchange.map(|exchange| &exchange.message).chain(&self.waiting);
        messages.map(|message| message.at)
    }
}
