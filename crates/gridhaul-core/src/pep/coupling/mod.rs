//! Two ends of TCP back to back: what arrives at one is sent by the other.
//!
//! The room that data takes is given back only when the next hop has acknowledged it, because until
//! then it may have to be sent again from here. So the buffer of a direction holds all there is of
//! it in the proxy, and the window that is offered can never be more than its free room.

mod accounting;
mod unanswered;
mod window;

use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Instant};

use self::unanswered::Unanswered;
use super::{Origin, Outgoing, Side};
use crate::tcp::{Connection, Flags, Segment, StackParams, State};

/// What the two ends tell about each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// Nothing: they are two connections.
    Apart,
    /// They are one connection: the window offered is not larger than the one that the next hop
    /// offers, and FIN is acknowledged when the next hop has acknowledged it.
    AsOne,
}

/// Two ends, the left one facing the left side.
#[derive(Debug, Clone)]
pub(super) struct Coupling {
    ends: [Connection; 2],
    /// By the side it came from.
    ways: [Way; 2],
    manner: Manner,
    /// Both ends were reset: nobody waits for what is held.
    aborted: bool,
    /// Bytes at risk when both ends were reset.
    lost: u64,
    /// How many ends have nothing more to send, the left one first. One more when it was noted who
    /// owes an answer.
    asked: u8,
}

/// The data of one direction, and what its sender was told.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Payload bytes that were handed to the other end, and those that the next hop has
    /// acknowledged.
    moved: u64,
    released: u64,
    /// FIN was handed on; the next hop has acknowledged it.
    closed: bool,
    close_acknowledged: bool,
    /// Window that was offered last.
    offered: u32,
    /// Set while this side owes an answer to what was sent to it.
    unanswered: Option<Unanswered>,
}

impl Way {
    const NEW: Self = Self {
        moved: 0,
        released: 0,
        closed: false,
        close_acknowledged: false,
        offered: u32::MAX,
        unanswered: None,
    };
}

/// A unit's own stack with its buffer for the receive window. Nagle's algorithm would hold a small
/// segment back for a round trip at every unit: it is for applications that write bytes one by one.
pub(super) fn unit_params(params: Arc<StackParams>, buffer: Bytes) -> Arc<StackParams> {
    let receive_window = u32::try_from(buffer.get()).unwrap_or(u32::MAX);
    if params.receive_window == receive_window && !params.nagle {
        return params;
    }
    Arc::new(StackParams { receive_window, nagle: false, ..(*params).clone() })
}

impl Coupling {
    /// `window_shifts` are those of [`Proxy::set_window_shift`](super::Proxy::set_window_shift), by side.
    pub(super) fn new(mut ends: [Connection; 2], manner: Manner, window_shifts: [u8; 2]) -> Self {
        ends.iter_mut().for_each(Connection::read_on_demand);
        for (end, shift) in ends.iter_mut().zip(window_shifts) {
            end.set_window_shift(shift);
        }
        Self { ends, ways: [Way::NEW; 2], manner, aborted: false, lost: 0, asked: 0 }
    }

    /// Puts another end into the place of one that has not begun.
    pub(super) fn replace(&mut self, side: Side, mut end: Connection) {
        end.read_on_demand();
        self.ends[side.index()] = end;
        self.asked = 0;
    }

    pub(super) const fn end(&self, side: Side) -> &Connection {
        &self.ends[side.index()]
    }

    pub(super) fn end_mut(&mut self, side: Side) -> &mut Connection {
        self.asked = 0;
        &mut self.ends[side.index()]
    }

