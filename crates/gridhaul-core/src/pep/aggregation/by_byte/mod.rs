//! Admission by byte, for a caller that reads the sockets of the senders and their payload.
//!
//! The kernel acknowledges bytes when they arrive, so that bytes that the caller has read are stored
//! nowhere else: they are **bytes at risk** until the upstream connection has delivered them (RFC
//! 3135, section 4.1.2, fate sharing). An aggregator accepts bytes within its limits. The caller
//! stops reading a socket when no more bytes are accepted, so that the receive window closes.
//!
//! Complete messages of a connection that has ended are still delivered. An incomplete message is
//! discarded, and reported.

mod connection;
mod limits;
mod report;
#[cfg(test)]
mod tests;
mod waiting_list;

use std::collections::BTreeMap;

use bytes::Bytes;
use gridhaul_scenario::units::{self, BufferLimit, Instant};

use super::buffer::Space;
use super::forwarding::Forwarding;
use super::{Framer, Framing, TimeAverage};
pub use connection::ConnectionStatus;
use connection::{Connection, sequence};
use limits::Reserve;
pub use limits::{ByteLimits, LimitsError};
pub use report::{Accepted, Delivered, Ended, Message, OfferError, OpenError};
use waiting_list::{Wait, WaitingList};

/// Identifies a connection for the lifetime of an aggregator. No identifier is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// An aggregator that admits bytes.
///
/// Call order: read at most [`acceptable`](Self::acceptable) bytes from the socket of a connection
/// and [`offer`](Self::offer) them; then [`poll_transmit`](Self::poll_transmit) until `None`, and
/// send what [`read`](Self::read) returns. When the upstream connection has delivered data,
/// [`poll_delivered`](Self::poll_delivered) until `None`, then
/// [`poll_unblocked`](Self::poll_unblocked): serve each connection before the next is polled, so
/// that the connection that has waited longest gets space first.
#[derive(Debug)]
pub struct ByteAggregator {
    limits: ByteLimits,
    forwarding: Forwarding,
    reserve: Reserve,
    connections: BTreeMap<ConnectionId, Connection>,
    next_id: u64,
    waiting_list: WaitingList,
    at_risk: TimeAverage,
    transmitted: Vec<Transmitted>,
}

/// The part of an upstream queue that was polled for transmission.
#[derive(Debug, Clone, Copy, Default)]
struct Transmitted {
    /// Messages at the head of the queue.
    messages: usize,
    /// End of the last of them in the stream of the upstream connection.
    position: u64,
}

impl ByteAggregator {
    /// An aggregator with these limits and `upstreams` upstream connections.
    #[must_use]
    pub fn new(limits: ByteLimits, upstreams: usize) -> Self {
        let limit = BufferLimit::Bytes(units::Bytes::new(limits.total()));
        Self {
            limits,
            forwarding: Forwarding::new(limit, upstreams),
            reserve: Reserve::new(limits),
            connections: BTreeMap::new(),
            next_id: 0,
            waiting_list: WaitingList::default(),
            at_risk: TimeAverage::default(),
            transmitted: vec![Transmitted::default(); upstreams],
        }
    }

    /// Adds a connection, whose messages are forwarded over this upstream connection.
    ///
    /// # Errors
    /// When there is no such upstream connection, or the framing permits messages that exceed
    /// [`ByteLimits::largest_message`].
    pub fn open(
        &mut self,
        upstream: usize,
        framer: Box<dyn Framer>,
    ) -> Result<ConnectionId, OpenError> {
        if upstream >= self.forwarding.upstreams() {
            return Err(OpenError::NoUpstream { upstream });
        }
        let (bytes, limit) = (framer.largest_message(), self.limits.largest_message());
        if bytes > limit {
            return Err(OpenError::MessageTooLarge { bytes, limit });
        }
        let id = ConnectionId(self.next_id);
        self.next_id += 1;
        let connection = Connection::new(upstream, framer, self.limits.per_connection());
        self.connections.insert(id, connection);
        Ok(id)
    }

    /// Number of bytes of a connection that would be accepted now; 0 after the connection has ended.
    #[must_use]
    pub fn acceptable(&self, id: ConnectionId) -> u64 {
        match self.connections.get(&id) {
            Some(connection) if !connection.is_ended => {
                let own = self.limits.per_connection() - connection.at_risk();
                own.min(self.reserve.free(id, self.forwarding.used().bytes))
            }
            _ => 0,
        }
    }

