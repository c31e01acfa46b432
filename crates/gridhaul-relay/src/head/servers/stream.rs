//! The stream of one meter on its way to a server.

use std::collections::VecDeque;
use std::net::SocketAddr;

use gridhaul_scenario::units::{Duration, Instant};

use super::handover::{EntryNumber, Handover};
use crate::head::MeterKey;
use crate::protocol::Identity;

/// Data of a meter that the server has not acknowledged, and the state of the connection to the server.
#[derive(Debug)]
pub(super) struct Stream {
    pub key: MeterKey,
    pub identity: StreamIdentity,
    pub link: Link,
    /// When the next attempt to connect is made, if one is planned, and the time until the one after it.
    pub due: Option<Instant>,
    pub backoff: Duration,
    /// The record of the meter's connection, until a connection to the server exists.
    pub opening: Option<EntryNumber>,
    pub end: Option<(StreamEnd, EntryNumber)>,
    pub is_fin_sent: bool,
    /// FIN was handed over; only the server's direction is open.
    pub is_complete: bool,
    /// The server has closed its direction.
    pub is_closed_by_server: bool,
    /// Bytes read from the server, and of these confirmed by the collector.
    pub down_read: u64,
    pub down_confirmed: u64,
    pieces: VecDeque<Piece>,
    /// Number of pieces that were sent completely on the present connection.
    sent_pieces: usize,
    /// Position in the stream of the next byte to send, and of the first byte on the present connection.
    next: u64,
    start: u64,
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
    pub(in crate::head) const fn new(shard: u16, identity: &Identity<'_>) -> Self {
        Self { shard, peer: identity.peer, local: identity.local }
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

/// A data record.
#[derive(Debug)]
struct Piece {
    /// Position in the stream after the bytes.
    end: u64,
    bytes: Vec<u8>,
    ends_message: bool,
    entry: EntryNumber,
}

/// Bytes of an incomplete message that are kept after the server has acknowledged them.
const INCOMPLETE_MAX: u64 = 64 * 1024;

impl Stream {
    pub(super) const fn new(key: MeterKey, identity: StreamIdentity, position: u64) -> Self {
        Self {
            key,
            identity,
            link: Link::Idle,
            due: None,
            backoff: Duration::ZERO,
            opening: None,
            end: None,
            is_fin_sent: false,
            is_complete: false,
            is_closed_by_server: false,
            down_read: 0,
            down_confirmed: 0,
            pieces: VecDeque::new(),
            sent_pieces: 0,
            next: position,
            start: position,
            is_framed: false,
        }
    }

    /// Position in the stream after the last byte that is known.
    pub(super) fn received(&self) -> u64 {
        self.pieces.back().map_or(self.next, |piece| piece.end)
    }

    /// Adds data that begins at [`Self::received`].
    pub(super) fn push(&mut self, bytes: &[u8], ends_message: bool, entry: EntryNumber) {
        self.is_framed |= ends_message;
        let end = self.received() + bytes.len() as u64;
        self.pieces.push_back(Piece { end, bytes: bytes.to_vec(), ends_message, entry });
    }

    /// A connection to the server exists. Returns the position of its first byte in the stream.
    pub(super) fn connect(&mut self) -> u64 {
        self.link = Link::Connected;
        self.sent_pieces = 0;
        self.is_fin_sent = false;
        let first = self.pieces.front();
        self.start = first.map_or(self.next, |piece| piece.end - piece.bytes.len() as u64);
        self.next = self.start;
        self.start
    }

    /// The next bytes to send on the present connection; none if everything was sent.
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
    pub(super) fn is_fin_due(&mut self) -> bool {
        matches!(self.end, Some((StreamEnd::Fin, _)))
            && !self.is_fin_sent
            && self.unsent().is_empty()
    }

    /// Whether the server may not have acknowledged something.
    pub(super) fn is_unacknowledged(&self) -> bool {
        !self.pieces.is_empty() || self.end.is_some()
    }

    /// Whether a connection to the server is needed to hand something over.
    pub(super) fn needs_connection(&self) -> bool {
        let is_reset = matches!(self.end, Some((StreamEnd::Reset, _)));
        !self.pieces.is_empty() || self.opening.is_some() && !is_reset
    }

    /// The server has not acknowledged the last `unacknowledged` bytes of the present connection, FIN counted as one.
    /// Returns the number of bytes that are no longer kept.
    pub(super) fn acknowledge(&mut self, unacknowledged: u64, handover: &mut Handover) -> u64 {
        let of_data = unacknowledged.saturating_sub(u64::from(self.is_fin_sent));
        let acknowledged = self.next.saturating_sub(of_data).max(self.start);
        let sent = self.pieces.iter().take_while(|piece| piece.end <= acknowledged);
        let ends: Vec<(u64, bool)> = sent.map(|piece| (piece.end, piece.ends_message)).collect();
        let is_all = ends.len() == self.pieces.len() && self.end.is_some();
        let last_end = ends.iter().rposition(|(_, ends_message)| *ends_message);
        let complete = last_end.map_or(0, |last| last + 1);
        let before = complete.checked_sub(1).map_or(self.start, |last| ends[last].0);
        let incomplete = ends.last().map_or(0, |(end, _)| end.saturating_sub(before));
        // A new connection must begin with the start of a message.
        let keep_incomplete = self.is_framed && !is_all && incomplete < INCOMPLETE_MAX;
        let mut bytes = 0;
        for piece in self.pieces.drain(..if keep_incomplete { complete } else { ends.len() }) {
            bytes += piece.bytes.len() as u64;
            handover.release(piece.entry);
            self.sent_pieces = self.sent_pieces.saturating_sub(1);
        }
        bytes
    }

    /// Whether the server has acknowledged everything, given the bytes of the present connection that are not
    /// acknowledged.
    pub(super) fn is_handed_over(&self, unacknowledged: u64) -> bool {
        self.pieces.is_empty()
            && match self.end {
                Some((StreamEnd::Fin, _)) => self.is_fin_sent && unacknowledged == 0,
                Some((StreamEnd::Reset, _)) => true,
                None => false,
            }
    }
}
