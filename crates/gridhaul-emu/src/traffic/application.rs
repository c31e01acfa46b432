//! What the application of one flow does, whatever carries it.

use std::collections::VecDeque;

use gridhaul_core::load::{Demand, Greedy, Message, RequestResponse, Source};
use gridhaul_scenario::units::Instant;

/// The application of one connection or of one sender of datagrams.
#[derive(Debug)]
pub(crate) enum Application {
    /// Sends for ever.
    Bulk,
    /// Sends an amount, then closes.
    Transfer { bytes: u64 },
    /// Sends messages when they are ready.
    Messages(Source),
    /// Sends messages as fast as the connection takes them, in bursts.
    Greedy(Box<Greedy>),
    /// Sends what a recording says.
    Recorded,
    /// Asks, waits for the answer, pauses.
    Dialogue {
        machine: Box<RequestResponse>,
        /// What is said next, and by which end.
        next: Option<(usize, Message)>,
    },
}

/// Messages that were handed over and have not arrived, first come first.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Position in the stream behind the last byte, and when the message was ready.
    messages: VecDeque<(u64, Instant)>,
}

impl Application {
    /// The application of a demand.
    pub(crate) fn new(demand: Demand) -> Self {
        match demand {
            Demand::Endless => Self::Bulk,
            Demand::Limited(bytes) => Self::Transfer { bytes },
            Demand::Open(source) => Self::Messages(source),
            Demand::Greedy(greedy) => Self::Greedy(Box::new(greedy)),
            Demand::Dialogue(machine) => {
                let next = Some((0, machine.first_request()));
                Self::Dialogue { machine: Box::new(machine), next }
            }
            Demand::Recorded => Self::Recorded,
        }
    }

    /// When it wants to do something next, by itself.
    pub(crate) fn due(&self) -> Instant {
        match self {
            Self::Bulk | Self::Transfer { .. } | Self::Recorded => Instant::NEVER,
            Self::Messages(source) => source.coming(),
            Self::Greedy(greedy) => greedy.bursts.until(),
            Self::Dialogue { next, .. } => next.map_or(Instant::NEVER, |(_, message)| message.at),
        }
    }

    /// Whether its messages have a delay that is of interest.
    pub(crate) const fn has_messages(&self) -> bool {
        !matches!(self, Self::Bulk | Self::Transfer { .. })
    }
}

impl Outbox {
    /// A message that was ready then has been handed over, up to this position.
    pub(crate) fn push(&mut self, end: u64, ready: Instant) {
        self.messages.push_back((end, ready));
    }

    /// When the messages were ready that have not arrived.
    pub(crate) fn ready(&self) -> impl Iterator<Item = Instant> {
        self.messages.iter().map(|(_, ready)| *ready)
    }

    /// When the next message was ready that is whole with so many bytes delivered.
    pub(crate) fn pop(&mut self, delivered: u64) -> Option<Instant> {
        let whole = self.messages.front().is_some_and(|(end, _)| *end <= delivered);
        if whole { self.messages.pop_front().map(|(_, ready)| ready) } else { None }
    }
}
