//! Transmission of the segments that an end may send after an event.

use gridhaul_core::link::LossCause;
use gridhaul_core::load::InFlightMessages;
use gridhaul_core::tcp::{Connection, Flags, PendingSegment, Segment, Sender, State};
use gridhaul_scenario::units::Instant;

use super::World;
use crate::counters::RunCounters;
use crate::end_id::EndId;
use crate::flow::{Ends, Flow};
use crate::network::Network;

/// A segment that was offered to the first link of its route.
struct OfferedSegment {
    seq: u32,
    len: u32,
    flags: Flags,
    /// Size with headers.
    bytes: u32,
    /// Whether the queue has accepted it. TCP detects a segment that the queue drops as any other
    /// loss.
    accepted: bool,
}

impl World {
    /// Transmits the segments that an end may send, and schedules its next timer.
    #[inline(never)]
    pub(super) fn transmit_ready<const PLAIN: bool>(&mut self, now: Instant, end: EndId) {
        if !PLAIN {
            self.observe_handled(now, end);
        }
        let is_logged = !PLAIN && self.event_logs.has(end);
        let flow = &mut self.flows[end.flow() as usize];
        let side = end.side();
        let next = flow.routes[side];
        let in_burst = !PLAIN && side == 0 && flow.is_in_burst();
        let deadline = loop {
            let written = in_burst
                && poll_write(
                    now,
                    (&mut *flow, end.flow()),
                    &mut self.counters,
                    &mut self.in_flight,
                );
            let Ends::Tcp(ends) = &mut flow.ends else { return };
            let connection = &mut ends[side];
            let Some(pending) = connection.poll(now) else {
                if written {
                    // The connection waits for more data.
                    continue;
                }
                break connection.next_deadline();
            };
            let log = &mut self.event_logs;
            let observe = |connection: &Connection, segment: &Segment| {
                if is_logged {
                    log.on_polled(now, end, connection, Some(segment));
                }
            };
            let net = &mut self.net;
            let sent = offer_segment(now, (end, next), net, connection, &pending, observe);
            let data = sent.len > 0 && side == 0;
            if data {
                sent.count(flow.row, end, &mut self.counters);
                if !PLAIN && self.counters.loss_causes.needs_reports() {
                    let event = self.net.report(now, next, sent.accepted);
                    if let Some(event) = event {
                        connection.handle_link_report(sent.seq, sent.len, now, event);
                    }
                }
                note_cwnd(now, (flow.row, &mut flow.cwnd), connection, &mut self.counters);
            }
            if sent.is_last(connection) || data && !in_burst && connection.has_filled_window() {
                break connection.next_deadline();
            }
        };
        let sends_upstream = !PLAIN && self.aggregators.sends_from(end);
        self.net.events.schedule_end(end, deadline, || {
            let is_observed =
                is_logged || self.external.is_active() || self.counters.loss_causes.is_active();
            PLAIN || !(in_burst || sends_upstream || is_observed)
        });
        if is_logged && let Ends::Tcp(ends) = &self.flows[end.flow() as usize].ends {
            self.event_logs.on_polled(now, end, &ends[side], None);
        }
        if sends_upstream {
            self.on_upstream_transmitted(now, end.flow());
        }
    }

    /// An end has handled an event, which may show in an event log or in a classified loss.
    fn observe_handled(&mut self, now: Instant, end: EndId) {
        let Ends::Tcp(ends) = &self.flows[end.flow() as usize].ends else { return };
        if end.is_from() && self.counters.loss_causes.is_active() {
            self.counters.loss_causes.on_handled(end.flow(), ends);
        }
        if self.event_logs.has(end) {
            self.event_logs.on_handled(now, end, &ends[end.side()]);
        }
    }
}

/// Begins [`World::transmit_ready`] in a plain run: sends one segment, if the end may send it, as
/// after most events. Returns whether others may follow; otherwise, the timer is scheduled.
#[inline(always)]
pub(super) fn transmit_one(
    now: Instant,
    end: EndId,
    flow: &mut Flow,
    net: &mut Network,
    counters: &mut RunCounters,
) -> bool {
    let side = end.side();
    let next = flow.routes[side];
    let Ends::Tcp(ends) = &mut flow.ends else { return false };
    let connection = &mut ends[side];
    if connection.state() != State::Established {
        return true;
    }
    if let Some(pending) = connection.poll(now) {
        let sent = offer_segment(now, (end, next), net, connection, &pending, |_, _| ());
        let data = sent.len > 0 && side == 0;
        if data {
            sent.count(flow.row, end, counters);
            note_cwnd(now, (flow.row, &mut flow.cwnd), connection, counters);
        }
        if !(sent.is_last(connection) || data && connection.has_filled_window()) {
            return true;
        }
    }
    net.events.schedule_end(end, connection.next_deadline(), || true);
    false
}

/// Notes the congestion window after data was sent: the sender reduces it then if the connection
/// was idle, or the window not used.
#[inline(always)]
fn note_cwnd(
    now: Instant,
    (row, known): (u32, &mut u32),
    connection: &Connection,
    counters: &mut RunCounters,
) {
    let cwnd = connection.sender().map_or(0, Sender::cwnd);
    counters.rows[row as usize].note_cwnd(now, known, cwnd);
}

/// Sends a segment of an end over the route that begins at `next`. `observe` gets the segment
/// before the link.
#[inline(always)]
fn offer_segment(
    now: Instant,
    (end, next): (EndId, u32),
    net: &mut Network,
    connection: &mut Connection,
    pending: &PendingSegment,
    observe: impl FnOnce(&Connection, &Segment),
) -> OfferedSegment {
    let mut first_link = net.first_link(next);
    let segment = first_link.segment(now, end.peer());
    connection.write_segment(now, pending, segment);
    let Segment { seq, len, flags, .. } = *segment;
    let bytes = segment.wire_bytes();
    observe(connection, segment);
    let accepted = match first_link.send(now, bytes) {
        Some(accepted) => accepted,
        None => net.offer_detached(now, next, bytes),
    };
    OfferedSegment { seq, len, flags, bytes, accepted }
}

impl OfferedSegment {
    /// Counts a data segment of the `from` end of a flow of this row.
    #[inline(always)]
    fn count(&self, row: u32, end: EndId, counters: &mut RunCounters) {
        counters.path_counters[row as usize].on_sent(self.bytes);
        if !self.accepted {
            let Self { seq, len, flags, .. } = *self;
            let segment = Segment { seq, len, flags, ..Segment::default() };
            counters.on_segment_lost(row, end.flow(), &segment, LossCause::Queue);
        }
    }

    /// Whether nothing follows: an end sends data before a pure acknowledgement, so that it is the
    /// last segment, unless it acknowledges only the SYN.
    #[inline(always)]
    fn is_last(&self, connection: &Connection) -> bool {
        self.len == 0 && self.flags == Flags::ACK && connection.receiver().next() > 1
    }
}

/// During a burst, has the application of a flow write a message. Returns whether it was written.
#[inline(never)]
fn poll_write(
    now: Instant,
    (flow, number): (&mut Flow, u32),
    counters: &mut RunCounters,
    in_flight: &mut InFlightMessages,
) -> bool {
    let row = flow.row;
    flow.poll_write(now, in_flight, |ready| counters.on_ready(row, number, ready))
}
