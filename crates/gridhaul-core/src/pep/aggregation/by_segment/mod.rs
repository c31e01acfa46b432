//! Admission by segment, for a caller that knows the ends of messages in advance.
//!
//! No payload is kept and none is parsed. The caller passes the ends of messages in the stream of
//! each connection. The aggregator decides which segments are accepted, in which order messages
//! are forwarded, and what waits.
//!
//! Buffer space is reserved for a **message** when the first segment that holds a part of it
//! arrives, also for the messages of a gap before that segment. A message that was begun can
//! therefore always be completed: incomplete messages never wait for each other's space.
//!
//! A message leaves the buffer when its upstream connection sends its last byte for the first
//! time. What was sent and is not acknowledged belongs to that connection, as its window limits it.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use gridhaul_scenario::units::{BufferLimit, Duration, Instant};

use super::TimeAverage;
use super::buffer::Space;
use super::forwarding::Forwarding;

/// An aggregator that admits segments: one buffer, and an outlet for each upstream connection.
#[derive(Debug, Clone)]
pub struct SegmentAggregator {
    forwarding: Forwarding,
    /// Members with incomplete messages that hold buffer space: seldom many, since a message of
    /// one segment is complete as soon as it arrives.
    begun: BTreeMap<u32, Begun>,
}

/// Incomplete messages of a member that hold buffer space.
#[derive(Debug, Clone, Copy)]
struct Begun {
    /// Where the first of them begins and the last one ends in the member's stream.
    start: u64,
    until: u64,
    space: Space,
    outlet: usize,
}

/// A message that has left the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// The member that the message came from.
    pub connection: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// From being complete to the first transmission of its last byte.
    pub waited: Duration,
}

impl SegmentAggregator {
    /// An aggregator with this buffer and so many upstream connections.
    #[must_use]
    pub fn new(limit: BufferLimit, outlets: usize) -> Self {
        Self { forwarding: Forwarding::new(limit, outlets), begun: BTreeMap::new() }
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
        let (mut until, mut space) = (before, Space::default());
        for end in ends {
            if end <= until {
                continue;
            }
            let more = space.and(end - until);
            if until >= segment.end || !self.forwarding.fits(more) {
                break;
            }
            (until, space) = (end, more);
        }
        if until <= segment.start || until == before {
            // A segment beyond a gap whose messages do not fit reserves nothing.
            return before;
        }
        self.forwarding.reserve(now, outlet, space);
        let nothing = Begun { start: before, until, space: Space::default(), outlet };
        let begun = self.begun.entry(member).or_insert(nothing);
        begun.until = until;
        begun.space.merge(space);
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
        begun.space.subtract(bytes);
        if begun.space.messages == 0 {
            self.begun.remove(&member);
        }
        self.forwarding.upstream_mut(outlet).at_risk.increase(now, bytes);
        self.forwarding.complete(now, outlet, (u64::from(member), bytes));
        bytes
    }

    /// The upstream connection of an outlet has sent the first `sent` bytes of its stream at
    /// least once. Returns the next message that has left the buffer by this; ask until `None`.
    pub fn poll_departed(&mut self, now: Instant, outlet: usize, sent: u64) -> Option<Departed> {
        let message = self.forwarding.poll_before(now, outlet, sent)?;
        Some(Departed {
            connection: message.connection as u32,
            bytes: message.bytes,
            waited: now.since(message.since),
        })
    }

    /// The far end of an upstream connection has acknowledged the first `acknowledged` bytes.
    pub fn handle_acknowledged(&mut self, now: Instant, outlet: usize, acknowledged: u64) {
        self.forwarding.upstream_mut(outlet).acknowledge(now, acknowledged);
    }

    /// The connection of a member has failed: what it has begun will never be whole.
    pub fn handle_connection_failed(&mut self, now: Instant, member: u32) {
        if let Some(begun) = self.begun.remove(&member) {
            self.forwarding.cancel(now, begun.outlet, begun.space);
        }
    }

    /// Messages that hold room for an outlet, those that are not whole too.
    #[must_use]
    pub fn waiting(&self, outlet: usize) -> &TimeAverage {
        &self.forwarding.upstream(outlet).waiting
    }

    /// Bytes at risk: accepted from the members as whole messages and not yet acknowledged upstream
    /// (RFC 3135, section 4.1.2: fate sharing).
    #[must_use]
    pub fn bytes_at_risk(&self, outlet: usize) -> &TimeAverage {
        &self.forwarding.upstream(outlet).at_risk
    }

    /// Bytes of all whole messages that were handed to an outlet.
    #[must_use]
    pub fn written(&self, outlet: usize) -> u64 {
        self.forwarding.upstream(outlet).written
    }

    /// Messages and bytes that occupy the whole buffer.
    #[must_use]
    pub fn occupied(&self) -> (u64, u64) {
        let used = self.forwarding.used();
        (used.messages, used.bytes)
    }
}
