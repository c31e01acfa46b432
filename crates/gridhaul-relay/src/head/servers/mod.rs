//! Delivery to a TCP server: the state of all meters' connections, without I/O.
//!
//! The caller passes the records of the log, entry by entry, and reports what happened at the
//! sockets. The stream of a meter is delivered when the server has closed its direction after FIN
//! ([`Confirmation::Close`]). Until then the log keeps its records, and after a failure of the
//! connection they are resent, from the first message on that the server has not confirmed.

mod confirmation;
mod connect;
mod replay;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use gridhaul_core::coverage_mark::mark;
use gridhaul_scenario::relay::Confirmation;
use gridhaul_scenario::units::{Duration, Instant};

use self::confirmation::Acknowledged;
use self::stream::{Link, Share, Stream, StreamEnd};
use super::data_for_meters::MeterKey;
use super::delivery::Delivery;
use crate::protocol::{DOWN_ENDED, DOWN_WINDOW, Record};

#[cfg(test)]
pub(super) use confirmation::READ_DELAY;
pub use confirmation::Unconfirmed;
pub use stream::{OpenMeter, StreamIdentity};

/// Identifies a stream. No identifier is used twice: connections, events and plans of a stream that
/// has ended never concern a later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(u64);

impl StreamId {
    /// The identifier with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Number of the identifier.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Connections of all meters to a server.
#[derive(Debug)]
pub struct ServerStreams {
    confirmation: Confirmation,
    streams: BTreeMap<StreamId, Stream>,
    next_id: u64,
    by_key: BTreeMap<MeterKey, StreamId>,
    /// Position of the log after the last entry that was read.
    read: u64,
    /// Positions from which on streams need the log.
    holds: BTreeSet<(u64, StreamId)>,
    /// Sums over all streams.
    sums: Share,
    /// Largest number of bytes in memory.
    limit: u64,
    due: BTreeSet<(Instant, StreamId)>,
    connecting: usize,
    /// No connection is attempted before this time, because the server was not reachable.
    next_attempt_at: Instant,
    attempt_backoff: Duration,
    /// Streams with data to send on a connection.
    ready: BTreeSet<StreamId>,
    /// Connected streams whose data is to be read from the log again, and those of them for which
    /// this has begun.
    unloaded: BTreeSet<StreamId>,
    loading: BTreeSet<StreamId>,
    /// Acknowledgements of TCP on open connections, oldest first.
    ageing: VecDeque<Acknowledged>,
    /// Streams that end when their server had time to read.
    ends: BTreeSet<(Instant, StreamId)>,
    /// Streams whose FIN is acknowledged, and whose direction the server has not closed since.
    awaiting_close: BTreeSet<(Instant, StreamId)>,
    closed: Vec<(StreamId, MeterKey)>,
    incomplete: Vec<(MeterKey, u16)>,
}

impl ServerStreams {
    /// Records before `position` were delivered. At most `limit` bytes and one entry are kept in
    /// memory.
    #[must_use]
    pub const fn new(confirmation: Confirmation, position: u64, limit: u64) -> Self {
        Self {
            confirmation,
            streams: BTreeMap::new(),
            next_id: 0,
            by_key: BTreeMap::new(),
            read: position,
            holds: BTreeSet::new(),
            sums: Share { memory: 0, unconfirmed: 0, at_risk: 0, failing: 0, hold: None },
            limit,
            due: BTreeSet::new(),
            connecting: 0,
            next_attempt_at: Instant::ZERO,
            attempt_backoff: Duration::ZERO,
            ready: BTreeSet::new(),
            unloaded: BTreeSet::new(),
            loading: BTreeSet::new(),
            ageing: VecDeque::new(),
            ends: BTreeSet::new(),
            awaiting_close: BTreeSet::new(),
            closed: Vec::new(),
            incomplete: Vec::new(),
        }
    }

    /// Position of the log before which no record is needed any more.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.holds.first().map_or(self.read, |(hold, _)| *hold)
    }

