//! Collectors (paper `sa-tcp`, section 3.2; RFC 3135, section 2.4, split connections): many TCP
//! connections end here, and the messages that they deliver go on over one connection.
//!
//! The machine holds no payload and parses none. It is told where messages end in the stream of
//! each member, by whoever knows: the load in a simulation, a framing in a daemon. It decides
//! which segments are taken in, in which order messages go on, and what waits.
//!
//! Room is reserved for a **message** when the first segment that holds a part of it arrives,
//! also for the messages of a gap before that segment. A message that was begun can therefore
//! always be finished: a buffer full of halves that wait for each other cannot come about.
//!
//! A message leaves the buffer when its upstream connection sends its last byte for the first
//! time. What was sent and is not acknowledged belongs to that connection, as its window limits it.

mod outlet;
mod room;
mod share;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use gridhaul_scenario::units::{BufferLimit, Instant};

use super::Level;
pub use outlet::Departed;
use outlet::{Outlet, Waiting};
use room::{Need, Room};
pub use share::window_share;

/// A collector: one buffer, and an outlet for each upstream connection.
#[derive(Debug, Clone)]
pub struct Aggregate {
    room: Room,
    outlets: Vec<Outlet>,
    /// Members of whose messages some have room and are not whole: seldom many, since a message
    /// of one segment is whole as soon as it arrives.
    begun: BTreeMap<u32, Begun>,
}

/// Messages of a member that have room and are not whole.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// Where the first of them begins and the last one ends in the member's stream.
    start: u64,
    until: u64,
    need: Need,
    outlet: usize,
}

impl Aggregate {
    /// A collector with this buffer and so many upstream connections.
    #[must_use]
    pub fn new(limit: BufferLimit, outlets: usize) -> Self {
        Self {
            room: Room::new(limit),
            outlets: vec![Outlet::default(); outlets],
            begun: BTreeMap::new(),
        }
    }

    /// A segment of a member has arrived that covers `segment` of its stream. Returns up to which
    /// position there is room for it: whatever lies beyond must be cut off, or an acknowledgement
    /// would promise what nobody keeps. Where that is not beyond its start, the segment must be
    /// handled as if it had been lost.
    ///
    /// `next` is the position up to which the member's stream has arrived in order, and `ends` are
    /// those behind the last bytes of the messages that are not whole, in order. Beyond the last
    /// of them nothing is taken in: where a message ends must be known before it has room.
    pub fn admit(
        &mut self,
        now: Instant,
        (member, outlet): (u32, usize),
        segment: Range<u64>,
        next: u64,
        ends: impl IntoIterator<Item = u64>,
    ) -> u64 {
        let begun = self.begun.get(&member);
        // What has arrived in order and is not begun are whole messages.
        let before = begun.map_or(next, |begun| begun.until);
        if segment.end <= before {
            return segment.end;
        }
        let (mut until, mut need) = (before, Need::default());
        for end in ends {
            if end <= until {
                continue;
            }
            let more = need.and(end - until);
            if until >= segment.end || !self.room.fits(more) {
                break;
            }
            (until, need) = (end, more);
        }
        if until <= segment.start || until == before {
            // A segment beyond a gap whose messages do not fit reserves nothing.
            return before;
        }
        self.room.take(need);
        self.outlets[outlet].waiting.rise(now, need.messages);
        let nothing = Begun { start: before, until, need: Need::default(), outlet };
        let begun = self.begun.entry(member).or_insert(nothing);
        begun.until = until;
        begun.need.merge(need);
        until.min(segment.end)
    }

    /// A message of a member is whole: all of it, up to the position `end`, was admitted and has
    /// arrived in order. It takes its place behind those that were whole before it. Returns its
    /// size: so much is to be written to the upstream connection of this outlet at once.
    ///
    /// # Panics
    /// When the message was not admitted.
    pub fn handle_message(
        &mut self,
        now: Instant,
        (member, outlet): (u32, usize),
        end: u64,
    ) -> u64 {
        let begun = self.begun.get_mut(&member).expect("only what was admitted can become whole");
        let bytes = end - begun.start;
        begun.start = end;
        begun.need.subtract(bytes);
        if begun.need.messages == 0 {
            self.begun.remove(&member);
        }
        self.outlets[outlet].push(now, Waiting { member, bytes, since: now });
        bytes
    }

    /// The upstream connection of an outlet has sent the first `sent` bytes of its stream at
    /// least once. Returns the next message that has left the buffer by this; ask until `None`.
    pub fn poll_departed(&mut self, now: Instant, outlet: usize, sent: u64) -> Option<Departed> {
        let departed = self.outlets[outlet].pop(now, sent)?;
        self.room.give_back(Need { messages: 1, bytes: departed.bytes });
        Some(departed)
    }

    /// The far end of an upstream connection has acknowledged the first `acknowledged` bytes.
    pub fn handle_acknowledged(&mut self, now: Instant, outlet: usize, acknowledged: u64) {
        self.outlets[outlet].acknowledge(now, acknowledged);
    }

    /// The connection of a member has failed: what it has begun will never be whole.
    pub fn handle_gone(&mut self, now: Instant, member: u32) {
        if let Some(begun) = self.begun.remove(&member) {
            self.room.give_back(begun.need);
            self.outlets[begun.outlet].waiting.fall(now, begun.need.messages);
        }
    }

    /// Messages that hold room for an outlet, those that are not whole too.
    #[must_use]
    pub fn waiting(&self, outlet: usize) -> &Level {
        &self.outlets[outlet].waiting
    }

    /// Bytes of whole messages of which the only copy is here or on the way from here: taken over
    /// from the members and not acknowledged upstream (RFC 3135, section 4.1: fate sharing).
    #[must_use]
    pub fn only_copy(&self, outlet: usize) -> &Level {
        &self.outlets[outlet].only_copy
    }

    /// Bytes of all whole messages that were handed to an outlet.
    #[must_use]
    pub fn handed_over(&self, outlet: usize) -> u64 {
        self.outlets[outlet].written
    }

    /// Messages and bytes that hold room in the whole collector.
    #[must_use]
    pub fn occupied(&self) -> (u64, u64) {
        let used = self.room.used();
        (used.messages, used.bytes)
    }
}
