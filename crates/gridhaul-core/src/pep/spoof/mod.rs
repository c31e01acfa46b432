//! `spoof`: the proxy of paper `plc`, section II.D.3, which opens no connection of its own, and of
//! section III, which reflects an acknowledgement for every data packet (TCP spoofing: Ishac and
//! Allman, MILCOM 2001).
//!
//! Each segment is forwarded when it arrives, also after a gap, and a copy is stored. Every segment
//! with data is acknowledged at once, whatever the hosts' delayed acknowledgements. The proxy has
//! no congestion window: the sender's own window, over its own hop, governs the rate. Losses of the
//! next hop are repaired from the copies, which the acknowledgement of the next hop releases.
//! Segments wait in the proxy only while the window of the next hop is closed.
//!
//! `store.rs` has the copies, `direction.rs` the data of one direction, `repair.rs` handles
//! acknowledgements of the next hop, and `window.rs` computes what is offered to the sender.
//! docs/limitations/spoof.md lists the trade-offs.

mod direction;
mod drain;
mod repair;
mod store;
mod window;

use std::sync::Arc;

use gridhaul_scenario::units::Instant;

use super::aborted::Aborted;
use super::outgoing_queue::OutgoingQueue;
use super::transparent::{EntryState, Relay, Transparent};
use super::{BufferStatus, Origin, Outgoing, Side, Statistics};
use crate::tcp::{Flags, Segment, StackParams};

use self::direction::{Direction, Transmission};

/// A proxy that forwards and stores each segment, and acknowledges it at once.
pub type Spoof = Transparent<StoringRelay>;

/// Forwards, stores and acknowledges the segments of an open connection.
#[derive(Debug, Clone)]
pub struct StoringRelay {
    /// By the side that sends the data.
    directions: [Direction; 2],
    queue: OutgoingQueue,
    /// Size of IP and TCP headers without options.
    header: u8,
    /// Present once the connection was reset.
    aborted: Option<Aborted>,
    /// Bytes at risk when the connection was reset.
    lost: u64,
}

impl StoringRelay {
    const fn direction(&self, from: Side) -> &Direction {
        &self.directions[from.index()]
    }

    /// A segment to a side with the acknowledgement of that side's data.
    fn segment_to(&mut self, to: Side, (start, len, fin): Transmission, flags: Flags) -> Segment {
        let (ack, window) = self.directions[to.index()].offer();
        let seq = self.direction(to.other()).sequence_number(start);
        let flags = if fin { flags.with(Flags::FIN) } else { flags.without(Flags::FIN) };
        Segment { seq, ack, len, window, flags, header: self.header, ..Segment::default() }
    }

    /// Sends stored segments to a side.
    fn send(&mut self, to: Side, transmissions: impl IntoIterator<Item = Transmission>) {
        for transmission in transmissions {
            let segment = self.segment_to(to, transmission, Flags::ACK);
            self.queue.push_back(Outgoing { to, segment, origin: Origin::Proxy });
        }
    }

    /// Acknowledges the data of a side.
    fn acknowledge(&mut self, to: Side) {
        let next = self.direction(to.other()).sent_to;
        let mut segment = self.segment_to(to, (next, 0, false), Flags::ACK);
        segment.sack = self.direction(to).sack_blocks();
        if !segment.sack.is_empty() {
            // RFC 2018, section 3: 2 + 8n bytes, and 2 bytes of padding.
            segment.header += 4 + 8 * segment.sack.as_slice().len() as u8;
        }
        self.queue.push_back(Outgoing { to, segment, origin: Origin::Proxy });
    }