    /// Whether no further entry is accepted now.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.sums.memory >= self.limit
    }

    /// Number of streams.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there is no stream.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// A meter whose connection is open and whose data up to `received` was delivered by an earlier
    /// run.
    pub fn restore(&mut self, now: Instant, meter: &OpenMeter) {
        let OpenMeter { key, ref identity, received } = *meter;
        let mut stream = Stream::new(key, identity.clone(), received);
        stream.is_announced = true;
        let id = self.insert(stream);
        // The server may have something to send.
        self.schedule(now, id);
    }

    /// All records of an entry were passed; the next one begins at this position.
    pub fn end_entry(&mut self, end: u64) {
        self.read = end;
    }

    /// A record of the next entry.
    pub fn handle_delivery(&mut self, now: Instant, delivery: &Delivery<'_>) {
        let Some(meter) = delivery.record.meter() else { return };
        let (key, shard) = ((delivery.epoch, meter), delivery.number.0);
        let known = self.by_key.get(&key).copied();
        match delivery.record {
            Record::Open { identity, .. } => {
                let new =
                    || Stream::new(key, StreamIdentity::new(shard, &identity, delivery.time), 0);
                let id = known.unwrap_or_else(|| self.insert(new()));
                let position = self.read;
                self.update(id, |stream| stream.note(position));
                self.schedule(now, id);
            }
            Record::Data { offset, ends_message, bytes, .. } => {
                let Some(id) = known.filter(|id| self.continues(*id, offset)) else {
                    return self.break_off(now, known, (key, shard));
                };
                let position = self.read;
                self.update(id, |stream| {
                    stream.note(position);
                    stream.push(bytes, ends_message);
                });
                self.schedule(now, id);
            }
            Record::Eof { .. } => self.end(now, known, StreamEnd::Fin),
            Record::Reset { .. } => self.end(now, known, StreamEnd::Reset),
            // A restart was passed as the reset of each meter; data after a gap is recognised by
            // its position.
            Record::Restart { .. } | Record::Gap { .. } => {}
        }
    }

    /// Whether data at this position of a stream follows on what is known of it.
    fn continues(&self, id: StreamId, offset: u64) -> bool {
        let stream = self.streams.get(&id);
        stream.is_some_and(|stream| stream.end.is_none() && stream.received == offset)
    }

    /// Data after a gap, because records are lost by damage of a log: the server receives what was
    /// before the gap, and then RST.
    fn break_off(&mut self, now: Instant, id: Option<StreamId>, stream: (MeterKey, u16)) {
        mark!(server_stream_with_a_gap_ends_with_a_reset if id.is_some());
        mark!(server_stream_without_its_start_is_not_delivered if id.is_none());
        self.incomplete.push(stream);
        self.end(now, id, StreamEnd::Reset);
    }

    /// A stream, with its shard, whose later data is not delivered, because some before it is lost
    /// by damage of a log. A stream may be returned several times.
    pub fn poll_incomplete(&mut self) -> Option<(MeterKey, u16)> {
        self.incomplete.pop()
    }

    fn insert(&mut self, stream: Stream) -> StreamId {
        let id = StreamId(self.next_id);
        self.next_id += 1;
        self.by_key.insert(stream.key, id);
        self.count(id, Share::default(), stream.share());
        self.streams.insert(id, stream);
        id
    }

    fn end(&mut self, now: Instant, id: Option<StreamId>, end: StreamEnd) {
        let Some(id) = id else { return };
        let position = self.read;
        let is_new = self.update(id, |stream| {
            // Nothing that follows changes RST.
            let is_new = stream.end != Some(StreamEnd::Reset);
            if is_new {
                stream.note(position);
                stream.end = Some(end);
            }
            is_new
        });
        // A stream without data has nothing to send but its end, for which it needs a connection.
        if is_new == Some(true) {
            self.schedule(now, id);
            self.end_if_complete(now, id);
        }
    }

    /// Changes a stream, and keeps the sums over all streams.
    fn update<R>(&mut self, id: StreamId, change: impl FnOnce(&mut Stream) -> R) -> Option<R> {
        let stream = self.streams.get_mut(&id)?;
        let before = stream.share();
        let result = change(stream);
        let after = stream.share();
        self.count(id, before, after);
        Some(result)
    }

    fn count(&mut self, id: StreamId, before: Share, after: Share) {
        // Sums over a million streams are kept by differences; each addition comes first, so that
        // no intermediate value is below zero.
        self.sums.memory = self.sums.memory + after.memory - before.memory;
        self.sums.unconfirmed = self.sums.unconfirmed + after.unconfirmed - before.unconfirmed;
        self.sums.at_risk = self.sums.at_risk + after.at_risk - before.at_risk;
        self.sums.failing = self.sums.failing + after.failing - before.failing;
        if before.hold != after.hold {
            if let Some(hold) = before.hold {
                self.holds.remove(&(hold, id));
            }
            if let Some(hold) = after.hold {
                self.holds.insert((hold, id));
            }
        }
    }

    fn stream(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.streams.get_mut(&id)
    }

    /// Plans what the present state of a stream demands: sending, or an attempt to connect.
    fn schedule(&mut self, now: Instant, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        match stream.link {
            Link::Connected => {
                self.ready.insert(id);
            }
            Link::Idle if stream.due.is_none() => {
                let at = now + stream.backoff;
                stream.due = Some(at);
                self.due.insert((at, id));
            }
            Link::Idle | Link::Connecting => {}
        }
    }

    /// A stream whose connection can send something.
    pub fn poll_ready(&mut self) -> Option<StreamId> {
        self.ready.pop_first()
    }

    /// The next bytes to send on the connection of a stream.
    pub fn unsent(&mut self, id: StreamId) -> &[u8] {
        let connected = self.stream(id).filter(|stream| stream.link == Link::Connected);
        connected.map_or(&[], Stream::unsent)
    }

    /// So many bytes of [`Self::unsent`] were sent.
    pub fn handle_sent(&mut self, id: StreamId, bytes: u64) {
        if let Some(stream) = self.stream(id) {
            stream.sent(bytes);
        }
    }

    /// Whether FIN is to be sent on the connection of a stream now. The caller sends it.
    pub fn poll_fin(&mut self, id: StreamId) -> bool {
        let confirmation = self.confirmation;
        let Some(stream) = self.stream(id) else { return false };
        let is_due = stream.link == Link::Connected
            && stream.is_fin_due()
            && !stream.must_wait_before_fin(confirmation);
        stream.is_fin_sent |= is_due;
        is_due
    }

    fn remove(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        self.count(id, stream.share(), Share::default());
        if let Some(due) = stream.due {
            self.due.remove(&(due, id));
        }
        self.forget_connection(id, &stream.timers);
        if stream.link == Link::Connecting {
            self.connecting = self.connecting.saturating_sub(1);
        }
        self.by_key.remove(&stream.key);
        self.closed.push((id, stream.key));
    }

    /// A stream that has ended, and its meter: the connection is to be closed.
    pub fn poll_closed(&mut self) -> Option<(StreamId, MeterKey)> {
        self.closed.pop()
    }

    /// Meter and identity of a stream.
    #[must_use]
    pub fn identity(&self, id: StreamId) -> Option<(MeterKey, &StreamIdentity)> {
        let stream = self.streams.get(&id)?;
        Some((stream.key, &stream.identity))
    }

    /// Meter and shard of a stream.
    #[must_use]
    pub fn meter(&self, id: StreamId) -> Option<(MeterKey, u16)> {
        self.identity(id).map(|(key, identity)| (key, identity.shard))
    }

    /// Number of bytes that may be read from the server for a meter.
    #[must_use]
    pub fn down_window(&self, id: StreamId) -> usize {
        self.streams.get(&id).map_or(0, |stream| {
            (DOWN_WINDOW - stream.down_read.saturating_sub(stream.down_confirmed)) as usize
        })
    }

    /// So many bytes were read from the server. False if the meter accepts nothing more: the bytes
    /// are dropped.
    pub fn handle_down_read(&mut self, id: StreamId, bytes: u64) -> bool {
        self.stream(id).is_some_and(|stream| {
            stream.down_read += bytes;
            stream.note_answer();
            stream.down_confirmed != DOWN_ENDED
        })
    }
}
