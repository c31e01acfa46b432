//! Delivery to a TCP server: the state of all meters' connections, without I/O.
//!
//! The caller passes the records of the log, entry by entry, and reports what happened at the sockets. A record counts as
//! handed over when the server's TCP has acknowledged its bytes. If a connection fails before that, a new one continues at
//! the first message that was not acknowledged completely.

mod connecting;
mod handover;
mod stream;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_scenario::units::{Duration, Instant};

use self::handover::Handover;
use self::stream::{Link, Stream, StreamEnd};
use super::delivery::Delivery;
use super::down::MeterKey;
use crate::protocol::{DOWN_ENDED, DOWN_WINDOW, Identity, Record};

pub use stream::{OpenMeter, StreamIdentity};

/// Identifies a stream. No identifier is used twice: connections, events and plans of a stream that has ended never concern
/// a later one.
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
    streams: BTreeMap<StreamId, Stream>,
    next_id: u64,
    by_key: BTreeMap<MeterKey, StreamId>,
    handover: Handover,
    /// Bytes that are kept in memory, and their limit.
    bytes: u64,
    limit: u64,
    due: BTreeSet<(Instant, StreamId)>,
    connecting: usize,
    /// No connection is attempted before this time, because the server was not reachable.
    gate: Instant,
    gate_backoff: Duration,
    /// Streams with data to send on a connection.
    ready: BTreeSet<StreamId>,
    closed: Vec<(StreamId, MeterKey)>,
    incomplete: Vec<(MeterKey, u16)>,
}

impl ServerStreams {
    /// Records before `position` were handed over. At most `limit` bytes and one entry are kept in memory.
    #[must_use]
    pub const fn new(position: u64, limit: u64) -> Self {
        Self {
            streams: BTreeMap::new(),
            next_id: 0,
            by_key: BTreeMap::new(),
            handover: Handover::new(position),
            bytes: 0,
            limit,
            due: BTreeSet::new(),
            connecting: 0,
            gate: Instant::ZERO,
            gate_backoff: Duration::ZERO,
            ready: BTreeSet::new(),
            closed: Vec::new(),
            incomplete: Vec::new(),
        }
    }

