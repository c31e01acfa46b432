//! The stream of one meter on its way to a server.

use std::collections::VecDeque;
use std::net::SocketAddr;

use gridhaul_scenario::units::{Duration, Instant};

use super::confirmation::Answer;
use super::connect::BACKOFF_MIN;
use crate::head::MeterKey;
use crate::protocol::{Identity, Reception};

/// Data of a meter that the server has not confirmed, and the state of the connection to the
/// server.
#[derive(Debug)]
pub(super) struct Stream {
    pub key: MeterKey,
    pub identity: StreamIdentity,
    pub link: Link,
    /// When the next attempt to connect is made, if one is planned, and the time until the one
    /// after it.
    pub due: Option<Instant>,
    pub backoff: Duration,
    /// The server has seen a connection of the stream.
    pub is_announced: bool,
    /// Number of the present connection.
    pub connection: u32,
    pub end: Option<StreamEnd>,
    pub is_fin_sent: bool,
    pub is_fin_acknowledged: bool,
    /// The server has closed its direction.
    pub is_closed_by_server: bool,
    /// The log need not keep the stream any more, but the server's direction is open.
    pub is_delivered: bool,
    pub timers: Timers,
    /// Bytes read from the server, and of these confirmed by the collector.
    pub down_read: u64,
    pub down_confirmed: u64,
    pub answers: VecDeque<Answer>,
    /// Whether an acknowledgement waits until it is old enough.
    pub is_ageing: bool,
    /// Position in the stream after the last byte that was read from the log, and after the last
    /// one in memory.
    pub received: u64,
    pub loaded: u64,
    /// Positions on the present connection: first byte, next byte to send, after the last byte that
    /// the server's TCP has acknowledged, and after the last message within it.
    start: u64,
    next: u64,
    pub acknowledged: u64,
    pub boundary: u64,
    /// Where a new connection begins.
    pub resume: u64,
    /// The server has confirmed the bytes before this position.
    pub confirmed: u64,
    pieces: VecDeque<Piece>,
    /// Bytes of all pieces.
    pub memory: u64,
    /// Number of pieces that were sent completely on the present connection.
    sent_pieces: usize,
    /// Where records are in the log.
    places: VecDeque<Place>,
    /// Whether the ends of messages are known.
    is_framed: bool,
}

/// Where the stream of a meter comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamIdentity {
    /// Shard of the meter.
    pub shard: u16,
    /// Address of the meter.
    pub peer: Option<SocketAddr>,
    /// Address to which the meter has connected.
    pub local: Option<SocketAddr>,
    /// When the collector has accepted the connection.
    pub opened: Option<Reception>,
}

/// A meter whose connection is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenMeter {
    /// Epoch and number of the meter.
    pub key: MeterKey,
    /// Where the stream comes from.
    pub identity: StreamIdentity,
    /// Number of bytes received.
    pub received: u64,
}

impl StreamIdentity {
    pub(in crate::head) const fn new(
        shard: u16,
        identity: &Identity<'_>,
        opened: Option<Reception>,
    ) -> Self {
        Self { shard, peer: identity.peer, local: identity.local, opened }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    Idle,
    Connecting,
    Connected,
}

/// How the connection of a meter has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamEnd {
    Fin,
    Reset,
}

/// Times of the present connection.
#[derive(Debug, Default)]
pub(super) struct Timers {
    /// When a server has had time to read, before FIN or RST.
    pub end_at: Option<Instant>,
    /// FIN need not wait any longer.
    pub had_time_to_read: bool,
    /// When FIN was acknowledged, until the server closes its direction.
    pub awaiting_close_since: Option<Instant>,
}

/// A data record in memory.
#[derive(Debug)]
struct Piece {
    /// Position in the stream after the bytes.
    end: u64,
    bytes: Vec<u8>,
    ends_message: bool,
}

/// The records of the stream from `offset` on are at or after `position` in the log.
#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    position: u64,
}

