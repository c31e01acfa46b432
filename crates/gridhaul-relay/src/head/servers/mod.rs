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

/// Connections of all meters to a server.
#[derive(Debug)]
pub struct ServerStreams {
    rows: Vec<Option<Stream>>,
    free: Vec<u32>,
    by_key: BTreeMap<MeterKey, u32>,
    handover: Handover,
    /// Bytes that are kept in memory, and their limit.
    bytes: u64,
    limit: u64,
    due: BTreeSet<(Instant, u32)>,
    connecting: usize,
    /// No connection is attempted before this time, because the server was not reachable.
    gate: Instant,
    gate_backoff: Duration,
    /// Streams with data to send on a connection.
    ready: BTreeSet<u32>,
    closed: Vec<(u32, MeterKey)>,
    incomplete: Vec<(MeterKey, u16)>,
}

impl ServerStreams {
    /// Records before `position` were handed over. At most `limit` bytes and one entry are kept in memory.
    #[must_use]
    pub const fn new(position: u64, limit: u64) -> Self {
        Self {
            rows: Vec::new(),
            free: Vec::new(),
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
        let row = self.insert(Stream::new(key, identity.clone(), received));
        // The server may have something to send.
        self.schedule(now, row);
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
                let row = known.unwrap_or_else(|| self.open(delivery, key, &identity));
                let opening = self.handover.acquire();
                if let Some(old) =
                    self.stream(row).and_then(|stream| stream.opening.replace(opening))
                {
                    self.handover.release(old);
                }
                self.schedule(now, row);
            }
            Record::Data { offset, ends_message, bytes, .. } => {
                let shard = delivery.number.map_or(0, |(shard, _)| shard);
                let Some(row) = known.filter(|row| self.continues(*row, offset)) else {
                    return self.break_off(now, known, (key, shard));
                };
                let entry = self.handover.acquire();
                self.bytes += bytes.len() as u64;
                if let Some(stream) = self.stream(row) {
                    stream.push(bytes, ends_message, entry);
                }
                self.schedule(now, row);
            }
            Record::Eof { .. } => self.end(now, known, StreamEnd::Fin),
            Record::Reset { .. } => self.end(now, known, StreamEnd::Reset),
            Record::Restart { .. } => {}
        }
    }

    fn open(&mut self, delivery: &Delivery<'_>, key: MeterKey, identity: &Identity<'_>) -> u32 {
        let shard = delivery.number.map_or(0, |(shard, _)| shard);
        self.insert(Stream::new(key, StreamIdentity::new(shard, identity), 0))
    }

    /// Whether data at this position of a stream follows on what is known of it.
    fn continues(&self, row: u32, offset: u64) -> bool {
        let stream = self.rows.get(row as usize).and_then(Option::as_ref);
        stream.is_some_and(|stream| stream.end.is_none() && stream.received() == offset)
    }

    /// Data after a gap, because records are lost by damage of a log: the server receives what was before the gap, and then
    /// RST.
    fn break_off(&mut self, now: Instant, row: Option<u32>, stream: (MeterKey, u16)) {
        self.incomplete.push(stream);
        self.end(now, row, StreamEnd::Reset);
    }

    /// A stream, with its shard, whose later data is not delivered, because some before it is lost by damage of a log. A stream
    /// may be returned several times.
    pub fn poll_incomplete(&mut self) -> Option<(MeterKey, u16)> {
        self.incomplete.pop()
    }

    fn insert(&mut self, stream: Stream) -> u32 {
        let key = stream.key;
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            (self.rows.len() - 1) as u32
        });
        self.rows[row as usize] = Some(stream);
        self.by_key.insert(key, row);
        row
    }

    fn end(&mut self, now: Instant, row: Option<u32>, end: StreamEnd) {
        let Some(row) = row.filter(|row| !self.is_reset(*row)) else { return };
        let entry = self.handover.acquire();
        let Some(stream) = self.stream(row) else { return self.handover.release(entry) };
        if let Some((_, old)) = stream.end.replace((end, entry)) {
            self.handover.release(old);
        }
        self.schedule(now, row);
        self.settle(row, u64::MAX);
    }

    /// Whether a stream ends with RST: nothing that follows changes this.
    fn is_reset(&self, row: u32) -> bool {
        let stream = self.rows.get(row as usize).and_then(Option::as_ref);
        stream.is_some_and(|stream| matches!(stream.end, Some((StreamEnd::Reset, _))))
    }

    fn stream(&mut self, row: u32) -> Option<&mut Stream> {
        self.rows.get_mut(row as usize)?.as_mut()
    }

    /// Plans what the present state of a stream demands: sending, or an attempt to connect.
    fn schedule(&mut self, now: Instant, row: u32) {
        let Some(stream) = self.rows.get_mut(row as usize).and_then(Option::as_mut) else { return };
        match stream.link {
            Link::Connected => {
                self.ready.insert(row);
            }
            Link::Idle if stream.due.is_none() => {
                let at = now + stream.backoff;
                stream.due = Some(at);
                self.due.insert((at, row));
            }
            Link::Idle | Link::Connecting => {}
        }
    }

    /// A stream whose connection can send something.
    pub fn poll_ready(&mut self) -> Option<u32> {
        self.ready.pop_first()
    }

    /// The next bytes to send on the connection of a stream.
    pub fn unsent(&mut self, row: u32) -> &[u8] {
        let connected = self.stream(row).filter(|stream| stream.link == Link::Connected);
        connected.map_or(&[], Stream::unsent)
    }

    /// So many bytes of [`Self::unsent`] were sent.
    pub fn handle_sent(&mut self, row: u32, bytes: u64) {
        if let Some(stream) = self.stream(row) {
            stream.sent(bytes);
        }
    }

    /// Whether FIN is to be sent on the connection of a stream now. The caller sends it.
    pub fn poll_fin(&mut self, row: u32) -> bool {
        let Some(stream) = self.stream(row) else { return false };
        let is_due = stream.link == Link::Connected && stream.is_fin_due();
        stream.is_fin_sent |= is_due;
        is_due
    }

    /// Whether the server may not have acknowledged something of a stream.
    pub fn is_unacknowledged(&mut self, row: u32) -> bool {
        self.stream(row).is_some_and(|stream| stream.is_unacknowledged())
    }

    /// The server has not acknowledged the last `unacknowledged` bytes of the connection, FIN counted as one.
    pub fn handle_acknowledged(&mut self, row: u32, unacknowledged: u64) {
        let Some(stream) = self.rows.get_mut(row as usize).and_then(Option::as_mut) else { return };
        let bytes = stream.acknowledge(unacknowledged, &mut self.handover);
        if bytes > 0 {
            stream.backoff = Duration::ZERO;
        }
        self.bytes -= bytes;
        self.settle(row, unacknowledged);
    }

    /// The server has closed its direction (FIN).
    pub fn handle_server_fin(&mut self, row: u32) {
        if let Some(stream) = self.stream(row) {
            stream.is_closed_by_server = true;
            self.settle(row, u64::MAX);
        }
    }

    /// Ends a stream that is complete.
    fn settle(&mut self, row: u32, unacknowledged: u64) {
        let Some(stream) = self.rows.get_mut(row as usize).and_then(Option::as_mut) else { return };
        let is_idle = stream.link == Link::Idle && !stream.needs_connection();
        let is_handed_over = stream.is_handed_over(unacknowledged);
        match stream.end {
            Some(_) if is_idle => self.remove(row),
            Some((StreamEnd::Reset, _)) if is_handed_over => self.remove(row),
            Some((StreamEnd::Fin, entry)) if is_handed_over => {
                self.handover.release(entry);
                stream.end = None;
                stream.is_complete = true;
                self.settle(row, unacknowledged);
            }
            None if stream.is_complete && stream.is_closed_by_server => self.remove(row),
            _ => {}
        }
    }

    fn remove(&mut self, row: u32) {
        let Some(stream) = self.rows.get_mut(row as usize).and_then(Option::take) else { return };
        if let Some(due) = stream.due {
            self.due.remove(&(due, row));
        }
        if stream.link == Link::Connecting {
            self.connecting = self.connecting.saturating_sub(1);
        }
        for entry in stream.opening.into_iter().chain(stream.end.map(|(_, entry)| entry)) {
            self.handover.release(entry);
        }
        self.ready.remove(&row);
        self.by_key.remove(&stream.key);
        self.free.push(row);
        self.closed.push((row, stream.key));
    }

    /// A stream that has ended, and its meter: the connection is to be closed.
    pub fn poll_closed(&mut self) -> Option<(u32, MeterKey)> {
        self.closed.pop()
    }

    /// Meter and identity of a stream.
    #[must_use]
    pub fn identity(&self, row: u32) -> Option<(MeterKey, &StreamIdentity)> {
        let stream = self.rows.get(row as usize)?.as_ref()?;
        Some((stream.key, &stream.identity))
    }

    /// Meter and shard of a stream.
    #[must_use]
    pub fn meter(&self, row: u32) -> Option<(MeterKey, u16)> {
        self.identity(row).map(|(key, identity)| (key, identity.shard))
    }

    /// Number of bytes that may be read from the server for a meter.
    #[must_use]
    pub fn down_window(&self, row: u32) -> usize {
        let stream = self.rows.get(row as usize).and_then(Option::as_ref);
        stream.map_or(0, |stream| {
            (DOWN_WINDOW - stream.down_read.saturating_sub(stream.down_confirmed)) as usize
        })
    }

    /// So many bytes were read from the server. False if the meter accepts nothing more: the bytes are dropped.
    pub fn handle_down_read(&mut self, row: u32, bytes: u64) -> bool {
        self.stream(row).is_some_and(|stream| {
            stream.down_read += bytes;
            stream.down_confirmed != DOWN_ENDED
        })
    }

    /// The collector has passed the data of the server to the meter's socket up to this position. Returns the stream, from
    /// whose server more can be read now.
    pub fn handle_down_confirmed(&mut self, key: MeterKey, position: u64) -> Option<u32> {
        let row = *self.by_key.get(&key)?;
        let stream = self.stream(row)?;
        stream.down_confirmed = position;
        Some(row)
    }
}