    /// Offers the next bytes of a connection's stream. Accepts as many of them as are
    /// [`acceptable`](Self::acceptable), and makes the connection wait for space if there are more.
    ///
    /// Long slices are stored without a copy: their buffers live until the bytes are delivered.
    ///
    /// # Errors
    /// When the connection has ended, or ends now because its stream is malformed.
    ///
    /// # Panics
    /// When the framer reports the end of a message outside of the bytes that it was given.
    pub fn offer(
        &mut self,
        now: Instant,
        id: ConnectionId,
        bytes: &Bytes,
    ) -> Result<Accepted, OfferError> {
        let connection = self.connections.get(&id).ok_or(OfferError::UnknownConnection)?;
        if connection.is_ended {
            return Err(OfferError::Ended);
        }
        let acceptable = self.acceptable(id).min(bytes.len() as u64) as usize;
        let before = connection.accepted;
        let (mut read, mut messages, mut malformed) = (0, 0, None);
        while read < acceptable && malformed.is_none() {
            let connection = self.connections.get_mut(&id).expect("the connection exists");
            let rest = &bytes[read..acceptable];
            match connection.framer.next_message_end(rest) {
                Ok(Framing::End(end)) => {
                    assert!(
                        (1..=rest.len()).contains(&end),
                        "a message ends within the given bytes"
                    );
                    self.accept(now, id, end, true);
                    (read, messages) = (read + end, messages + 1);
                }
                Ok(Framing::Incomplete) => {
                    self.accept(now, id, rest.len(), false);
                    read = acceptable;
                }
                Err(error) => malformed = Some(error),
            }
        }
        let connection = self.connections.get_mut(&id).expect("the connection exists");
        connection.payload.insert(sequence(before), &bytes.slice(..read));
        let accepted = Accepted { bytes: read, messages, incomplete: connection.incomplete() };
        if let Some(error) = malformed {
            let ended = self.end(now, id).expect("the connection exists");
            let accepted = Accepted { incomplete: 0, ..accepted };
            return Err(OfferError::Malformed { error, accepted, ended });
        }
        if read < bytes.len() {
            self.wait_for_space(id);
        } else {
            self.stop_waiting(id);
        }
        Ok(accepted)
    }

    /// Makes a connection wait until some of its bytes are acceptable, for a caller that has not read
    /// them yet.
    pub fn wait_for_space(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if connection.wait != Wait::No || connection.is_ended {
            return;
        }
        connection.wait = if connection.at_risk() == self.limits.per_connection() {
            Wait::Own
        } else {
            self.waiting_list.push(id)
        };
    }

    /// The next waiting connection of which bytes are acceptable now. It no longer waits.
    pub fn poll_unblocked(&mut self) -> Option<ConnectionId> {
        // The message in the reserve comes first: others may need the space that it occupies.
        if let Some(id) = self.reserve.holder()
            && matches!(self.connections[&id].wait, Wait::Buffer(_))
            && self.acceptable(id) > 0
        {
            self.stop_waiting(id);
            return Some(id);
        }
        loop {
            let id = self.waiting_list.first()?;
            if self.acceptable(id) > 0 {
                self.stop_waiting(id);
                return Some(id);
            }
            if self.connections[&id].at_risk() < self.limits.per_connection() {
                return None;
            }
            // The connection reached its own limit by an offer while it waited.
            self.stop_waiting(id);
            self.wait_for_space(id);
        }
    }

    /// The next complete message for an upstream connection, in the order in which messages
    /// became complete. It stays at risk until it is delivered.
    ///
    /// # Panics
    /// When there is no upstream connection of this index.
    pub fn poll_transmit(&mut self, upstream: usize) -> Option<Message> {
        let transmitted = &mut self.transmitted[upstream];
        let queue = self.forwarding.upstream(upstream);
        let waiting = queue.get(transmitted.messages)?;
        let number = queue.departed_messages + transmitted.messages as u64;
        transmitted.messages += 1;
        transmitted.position += waiting.bytes;
        let id = ConnectionId(waiting.connection);
        let connection = self.connections.get_mut(&id).expect("it has undelivered data");
        let start = connection.transmitted;
        connection.transmitted += waiting.bytes;
        Some(Message {
            number,
            connection: id,
            start,
            bytes: waiting.bytes,
            upstream_end: transmitted.position,
            completed: waiting.since,
        })
    }

    /// The payload of a message in slices, until it is delivered; then `None`.
    #[must_use]
    pub fn read(&self, message: &Message) -> Option<impl Iterator<Item = &[u8]>> {
        let connection = self.connections.get(&message.connection)?;
        if message.start < connection.delivered {
            return None;
        }
        connection.payload.read(sequence(message.start), message.bytes as usize)
    }

    /// An upstream connection has delivered the first `position` bytes of its stream. Returns the
    /// next message that was delivered; poll until `None`. A message counts as delivered with its
    /// last byte, and only after it was polled for transmission.
    ///
    /// # Panics
    /// When there is no upstream connection of this index.
    pub fn poll_delivered(
        &mut self,
        now: Instant,
        upstream: usize,
        position: u64,
    ) -> Option<Delivered> {
        if self.transmitted[upstream].messages == 0 {
            return None;
        }
        let message = self.forwarding.poll_before(now, upstream, position)?;
        self.transmitted[upstream].messages -= 1;
        self.lower_at_risk(now, upstream, message.bytes);
        let id = ConnectionId(message.connection);
        let connection = self.connections.get_mut(&id).expect("it has undelivered data");
        connection.delivered += message.bytes;
        connection.payload.release_to(sequence(connection.delivered));
        let is_finished = connection.is_finished();
        if is_finished {
            self.connections.remove(&id);
        } else if connection.wait == Wait::Own {
            connection.wait = self.waiting_list.push(id);
        }
        Some(Delivered {
            number: self.forwarding.upstream(upstream).departed_messages - 1,
            connection: id,
            bytes: message.bytes,
            waited: now.since(message.since),
            is_finished,
        })
    }