/// A part of a stream's sums over all streams.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Share {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes that the server's TCP has acknowledged and the server has not confirmed.
    pub unconfirmed: u64,
    /// Part of the unconfirmed bytes that cannot be sent again.
    pub at_risk: u64,
    /// Streams whose connections have failed more than once since something was confirmed.
    pub failing: u64,
    /// Position of the log from which on the stream needs it.
    pub hold: Option<u64>,
}

/// Bytes of an incomplete message after which a new connection may begin within it.
const INCOMPLETE_MAX: u64 = 64 * 1024;

/// Distance of noted places in the log: a stream keeps so much more of the log than it needs.
const PLACE_DISTANCE: u64 = 256 * 1024;

impl Stream {
    pub(super) const fn new(key: MeterKey, identity: StreamIdentity, position: u64) -> Self {
        Self {
            key,
            identity,
            link: Link::Idle,
            due: None,
            backoff: Duration::ZERO,
            is_announced: false,
            connection: 0,
            end: None,
            is_fin_sent: false,
            is_fin_acknowledged: false,
            is_closed_by_server: false,
            is_delivered: false,
            timers: Timers { end_at: None, had_time_to_read: false, awaiting_close_since: None },
            down_read: 0,
            down_confirmed: 0,
            answers: VecDeque::new(),
            is_ageing: false,
            received: position,
            loaded: position,
            start: position,
            next: position,
            acknowledged: position,
            boundary: position,
            resume: position,
            confirmed: position,
            pieces: VecDeque::new(),
            memory: 0,
            sent_pieces: 0,
            places: VecDeque::new(),
            is_framed: false,
        }
    }

    /// Notes that the next record of the stream is in the entry at this position of the log.
    pub(super) fn note(&mut self, position: u64) {
        let offset = self.received;
        // Nothing held the log: the entries at earlier places may have been removed.
        if self.hold().is_none() {
            self.places.clear();
        }
        let last = self.places.back().map(|place| place.position);
        if last.is_none_or(|last| position >= last + PLACE_DISTANCE) {
            self.places.push_back(Place { offset, position });
        }
    }

    /// Adds data that begins at the end of the stream. If data before it is not in memory, the log
    /// is read again later.
    pub(super) fn push(&mut self, bytes: &[u8], ends_message: bool) {
        let is_next = self.is_loaded();
        self.is_framed |= ends_message;
        self.received += bytes.len() as u64;
        if is_next {
            self.load(bytes, ends_message);
        }
    }

    /// Adds data that begins at `loaded` to the memory.
    pub(super) fn load(&mut self, bytes: &[u8], ends_message: bool) {
        self.loaded += bytes.len() as u64;
        self.memory += bytes.len() as u64;
        self.pieces.push_back(Piece { end: self.loaded, bytes: bytes.to_vec(), ends_message });
    }

    /// A connection to the server exists. Returns the position of its first byte in the stream.
    pub(super) const fn connect(&mut self) -> u64 {
        self.link = Link::Connected;
        self.is_announced = true;
        self.connection += 1;
        self.resume
    }

    /// The connection has failed. What the server has not confirmed is resent, from memory or from
    /// the log.
    pub(super) fn disconnect(&mut self) {
        self.link = Link::Idle;
        (self.is_fin_sent, self.is_fin_acknowledged) = (false, false);
        (self.is_closed_by_server, self.is_ageing) = (false, false);
        self.answers.clear();
        let first = self.pieces.front().map(|piece| piece.end - piece.bytes.len() as u64);
        // Acknowledged pieces have left the memory, though the server may not have read them: the
        // log is read again from there.
        if first.is_none_or(|first| first != self.resume) {
            self.pieces.clear();
            (self.memory, self.loaded) = (0, self.resume);
        }
        self.sent_pieces = 0;
        (self.start, self.next) = (self.resume, self.resume);
        (self.acknowledged, self.boundary) = (self.resume, self.resume);
        self.confirmed = self.confirmed.min(self.resume);
    }

    /// Whether everything that was read from the log was sent, or is in memory.
    pub(super) const fn is_loaded(&self) -> bool {
        self.loaded == self.received
    }