    /// Position of the log before which all records were handed over.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.handover.position()
    }

    /// Whether no further entry is accepted now.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.bytes >= self.limit
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

    /// A meter whose connection is open and whose data up to `received` was handed over by an earlier run.
    pub fn restore(&mut self, now: Instant, meter: &OpenMeter) {
        let OpenMeter { key, ref identity, received } = *meter;
        let id = self.insert(Stream::new(key, identity.clone(), received));
        // The server may have something to send.
        self.schedule(now, id);
    }

    /// The records of an entry of the log follow.
    pub fn begin_entry(&mut self) {
        self.handover.begin_entry();
    }

    /// All records of the entry were passed; the next one begins at this position.
    pub fn end_entry(&mut self, end: u64) {
        self.handover.end_entry(end);
    }

    /// A record of the entry.
    pub fn handle_delivery(&mut self, now: Instant, delivery: &Delivery<'_>) {
        let Some(meter) = delivery.record.meter() else { return };
        let key = (delivery.epoch, meter);
        let known = self.by_key.get(&key).copied();
        match delivery.record {
            Record::Open { identity, .. } => {
                let id = known.unwrap_or_else(|| self.open(delivery, key, &identity));
                let opening = self.handover.acquire();
                if let Some(old) =
                    self.stream(id).and_then(|stream| stream.opening.replace(opening))
                {
                    self.handover.release(old);
                }
                self.schedule(now, id);
            }
            Record::Data { offset, ends_message, bytes, .. } => {
                let shard = delivery.number.0;
                let Some(id) = known.filter(|id| self.continues(*id, offset)) else {
                    return self.break_off(now, known, (key, shard));
                };
                let entry = self.handover.acquire();
                self.bytes += bytes.len() as u64;
                if let Some(stream) = self.stream(id) {
                    stream.push(bytes, ends_message, entry);
                }
                self.schedule(now, id);
            }
            Record::Eof { .. } => self.end(now, known, StreamEnd::Fin),
            Record::Reset { .. } => self.end(now, known, StreamEnd::Reset),
            Record::Restart { .. } | Record::Gap { .. } => {}
        }
    }

    fn open(
        &mut self,
        delivery: &Delivery<'_>,
        key: MeterKey,
        identity: &Identity<'_>,
    ) -> StreamId {
        let shard = delivery.number.0;
        self.insert(Stream::new(key, StreamIdentity::new(shard, identity), 0))
    }

    /// Whether data at this position of a stream follows on what is known of it.
    fn continues(&self, id: StreamId, offset: u64) -> bool {
        let stream = self.streams.get(&id);
        stream.is_some_and(|stream| stream.end.is_none() && stream.received() == offset)
    }

    /// Data after a gap, because records are lost by damage of a log: the server receives what was before the gap, and then
    /// RST.
    fn break_off(&mut self, now: Instant, id: Option<StreamId>, stream: (MeterKey, u16)) {
        self.incomplete.push(stream);
        self.end(now, id, StreamEnd::Reset);
    }

    /// A stream, with its shard, whose later data is not delivered, because some before it is lost by damage of a log. A stream
    /// may be returned several times.
    pub fn poll_incomplete(&mut self) -> Option<(MeterKey, u16)> {
        self.incomplete.pop()
    }

    fn insert(&mut self, stream: Stream) -> StreamId {
        let id = StreamId(self.next_id);
        self.next_id += 1;
        self.by_key.insert(stream.key, id);
        self.streams.insert(id, stream);
        id
    }

    fn end(&mut self, now: Instant, id: Option<StreamId>, end: StreamEnd) {
        let Some(id) = id.filter(|id| !self.is_reset(*id)) else { return };
        let entry = self.handover.acquire();
        let Some(stream) = self.stream(id) else { return self.handover.release(entry) };
        if let Some((_, old)) = stream.end.replace((end, entry)) {
            self.handover.release(old);
        }
        self.schedule(now, id);
        self.settle(id, u64::MAX);
    }

    /// Whether a stream ends with RST: nothing that follows changes this.
    fn is_reset(&self, id: StreamId) -> bool {
        let stream = self.streams.get(&id);
        stream.is_some_and(|stream| matches!(stream.end, Some((StreamEnd::Reset, _))))
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
        let Some(stream) = self.stream(id) else { return false };
        let is_due = stream.link == Link::Connected && stream.is_fin_due();
        stream.is_fin_sent |= is_due;
        is_due
    }

    /// Whether the server may not have acknowledged something of a stream.
    pub fn is_unacknowledged(&mut self, id: StreamId) -> bool {
        self.stream(id).is_some_and(|stream| stream.is_unacknowledged())
    }

    /// The server has not acknowledged the last `unacknowledged` bytes of the connection, FIN counted as one.
    pub fn handle_acknowledged(&mut self, id: StreamId, unacknowledged: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let bytes = stream.acknowledge(unacknowledged, &mut self.handover);
        if bytes > 0 {
            stream.backoff = Duration::ZERO;
        }
        self.bytes -= bytes;
        self.settle(id, unacknowledged);
    }

    /// The server has closed its direction (FIN).
    pub fn handle_server_fin(&mut self, id: StreamId) {
        if let Some(stream) = self.stream(id) {
            stream.is_closed_by_server = true;
            self.settle(id, u64::MAX);
        }
    }

    /// Ends a stream that is complete.
    fn settle(&mut self, id: StreamId, unacknowledged: u64) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let is_idle = stream.link == Link::Idle && !stream.needs_connection();
        let is_handed_over = stream.is_handed_over(unacknowledged);
        match stream.end {
            Some(_) if is_idle => self.remove(id),
            Some((StreamEnd::Reset, _)) if is_handed_over => self.remove(id),
            Some((StreamEnd::Fin, entry)) if is_handed_over => {
                self.handover.release(entry);
                stream.end = None;
                stream.is_complete = true;
                self.settle(id, unacknowledged);
            }
            None if stream.is_complete && stream.is_closed_by_server => self.remove(id),
            _ => {}
        }
    }

    fn remove(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        if let Some(due) = stream.due {
            self.due.remove(&(due, id));
        }
        if stream.link == Link::Connecting {
            self.connecting = self.connecting.saturating_sub(1);
        }
        for entry in stream.opening.into_iter().chain(stream.end.map(|(_, entry)| entry)) {
            self.handover.release(entry);
        }
        self.ready.remove(&id);
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
        let stream = self.streams.get(&id);
        stream.map_or(0, |stream| {
            (DOWN_WINDOW - stream.down_read.saturating_sub(stream.down_confirmed)) as usize
        })
    }

    /// So many bytes were read from the server. False if the meter accepts nothing more: the bytes are dropped.
    pub fn handle_down_read(&mut self, id: StreamId, bytes: u64) -> bool {
        self.stream(id).is_some_and(|stream| {
            stream.down_read += bytes;
            stream.down_confirmed != DOWN_ENDED
        })
    }

    /// The collector has passed the data of the server to the meter's socket up to this position. Returns the stream, from
    /// whose server more can be read now.
    pub fn handle_down_confirmed(&mut self, key: MeterKey, position: u64) -> Option<StreamId> {
        let id = *self.by_key.get(&key)?;
        let stream = self.stream(id)?;
        stream.down_confirmed = position;
        Some(id)
    }
}