    /// Handles data and FIN. Every segment that occupies sequence space is acknowledged.
    fn on_data(&mut self, now: Instant, from: Side, segment: &Segment) {
        let direction = &mut self.directions[from.index()];
        if segment.sequence_len() == 0 {
            // A keep-alive probe (RFC 9293, section 3.8.4).
            if direction.position(segment.seq).is_some_and(|at| at + 1 == direction.received) {
                self.acknowledge(from);
            }
            return;
        }
        if let Some((range, fin)) = direction.acceptable(segment) {
            let to = Direction::destination(from);
            for transmission in direction.store(now, range, fin) {
                let forwarded = self.segment_to(to, transmission, segment.flags);
                self.queue.push_back(Outgoing::forward(to, forwarded, segment));
            }
        }
        if !self.direction(from).withholds_acknowledgement_of(segment) {
            self.acknowledge(from);
        }
    }

    /// Handles an acknowledgement of the data of `source`.
    fn on_acknowledgement(&mut self, now: Instant, source: Side, segment: &Segment) {
        let direction = &mut self.directions[source.index()];
        let (was_closed, before) = (direction.is_closed(), direction.acknowledgement());
        let transmissions = direction.on_acknowledgement(now, segment);
        let notifies = match direction.is_draining() {
            true => direction.acknowledgement() > before || direction.has_opened_while_draining(),
            false => direction.is_closed() != was_closed || direction.has_opened(),
        };
        self.send(source.other(), transmissions);
        if notifies {
            self.acknowledge(source);
        }
    }

    /// Forwards a reset that lies within the window.
    fn on_reset(&mut self, from: Side, segment: &Segment) {
        let direction = self.direction(from);
        let window = direction.released..=direction.released + direction.buffer;
        let is_valid = direction.position(segment.seq).is_some_and(|at| window.contains(&at));
        if is_valid {
            self.end();
            self.reset_toward(from.other());
        }
    }

    fn reset_toward(&mut self, to: Side) {
        let source = self.direction(to.other());
        let (seq, flags) = (source.sequence_number(source.released), Flags::RST.with(Flags::ACK));
        let receiving = self.direction(to);
        let ack = receiving.sequence_number(receiving.received);
        let segment = Segment { seq, ack, flags, header: self.header, ..Segment::default() };
        self.queue.push_back(Outgoing { to, segment, origin: Origin::Proxy });
    }

    /// Discards all copies.
    fn end(&mut self) {
        self.lost += Relay::bytes_at_risk(self);
        self.aborted.get_or_insert_default();
        for direction in &mut self.directions {
            direction.store.clear();
            direction.timer.stop();
            direction.unanswered_since = None;
        }
    }

    /// Answers a segment after a reset, and repeats the reset of the opposite host.
    fn on_segment_after_reset(&mut self, now: Instant, from: Side, segment: &Segment) {
        if !segment.flags.has(Flags::RST) {
            self.answer_with_reset(from, segment);
        }
        if self.aborted.as_mut().is_some_and(|aborted| aborted.may_repeat(now)) {
            self.reset_toward(from.other());
        }
    }

    /// Answers a segment after a reset (RFC 9293, section 3.10.7.1).
    fn answer_with_reset(&mut self, from: Side, segment: &Segment) {
        let (seq, ack, flags) = if segment.flags.has(Flags::ACK) {
            (segment.ack, 0, Flags::RST)
        } else {
            let end = segment.seq.wrapping_add(segment.sequence_len());
            (0, end, Flags::RST.with(Flags::ACK))
        };
        let segment = Segment { seq, ack, flags, header: self.header, ..Segment::default() };
        self.queue.push_back(Outgoing { to: from, segment, origin: Origin::Proxy });
    }
}

impl Relay for StoringRelay {
    fn engage(params: &Arc<StackParams>, entry: &EntryState, window_shifts: [u8; 2]) -> Self {
        let directions = Side::BOTH.map(|from| {
            let (index, next) = (from.index(), entry.windows[from.other().index()]);
            Direction::new(params, entry.isns[index], next, entry.sack, window_shifts[index])
        });
        let header = params.header as u8;
        Self { directions, queue: OutgoingQueue::new(), header, aborted: None, lost: 0 }
    }