    /// Until [`Self::poll_transmit`] has returned `None`, nothing is known about who owes an answer.
    pub(super) fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        self.ends[from.index()].handle_segment(now, segment);
        self.ways[from.index()].unanswered = None;
        // It brings data of this side, and acknowledges data of the other one.
        self.take_data(from);
        self.give_back(now, from.other());
        self.settle(now);
    }

    #[inline]
    pub(super) fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        // What one end sends changes nothing for the other: none is asked twice for nothing.
        if self.asked == 0 {
            let outgoing = self.ask(now, Side::Client);
            if outgoing.is_some() {
                return outgoing;
            }
        }
        if self.asked == 1 {
            let outgoing = self.ask(now, Side::Server);
            if outgoing.is_some() {
                return outgoing;
            }
        }
        if self.asked == 2 {
            self.note_unanswered(now);
            self.asked = 3;
        }
        None
    }

    /// Asks an end for a segment, and goes on to the next one behind its last.
    #[inline(always)]
    fn ask(&mut self, now: Instant, to: Side) -> Option<Outgoing> {
        let end = &mut self.ends[to.index()];
        if !end.may_send() {
            return self.ask_in_other_states(now, to);
        }
        // Made where it is handed over: to move what was just written takes longer than to write it.
        let Some(range) = end.poll_range(now) else {
            self.asked += 1;
            return None;
        };
        let segment = end.segment(now, range);
        Some(self.hand_out(to, segment))
    }

    #[cold]
    fn ask_in_other_states(&mut self, now: Instant, to: Side) -> Option<Outgoing> {
        let Some(segment) = self.ends[to.index()].poll_transmit(now) else {
            self.asked += 1;
            return None;
        };
        Some(self.hand_out(to, segment))
    }

    #[inline(always)]
    fn hand_out(&mut self, to: Side, mut segment: Segment) -> Outgoing {
        // An end that has data to send sends it before it acknowledges without, unless that
        // acknowledges nothing but SYN.
        let opens = self.end(to).receiver().next() == 1;
        self.asked += u8::from(segment.len == 0 && segment.flags == Flags::ACK && !opens);
        self.adapt(to, &mut segment);
        Outgoing { to, segment, origin: Origin::Proxy }
    }

    #[inline]
    pub(super) fn next_deadline(&self) -> Instant {
        self.due(Side::Client).min(self.due(Side::Server))
    }

    #[inline]
    fn due(&self, side: Side) -> Instant {
        let end = self.end(side);
        let own = if end.state() == State::Closed { Instant::NEVER } else { end.next_deadline() };
        match self.ways[side.index()].unanswered {
            // Otherwise the next timer of the end is the earliest time to give up.
            Some(Unanswered { until, remaining: 0 }) => own.min(until),
            _ => own,
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for side in Side::BOTH {
            if self.withholds_close(side) {
                self.ends[side.index()].linger(now);
            }
            let end = &mut self.ends[side.index()];
            if end.state() != State::Closed && end.next_deadline() <= now {
                if let Some(unanswered) = &mut self.ways[side.index()].unanswered
                    && end.is_timing_out(now)
                {
                    unanswered.remaining = unanswered.remaining.saturating_sub(1);
                }
                end.handle_timeout(now);
            }
        }
        self.settle(now);
    }

    /// Resets both connections.
    pub(super) fn abort(&mut self) {
        self.asked = 0;
        self.lost += self.bytes_at_risk();
        self.aborted = true;
        for side in Side::BOTH {
            // TIME-WAIT of an end that withholds an acknowledgement is none for its peer.
            let owes = self.withholds_close(side);
            self.ends[side.index()].abort(owes);
        }
        self.ways.iter_mut().for_each(|way| way.unanswered = None);
    }

    /// What an end would keep of the payload of a segment: sequence number and length.
    pub(super) fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        let end = self.end(from);
        let taken = end.incoming(segment)?;
        Some((end.sequence_of(taken.start), (taken.end - taken.start) as u32))
    }

    pub(super) fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.end_mut(toward).set_window_shift(shift);
    }

    /// Behind each event: a connection that is over ends the other one, and a window that has opened
    /// is told.
    fn settle(&mut self, now: Instant) {
        self.asked = 0;
        let is_closed = |end: &Connection| end.state() == State::Closed;
        if self.ends.iter().any(is_closed) && !self.outlives_closed(now) {
            self.abort();
            return;
        }
        Side::BOTH.into_iter().for_each(|side| self.reopen(side));
    }

    /// Whether what is closed was closed in order, so that the rest goes on.
    #[cold]
    fn outlives_closed(&mut self, now: Instant) -> bool {
        for side in Side::BOTH {
            let end = self.end(side);
            if end.state() == State::Closed && !end.is_finished() {
                return false;
            }
            if end.state() == State::Closed && self.withholds_close(side) && !self.aborted {
                // The last acknowledgement is still to come from here.
                self.ends[side.index()].linger(now);
            }
        }
        true
    }

    /// The two ends of a direction: the one that takes its data in, and the one that sends it on.
    #[inline]
    const fn ends_of(ends: &mut [Connection; 2], from: Side) -> (&mut Connection, &mut Connection) {
        match (ends, from) {
            ([left, right], Side::Client) => (left, right),
            ([left, right], Side::Server) => (right, left),
        }
    }

    /// Hands on what has come from a side.
    #[inline]
    fn take_data(&mut self, from: Side) {
        let (source, sink) = Self::ends_of(&mut self.ends, from);
        let way = &mut self.ways[from.index()];
        let delivered = source.receiver().delivered();
        if delivered > way.moved {
            sink.write(delivered - way.moved);
            way.moved = delivered;
        }
        if source.receiver().finished() && !way.closed {
            way.closed = true;
            sink.close();
        }
    }

    /// Frees what the next hop has acknowledged of the data of a side.
    #[inline]
    fn give_back(&mut self, now: Instant, from: Side) {
        let (source, sink) = Self::ends_of(&mut self.ends, from);
        let way = &mut self.ways[from.index()];
        let (_, una) = sink.sent_and_acknowledged();
        let released = una.saturating_sub(1).min(way.moved);
        if released > way.released {
            source.release(released - way.released);
            way.released = released;
        }
        if way.closed && !way.close_acknowledged && sink.fin_acknowledged() {
            way.close_acknowledged = true;
            if self.manner == Manner::AsOne {
                source.linger(now);
                source.request_ack();
            }
        }
    }

    /// Whether FIN from this side has come and is not to be acknowledged yet.
    #[inline]
    fn withholds_close(&self, from: Side) -> bool {
        let way = &self.ways[from.index()];
        self.manner == Manner::AsOne && way.closed && !way.close_acknowledged
    }
}