    /// The data after `loaded` cannot be read any more.
    pub(super) const fn truncate(&mut self) {
        self.received = self.loaded;
    }

    /// The next bytes to send on the present connection; none if everything in memory was sent.
    pub(super) fn unsent(&mut self) -> &[u8] {
        while self.pieces.get(self.sent_pieces).is_some_and(|piece| piece.end <= self.next) {
            self.sent_pieces += 1;
        }
        self.pieces.get(self.sent_pieces).map_or(&[], |piece| {
            let rest = (piece.end.saturating_sub(self.next) as usize).min(piece.bytes.len());
            &piece.bytes[piece.bytes.len() - rest..]
        })
    }

    /// So many of the bytes of [`Self::unsent`] were sent.
    pub(super) const fn sent(&mut self, bytes: u64) {
        self.next += bytes;
    }

    /// Whether everything was sent and FIN follows.
    pub(super) const fn is_fin_due(&self) -> bool {
        matches!(self.end, Some(StreamEnd::Fin)) && !self.is_fin_sent && self.next == self.received
    }

    /// Whether the server's TCP may not have acknowledged something that was sent.
    pub(super) const fn is_unacknowledged(&self) -> bool {
        self.acknowledged < self.next || self.is_fin_sent && !self.is_fin_acknowledged
    }

    /// Whether a connection to the server is needed to deliver something.
    pub(super) const fn needs_connection(&self) -> bool {
        !self.is_delivered
            && (self.resume < self.received
                || matches!(self.end, Some(StreamEnd::Fin))
                || self.end.is_none() && !self.is_announced)
    }

    /// The server has not acknowledged the last `unacknowledged` bytes of the present connection,
    /// FIN counted as one. Data that was acknowledged leaves the memory.
    pub(super) fn acknowledge(&mut self, unacknowledged: u64) {
        let of_data = unacknowledged.saturating_sub(u64::from(self.is_fin_sent));
        let position = self.next.saturating_sub(of_data).max(self.start);
        self.acknowledged = self.acknowledged.max(position);
        self.is_fin_acknowledged |= self.is_fin_sent && unacknowledged == 0;
        while self.pieces.front().is_some_and(|piece| piece.end <= position)
            && let Some(piece) = self.pieces.pop_front()
        {
            self.memory -= piece.bytes.len() as u64;
            self.sent_pieces = self.sent_pieces.saturating_sub(1);
            // A new connection must begin with the start of a message.
            let is_long = piece.end - self.boundary >= INCOMPLETE_MAX;
            if piece.ends_message || !self.is_framed || is_long {
                self.boundary = piece.end;
            }
        }
    }

    /// A new connection begins at this position or after it. Returns whether this is progress.
    pub(super) fn release(&mut self, position: u64) -> bool {
        if position <= self.resume {
            return false;
        }
        self.resume = position;
        while self.places.get(1).is_some_and(|place| place.offset <= self.resume) {
            self.places.pop_front();
        }
        true
    }

    /// Whether the log is needed from an entry on.
    fn hold(&self) -> Option<u64> {
        // A connection without new data for months must not keep the log for as long.
        let is_idle = self.end.is_none() && self.is_announced && self.resume == self.received;
        if self.is_delivered || is_idle {
            return None;
        }
        self.places.front().map(|place| place.position)
    }

    /// Position of the log at or before the record that begins at `loaded`.
    pub(super) fn place_of_unloaded(&self) -> Option<u64> {
        let mut before = self.places.iter().rev().filter(|place| place.offset <= self.loaded);
        before.next().map(|place| place.position)
    }

    /// The stream's part of the sums over all streams.
    pub(super) fn share(&self) -> Share {
        Share {
            memory: self.memory,
            unconfirmed: self.acknowledged.saturating_sub(self.confirmed),
            at_risk: self.resume.min(self.acknowledged).saturating_sub(self.confirmed),
            failing: u64::from(self.backoff > BACKOFF_MIN && self.needs_connection()),
            hold: self.hold(),
        }
    }
}