    fn request_ack(&mut self, to: Side) {
        self.acknowledge(to);
    }

    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        if self.aborted.is_some() {
            self.on_segment_after_reset(now, from, segment);
        } else if segment.flags.has(Flags::RST) {
            self.on_reset(from, segment);
        } else if segment.flags.has(Flags::SYN) {
            // A duplicate from the handshake (RFC 5961, section 4: challenge ACK).
            self.acknowledge(from);
        } else if segment.flags.has(Flags::ACK) {
            self.on_acknowledgement(now, from.other(), segment);
            self.on_data(now, from, segment);
        }
    }

    #[inline]
    fn poll_transmit(&mut self, _now: Instant) -> Option<Outgoing> {
        let holds_data = |direction: &Direction| !direction.store.is_empty();
        self.queue.pop_front(|| !self.directions.iter().any(holds_data))
    }

    fn next_deadline(&self) -> Instant {
        let [client, server] = &self.directions;
        client.timer.deadline().min(server.timer.deadline())
    }

    fn handle_timeout(&mut self, now: Instant) {
        for from in Side::BOTH {
            let direction = &mut self.directions[from.index()];
            if direction.timer.deadline() <= now {
                let transmission = direction.on_timeout(now);
                self.send(from.other(), transmission);
            }
        }
    }

    fn drain(&mut self) {
        self.directions.iter_mut().for_each(Direction::drain);
    }

    fn exceeds_r2(&self, now: Instant) -> bool {
        self.directions.iter().any(|direction| direction.exceeds_r2(now))
    }

    fn abort(&mut self) {
        self.end();
        Side::BOTH.into_iter().for_each(|side| self.reset_toward(side));
    }

    fn is_unsent(&self, from: Side, ack: u32) -> bool {
        let direction = self.direction(from.other());
        // A number before the position at which a restarted proxy has engaged is that of a delayed
        // duplicate from before the restart.
        self.aborted.is_none()
            && direction.acknowledged_position(ack).is_some_and(|at| at > direction.sent_to)
    }

    fn next_to(&self, to: Side) -> u32 {
        let direction = self.direction(to.other());
        direction.sequence_number(direction.sent_to)
    }

    fn expected(&self, from: Side) -> u32 {
        let direction = self.direction(from);
        direction.sequence_number(direction.received)
    }

    fn is_over(&self) -> bool {
        self.aborted.is_some() || self.directions.iter().all(Direction::is_closed)
    }

    fn is_finished(&self) -> bool {
        self.is_over() && self.queue.is_empty()
    }

    fn bytes_at_risk(&self) -> u64 {
        let at_risk = |from| self.buffer_status(from).bytes_at_risk;
        at_risk(Side::Client) + at_risk(Side::Server)
    }

    fn buffer_status(&self, from: Side) -> BufferStatus {
        let status = self.direction(from).buffer_status();
        if self.aborted.is_some() { BufferStatus { bytes_at_risk: 0, ..status } } else { status }
    }

    fn lost(&self) -> u64 {
        self.lost
    }

    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        if self.aborted.is_some() || segment.flags.has(Flags::SYN) || segment.flags.has(Flags::RST)
        {
            return None;
        }
        let direction = self.direction(from);
        let (range, _) = direction.acceptable(segment)?;
        let len = (range.end - range.start) as u32;
        (len > 0).then(|| (direction.sequence_number(range.start), len))
    }

    fn set_window_shift(&mut self, toward: Side, shift: u8) {
        // RFC 7323, section 2.3: a larger value is treated as 14.
        self.directions[toward.index()].shift = shift.min(14);
    }

    fn count(&self, statistics: &mut Statistics) {
        for to in Side::BOTH {
            let direction = self.direction(to.other());
            statistics.retransmissions[to.index()] += direction.retransmissions;
            statistics.timeouts[to.index()] += direction.timeouts;
        }
    }
}
