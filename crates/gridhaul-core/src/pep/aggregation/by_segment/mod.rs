//! Admission by segment, for a caller that has the ends of messages in advance.
//!
//! Payload is neither stored nor parsed. The caller passes the ends of messages in the stream of
//! each connection. The aggregator decides which segments are accepted, and in which order messages
//! are forwarded.
//!
//! Buffer space is reserved for a **message** when the first segment that holds a part of it
//! arrives, also for the messages of a gap before that segment. A message with reserved
//! space can always be completed: incomplete messages never wait for each other's space.
//!
//! A message leaves the buffer when its upstream connection sends its last byte for the first
//! time. Data that was sent and is not acknowledged counts toward the window of that connection.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use gridhaul_scenario::units::{BufferLimit, Duration, Instant};

use super::TimeAverage;
use super::buffer::Space;
use super::forwarding::Forwarding;
use super::upstream::Waiting;

/// An aggregator that admits segments.
#[derive(Debug, Clone)]
pub struct SegmentAggregator {
    forwarding: Forwarding,
    /// Connections with incomplete messages for which space is reserved: rarely many, since a
    /// message of one segment is complete as soon as it arrives.
    incomplete: BTreeMap<u32, IncompleteMessages>,
}

/// Incomplete messages of a connection, for which space is reserved.
#[derive(Debug, Clone, Copy)]
struct IncompleteMessages {
    /// Beginning of the first and end of the last of them in the stream of the connection.
    start: u64,
    until: u64,
    /// Position up to which the stream has arrived in order.
    received: u64,
    space: Space,
}

/// A message that has left the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Departed {
    /// The connection that the message came from.
    pub connection: u32,
    /// Size in bytes.
    pub bytes: u64,
    /// Time between completion and the first transmission of the last byte.
    pub waited: Duration,
}

impl SegmentAggregator {
    /// An aggregator with this buffer limit and `upstreams` upstream connections.
    #[must_use]
    pub fn new(limit: BufferLimit, upstreams: usize) -> Self {
        Self { forwarding: Forwarding::new(limit, upstreams), incomplete: BTreeMap::new() }
    }

    /// Admits a segment of a connection that covers the positions `segment` of its stream. Returns
    /// the position up to which space is reserved. The caller must discard bytes beyond this
    /// position, because acknowledged bytes must be stored. If the position is not after the start
    /// of the segment, the caller must treat the segment as lost.
    ///
    /// `next` is the position up to which the stream has arrived in order, and `ends` are the ends
    /// of the incomplete messages, in order. Nothing is accepted beyond the last of them: space can
    /// be reserved only for a message whose end is known.
    pub fn admit(
        &mut self,
        now: Instant,
        (connection, upstream): (u32, usize),
        segment: Range<u64>,
        next: u64,
        ends: impl IntoIterator<Item = u64>,
    ) -> u64 {
        let incomplete = self.incomplete.get(&connection);
        // Bytes that have arrived in order and have no reservation belong to complete messages.
        let before = incomplete.map_or(next, |incomplete| incomplete.until);
        if segment.end <= before {
            return segment.end;
        }
        let (mut until, mut space) = (before, Space::default());
        for end in ends {
            if end <= until {
                continue;
            }
            let more = space.plus_message(end - until);
            if until >= segment.end || !self.forwarding.fits(more) {
                break;
            }
            (until, space) = (end, more);
        }
        if until <= segment.start || until == before {
            // A segment beyond a gap whose messages do not fit reserves nothing.
            return before;
        }
        self.forwarding.reserve(now, upstream, space);
        let empty =
            IncompleteMessages { start: before, until, received: before, space: Space::default() };
        let incomplete = self.incomplete.entry(connection).or_insert(empty);
        incomplete.until = until;
        incomplete.space.add(space);
        until.min(segment.end)
    }

    /// A message of a connection is complete: all bytes up to the position `end` were admitted and
    /// have arrived in order. The message is appended to the upstream queue. Returns its size,
    /// which the caller must write to the upstream connection at once.
    ///
    /// # Panics
    /// When the message was not admitted.
    pub fn handle_message(
        &mut self,
        now: Instant,
        (connection, upstream): (u32, usize),
        end: u64,
    ) -> u64 {
        let incomplete =
            self.incomplete.get_mut(&connection).expect("a complete message was admitted");
        let bytes = end - incomplete.start;
        incomplete.start = end;
        let received = incomplete.received;
        incomplete.received = end.max(received);
        incomplete.space.subtract_message(bytes);
        if incomplete.space.messages == 0 {
            self.incomplete.remove(&connection);
        }
        let new_bytes = end.saturating_sub(received);
        self.forwarding.upstream_mut(upstream).at_risk.increase(now, new_bytes);
        let connection = u64::from(connection);
        self.forwarding.complete(upstream, Waiting { connection, bytes, since: now });
        bytes
    }

    /// The stream of a connection has arrived in order up to the position `next`, and its receiver
    /// acknowledges these bytes. The caller has passed the messages that are complete to
    /// [`handle_message`](Self::handle_message); the other bytes count as bytes at risk from now
    /// on.
    pub fn handle_received(
        &mut self,
        now: Instant,
        (connection, upstream): (u32, usize),
        next: u64,
    ) {
        let Some(incomplete) = self.incomplete.get_mut(&connection) else { return };
        if next > incomplete.received {
            let new_bytes = next - std::mem::replace(&mut incomplete.received, next);
            self.forwarding.upstream_mut(upstream).at_risk.increase(now, new_bytes);
        }
    }

    /// An upstream connection has sent the first `sent` bytes of its stream at least once. Returns
    /// the next message that has left the buffer; poll until `None`.
    pub fn poll_departed(&mut self, now: Instant, upstream: usize, sent: u64) -> Option<Departed> {
        let message = self.forwarding.poll_before(now, upstream, sent)?;
        Some(Departed {
            connection: message.connection as u32,
            bytes: message.bytes,
            waited: now.since(message.since),
        })
    }

    /// The receiver of an upstream connection has acknowledged the first `acknowledged` bytes.
    pub fn handle_acknowledged(&mut self, now: Instant, upstream: usize, acknowledged: u64) {
        self.forwarding.upstream_mut(upstream).acknowledge(now, acknowledged);
    }

    /// Messages for an upstream connection that occupy buffer space, incomplete ones included.
    #[must_use]
    pub fn waiting(&self, upstream: usize) -> &TimeAverage {
        &self.forwarding.upstream(upstream).waiting
    }

    /// Bytes at risk: received in order and not yet acknowledged upstream, incomplete messages
    /// included (RFC 3135, section 4.1.2: fate sharing).
    #[must_use]
    pub fn bytes_at_risk(&self, upstream: usize) -> &TimeAverage {
        &self.forwarding.upstream(upstream).at_risk
    }

    /// The maxima of all upstream connections begin anew: the measured time begins.
    pub fn restart_maxima(&mut self) {
        self.forwarding.restart_maxima();
    }

    /// Total bytes of complete messages that were written to an upstream connection.
    #[must_use]
    pub fn written(&self, upstream: usize) -> u64 {
        self.forwarding.upstream(upstream).written
    }

    /// Messages and bytes that occupy the whole buffer.
    #[must_use]
    pub fn occupied(&self) -> (u64, u64) {
        let used = self.forwarding.used();
        (used.messages, used.bytes)
    }
}
