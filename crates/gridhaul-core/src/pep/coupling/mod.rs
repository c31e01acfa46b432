//! Two TCP connections back to back: data that arrives over one is sent over the other.
//!
//! Buffer space is released only when the next hop has acknowledged the data, because until then
//! the proxy may have to retransmit it. The buffer of a direction therefore contains all data of
//! this direction in the proxy, and the offered window never exceeds the free buffer space.

mod accounting;
mod drain;
mod unanswered;
mod window;

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Instant};

use self::drain::StatedOffer;
use self::unanswered::Unanswered;
use super::aborted::Aborted;
use super::{Outgoing, Side};
use crate::tcp::{Connection, Flags, Segment, StackParams, State};

/// Whether the endpoints see two connections or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CouplingMode {
    /// Two connections with independent windows and closes.
    Split,
    /// One connection: the offered window does not exceed the window of the next hop, and FIN is
    /// acknowledged when the next hop has acknowledged it.
    EndToEnd,
}

/// Two connections, indexed by the side that they lead to.
#[derive(Debug, Clone)]
pub struct Coupling {
    connections: [Connection; 2],
    /// By the side that sends the data.
    directions: [Direction; 2],
    mode: CouplingMode,
    /// Present once both connections were reset: the buffered data has no receiver any more.
    aborted: Option<Box<AbortedCoupling>>,
    /// By side; present from [`Self::drain`] on.
    stated_before_drain: Option<Box<[StatedOffer; 2]>>,
    next_poll: NextPoll,
}

/// Two connections that were reset.
#[derive(Debug, Clone, Default)]
struct AbortedCoupling {
    aborted: Aborted,
    /// Bytes that were at risk before.
    lost: u64,
}

/// The next step of [`Coupling::poll_transmit`], in order. Each event begins with the first step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextPoll {
    /// The client's connection may have a segment to send.
    Client,
    /// The client's connection has nothing more to send; the server's may have.
    Server,
    /// Neither has: [`Coupling::update_unanswered`] notes which of them owe acknowledgements.
    Unanswered,
    /// Nothing until the next event.
    Nothing,
}

impl NextPoll {
    /// The step after the last segment of a connection.
    #[inline]
    const fn after(side: Side) -> Self {
        match side {
            Side::Client => Self::Server,
            Side::Server => Self::Unanswered,
        }
    }
}

/// Data of one direction, and the window that was offered to its sender.
#[derive(Debug, Clone, Copy)]
struct Direction {
    /// Payload bytes that were passed to the opposite connection, and those that the next hop has
    /// acknowledged.
    transferred: u64,
    released: u64,
    /// FIN was passed to the opposite connection; the next hop has acknowledged it.
    fin_transferred: bool,
    fin_acknowledged: bool,
    /// Window that was offered in the last segment.
    offered: u32,
    unanswered: Unanswered,
}

impl Direction {
    const NEW: Self = Self {
        transferred: 0,
        released: 0,
        fin_transferred: false,
        fin_acknowledged: false,
        offered: u32::MAX,
        unanswered: Unanswered::NOTHING,
    };
}

/// TCP parameters of a proxy, with its buffer as the receive window. Nagle's algorithm is disabled:
/// it is meant for applications that write single bytes, and would delay a small segment by one
/// round trip at every proxy. SYN is retransmitted until R2 (RFC 1122, section 4.2.3.5).
pub(super) fn proxy_params(params: Arc<StackParams>, buffer: Bytes) -> Arc<StackParams> {
    let receive_window = u32::try_from(buffer.get()).unwrap_or(u32::MAX);
    let has_no_end = params.policy.syn_retransmissions_max.is_none();
    if params.receive_window == receive_window && !params.nagle && has_no_end {
        return params;
    }
    let mut own = StackParams { receive_window, nagle: false, ..(*params).clone() };
    own.policy.syn_retransmissions_max = None;
    Arc::new(own)
}

impl Coupling {
    /// `window_shifts` are those of
    /// [`Proxy::set_window_shift`](super::Proxy::set_window_shift), by side.
    pub(super) fn new(
        mut connections: [Connection; 2],
        mode: CouplingMode,
        window_shifts: [u8; 2],
    ) -> Self {
        connections.iter_mut().for_each(Connection::read_on_demand);
        for (connection, shift) in connections.iter_mut().zip(window_shifts) {
            connection.set_window_shift(shift);
        }
        Self {
            connections,
            directions: [Direction::NEW; 2],
            mode,
            aborted: None,
            stated_before_drain: None,
            next_poll: NextPoll::Client,
        }
    }