    /// An upstream connection was lost and is reopened: messages that were not delivered are
    /// polled for transmission again, with the same numbers and positions.
    ///
    /// # Panics
    /// When there is no upstream connection of this index.
    pub fn handle_upstream_reopened(&mut self, upstream: usize) {
        let queue = self.forwarding.upstream(upstream);
        let position = queue.departed();
        for index in 0..self.transmitted[upstream].messages {
            let message = queue.get(index).expect("the message was polled from this queue");
            let id = ConnectionId(message.connection);
            let connection = self.connections.get_mut(&id).expect("it has undelivered data");
            connection.transmitted = connection.delivered;
        }
        self.transmitted[upstream] = Transmitted { messages: 0, position };
    }

    /// A connection has ended, by FIN or RST: complete messages are still delivered, and
    /// an incomplete one is discarded. `None` if no connection has this identifier.
    pub fn end(&mut self, now: Instant, id: ConnectionId) -> Option<Ended> {
        self.stop_waiting(id);
        let connection = self.connections.get_mut(&id)?;
        let discarded = connection.incomplete();
        let upstream = connection.upstream;
        connection.is_ended = true;
        connection.discarded += discarded;
        connection.payload.discard_from(sequence(connection.complete));
        let ended = Ended { discarded, undelivered: connection.at_risk() };
        if ended.is_finished() {
            self.connections.remove(&id);
        }
        if discarded > 0 {
            self.forwarding.cancel(now, upstream, Space { messages: 1, bytes: discarded });
            self.lower_at_risk(now, upstream, discarded);
            self.reserve.update(id, discarded, 0);
        }
        Some(ended)
    }

    /// State of a connection; `None` after the last of its messages was delivered.
    #[must_use]
    pub fn connection(&self, id: ConnectionId) -> Option<ConnectionStatus> {
        self.connections.get(&id).map(Connection::status)
    }

    /// The connection whose incomplete message uses the reserve, while others must not. Where its
    /// sender does not complete the message, the caller should end the connection after some time.
    #[must_use]
    pub fn reserve_holder(&self) -> Option<ConnectionId> {
        self.reserve.holder()
    }

    /// Bytes at risk of all connections: accepted and not yet delivered upstream, incomplete
    /// messages included. Never above [`ByteLimits::total`].
    #[must_use]
    pub const fn at_risk(&self) -> &TimeAverage {
        &self.at_risk
    }

    /// The part of [`at_risk`](Self::at_risk) that is forwarded over one upstream connection.
    ///
    /// # Panics
    /// When there is no upstream connection of this index.
    #[must_use]
    pub fn upstream_at_risk(&self, upstream: usize) -> &TimeAverage {
        &self.forwarding.upstream(upstream).at_risk
    }

    /// Messages for one upstream connection that are not delivered, incomplete ones included.
    ///
    /// # Panics
    /// When there is no upstream connection of this index.
    #[must_use]
    pub fn waiting(&self, upstream: usize) -> &TimeAverage {
        &self.forwarding.upstream(upstream).waiting
    }

    /// Accounts for the next bytes of a connection, which belong to one message.
    fn accept(&mut self, now: Instant, id: ConnectionId, bytes: usize, is_complete: bool) {
        let bytes = bytes as u64;
        let connection = self.connections.get_mut(&id).expect("the connection exists");
        let (upstream, before) = (connection.upstream, connection.incomplete());
        if before == 0 {
            connection.incomplete_since = now;
        }
        connection.accepted += bytes;
        if is_complete {
            connection.complete = connection.accepted;
        }
        let after = connection.incomplete();
        let space = Space { messages: u64::from(before == 0), bytes };
        self.forwarding.reserve(now, upstream, space);
        self.forwarding.upstream_mut(upstream).at_risk.increase(now, bytes);
        self.at_risk.increase(now, bytes);
        self.reserve.update(id, before, after);
        if is_complete {
            self.forwarding.complete(now, upstream, (id.0, before + bytes));
        }
    }

    fn lower_at_risk(&mut self, now: Instant, upstream: usize, bytes: u64) {
        self.forwarding.upstream_mut(upstream).at_risk.decrease(now, bytes);
        self.at_risk.decrease(now, bytes);
    }

    fn stop_waiting(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(&id) {
            self.waiting_list.remove(std::mem::take(&mut connection.wait));
        }
    }
}