    /// Replaces a connection that was not opened yet.
    pub(super) fn replace(&mut self, side: Side, mut connection: Connection) {
        connection.read_on_demand();
        if self.stated_before_drain.is_some() {
            connection.acknowledge_on_confirmation();
        }
        self.connections[side.index()] = connection;
        self.next_poll = NextPoll::Client;
    }

    pub(super) const fn connection(&self, side: Side) -> &Connection {
        &self.connections[side.index()]
    }

    pub(super) fn connection_mut(&mut self, side: Side) -> &mut Connection {
        self.next_poll = NextPoll::Client;
        &mut self.connections[side.index()]
    }

    /// [`Self::exceeds_r2`] is valid again after [`Self::poll_transmit`] has returned `None`.
    #[inline(always)]
    pub(super) fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.connections[from.index()].handle_segment(now, segment);
        if let Some(coupling) = &mut self.aborted {
            if coupling.aborted.may_repeat(now) {
                self.connections[from.other().index()].repeat_reset();
            }
            self.next_poll = NextPoll::Client;
            return;
        }
        self.directions[from.index()].unanswered = Unanswered::NOTHING;
        // The segment carries data of this side, and acknowledges data of the other side.
        self.transfer_data(from);
        self.release_acknowledged(now, from.other());
        self.propagate(now);
    }

    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        let mut outgoing = Outgoing::unwritten();
        self.poll_into(now, &mut outgoing).then_some(outgoing)
    }

    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        send: &mut dyn FnMut(&Outgoing),
    ) -> (Instant, u64) {
        // One segment after another is written to the same place, since moving a segment takes
        // longer than writing it.
        let mut outgoing = Outgoing::unwritten();
        while self.poll_into(now, &mut outgoing) {
            send(&outgoing);
        }
        (self.next_deadline(), self.bytes_at_risk())
    }

    /// Writes the next segment to send now to `outgoing`. Returns false if there is none.
    #[inline(always)]
    fn poll_into(&mut self, now: Instant, outgoing: &mut Outgoing) -> bool {
        // Sending over one connection does not change the other, so that neither is polled again.
        if self.next_poll == NextPoll::Client && self.poll_connection(now, Side::Client, outgoing)
            || self.next_poll == NextPoll::Server
                && self.poll_connection(now, Side::Server, outgoing)
        {
            return true;
        }
        if self.next_poll == NextPoll::Unanswered {
            self.update_unanswered(now);
            self.next_poll = NextPoll::Nothing;
        }
        false
    }

    /// Polls a connection for a segment. After its last one, the next connection is polled.
    #[inline(always)]
    fn poll_connection(&mut self, now: Instant, to: Side, outgoing: &mut Outgoing) -> bool {
        if self.connections[to.index()].ends_event_without_segment(now) {
            self.next_poll = NextPoll::after(to);
            return false;
        }
        self.poll_busy_connection(now, to, outgoing)
    }

    fn poll_busy_connection(&mut self, now: Instant, to: Side, outgoing: &mut Outgoing) -> bool {
        let connection = &mut self.connections[to.index()];
        if connection.may_send() {
            let Some(range) = connection.poll_range(now) else {
                self.next_poll = NextPoll::after(to);
                return false;
            };
            connection.write_range(now, range, &mut outgoing.segment);
        } else {
            let Some(segment) = connection.poll_transmit(now) else {
                self.next_poll = NextPoll::after(to);
                return false;
            };
            outgoing.segment = segment;
        }
        outgoing.to = to;
        self.on_polled(to, &mut outgoing.segment);
        true
    }

    /// A connection has a segment to send.
    #[inline(always)]
    fn on_polled(&mut self, to: Side, segment: &mut Segment) {
        // A connection sends data before a pure acknowledgement, unless the acknowledgement covers
        // nothing but SYN. After a pure acknowledgement it has therefore nothing more to send.
        let connection = self.connection(to);
        let is_last = match segment.len {
            0 => segment.flags == Flags::ACK && connection.receiver().next() != 1,
            _ => connection.has_filled_window(),
        };
        if is_last {
            self.next_poll = NextPoll::after(to);
        }
        self.adjust_header(to, segment);
    }

    #[inline]
    pub(super) fn next_deadline(&self) -> Instant {
        self.due(Side::Client).min(self.due(Side::Server))
    }

    #[inline]
    fn due(&self, side: Side) -> Instant {
        let connection = self.connection(side);
        let own = if connection.state() == State::Closed {
            Instant::NEVER
        } else {
            connection.next_deadline()
        };
        own.min(self.directions[side.index()].unanswered.reached_at())
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for side in Side::BOTH {
            if self.withholds_fin_ack(side) {
                self.connections[side.index()].restart_time_wait(now);
            }
            let connection = &mut self.connections[side.index()];
            if connection.state() != State::Closed && connection.next_deadline() <= now {
                if connection.is_timing_out(now) {
                    self.directions[side.index()].unanswered.on_timeout();
                }
                connection.handle_timeout(now);
            }
        }
        self.propagate(now);
    }

    /// Resets both connections.
    pub(super) fn abort(&mut self) {
        self.next_poll = NextPoll::Client;
        let at_risk = self.bytes_at_risk();
        self.aborted.get_or_insert_default().lost += at_risk;
        for side in Side::BOTH {
            // The peer of a connection whose acknowledgement of FIN is withheld is not in
            // TIME-WAIT.
            let withholds_ack = self.withholds_fin_ack(side);
            self.connections[side.index()].abort(withholds_ack);
        }
        for direction in &mut self.directions {
            direction.unanswered = Unanswered::NOTHING;
        }
    }

    /// The payload of a segment that would be accepted: sequence number and length.
    pub(super) fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        let connection = self.connection(from);
        let accepted = connection.incoming(segment)?;
        Some((connection.sequence_of(accepted.start), (accepted.end - accepted.start) as u32))
    }

    pub(super) fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.connection_mut(toward).set_window_shift(shift);
    }

    /// Called after each event: resets the other connection if one has failed, and requests window
    /// updates.
    #[inline(always)]
    fn propagate(&mut self, now: Instant) {
        self.next_poll = NextPoll::Client;
        let is_closed = |connection: &Connection| connection.state() == State::Closed;
        if self.connections.iter().any(is_closed) && !self.closed_in_order(now) {
            self.abort();
            return;
        }
        for side in Side::BOTH {
            if self.may_have_opened(side) {
                self.update_window(side);
            }
        }
    }

    /// Whether all closed connections were closed by FIN, so that the other direction continues.
    #[cold]
    fn closed_in_order(&mut self, now: Instant) -> bool {
        for side in Side::BOTH {
            let connection = self.connection(side);
            if connection.state() == State::Closed && !connection.is_finished() {
                return false;
            }
            if connection.state() == State::Closed
                && self.withholds_fin_ack(side)
                && self.aborted.is_none()
            {
                // The acknowledgement of FIN is still to be sent.
                self.connections[side.index()].restart_time_wait(now);
            }
        }
        true
    }

    /// The two connections of a direction: the receiving one and the sending one.
    #[inline]
    const fn connections_of(
        connections: &mut [Connection; 2],
        from: Side,
    ) -> (&mut Connection, &mut Connection) {
        match (connections, from) {
            ([client, server], Side::Client) => (client, server),
            ([client, server], Side::Server) => (server, client),
        }
    }

    /// Passes data and FIN that have arrived from a side to the opposite connection.
    #[inline]
    fn transfer_data(&mut self, from: Side) {
        let (source, sink) = Self::connections_of(&mut self.connections, from);
        let direction = &mut self.directions[from.index()];
        let delivered = source.receiver().delivered();
        if delivered > direction.transferred {
            sink.write(delivered - direction.transferred);
            direction.transferred = delivered;
        }
        if source.receiver().finished() && !direction.fin_transferred {
            direction.fin_transferred = true;
            sink.close();
        }
    }

    /// Releases data of a side that the next hop has acknowledged.
    #[inline]
    fn release_acknowledged(&mut self, now: Instant, from: Side) {
        let is_draining = self.stated_before_drain.is_some();
        let (source, sink) = Self::connections_of(&mut self.connections, from);
        let direction = &mut self.directions[from.index()];
        let (_, una) = sink.sent_and_acknowledged();
        let released = una.saturating_sub(1).min(direction.transferred);
        if released > direction.released {
            let bytes = released - direction.released;
            direction.released = released;
            match is_draining {
                true => source.confirm(bytes),
                false => source.release(bytes),
            }
        }
        if direction.fin_transferred && !direction.fin_acknowledged && sink.fin_acknowledged() {
            direction.fin_acknowledged = true;
            if is_draining {
                source.confirm(1);
            }
            if self.mode == CouplingMode::EndToEnd {
                source.restart_time_wait(now);
                source.request_ack();
            }
        }
    }

    /// Whether FIN from this side has arrived and must not be acknowledged yet.
    #[inline]
    fn withholds_fin_ack(&self, from: Side) -> bool {
        let direction = &self.directions[from.index()];
        self.mode == CouplingMode::EndToEnd
            && direction.fin_transferred
            && !direction.fin_acknowledged
    }
}
