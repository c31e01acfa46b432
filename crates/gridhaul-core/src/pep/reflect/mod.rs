//! A reflection and regeneration unit: BR²U of paper `plc`, sections II.D.3 and III.
//!
//! It copies what comes, forwards it, and acknowledges it back at once, with the smaller of its
//! own window and the one that the next hop has reported. The acknowledgement of the next hop,
//! which may be such a unit too, frees the copy; until then, what is lost is sent again from here.
//! Both hosts see one connection with one set of sequence numbers.
//!
//! Trade-offs are listed in `docs/limitations/reflect.md`.

mod crash_loss_detection;
mod monitor;

use std::collections::VecDeque;
use std::sync::Arc;

use gridhaul_scenario::units::{Bytes, Instant};

use super::coupling::{Coupling, Manner, unit_params};
use super::{BufferStatus, Origin, Outgoing, Proxy, Side, Statistics};
use crate::tcp::{Connection, Flags, Segment, StackParams};

use self::crash_loss_detection::CrashLossDetector;
use self::monitor::{EntryState, HandshakeMonitor};

/// A reflection unit.
///
/// SYN and its answer pass, without the timestamps option and with no more window than the
/// unit's. With the first segment of the left host behind them the unit enters the connection.
/// A unit that comes to an open connection, after a restart or a change of the path, lets everything
/// pass and enters when all that has passed is acknowledged in both directions; never where
/// timestamps are used or FIN has passed.
///
/// FIN goes on behind the data, and is acknowledged to its sender when the next hop has
/// acknowledged it: so a close means the same from end to end as without units. A reset passes on at
/// once. If a side does not answer for 100 s and 15 retransmissions (R2 of RFC 1122, section
/// 4.2.3.5), the unit gives the connection up: it resets both hosts if it holds bytes that it has
/// acknowledged, because nobody else can deliver them; otherwise it lets the connection pass.
///
/// If it shows that bytes which a unit has acknowledged are gone (it has crashed, or the path goes
/// past it), both hosts are reset instead of waiting for ever.
#[derive(Debug, Clone)]
pub struct Reflect {
    params: Arc<StackParams>,
    phase: Phase,
    /// By the side that repeats.
    repeats: [CrashLossDetector; 2],
    /// See [`Proxy::set_window_shift`].
    window_shifts: [u8; 2],
    /// What passes, and resets of its own.
    leaving: VecDeque<Outgoing>,
    /// Bytes that another proxy had acknowledged and that were found to be gone, and those that
    /// were lost with earlier connections.
    lost: u64,
}

#[derive(Debug, Clone)]
enum Phase {
    Passing(HandshakeMonitor),
    Engaged(Box<Engaged>),
}

#[derive(Debug, Clone)]
struct Engaged {
    coupling: Coupling,
    /// Sequence number of the first byte of each side that was taken in.
    first: [u32; 2],
}

impl Reflect {
    /// A unit that keeps up to `buffer` of each direction. `params` is the stack that it sends
    /// with; its MSS must not be larger than those of the hosts.
    #[must_use]
    pub fn new(params: Arc<StackParams>, buffer: Bytes) -> Self {
        Self {
            params: unit_params(params, buffer),
            phase: Phase::Passing(HandshakeMonitor::default()),
            repeats: Default::default(),
            window_shifts: [0; 2],
            leaving: VecDeque::new(),
            lost: 0,
        }
    }

    /// A unit in a connection that exists from the start, without handshake and timestamps.
    /// `isns` are the hosts' initial sequence numbers, `next` the stacks of the next hops on both
    /// sides: what they offer at the start.
    #[must_use]
    pub fn engaged(
        params: Arc<StackParams>,
        buffer: Bytes,
        isns: [u32; 2],
        next: [&StackParams; 2],
    ) -> Self {
        let mut unit = Self::new(params, buffer);
        let windows = next.map(|stack| stack.receive_window);
        let sack = next.iter().all(|stack| stack.sack);
        unit.phase = unit.enter(EntryState { isns, windows, sack });
        unit
    }

    /// The end that faces a side, while the unit takes part in the connection.
    #[must_use]
    pub fn end(&self, side: Side) -> Option<&Connection> {
        match &self.phase {
            Phase::Passing(_) => None,
            Phase::Engaged(engaged) => Some(engaged.coupling.end(side)),
        }
    }

    fn enter(&self, entry: EntryState) -> Phase {
        let ends = Side::BOTH.map(|side| {
            let (own, peer) = (entry.isns[side.other().index()], entry.isns[side.index()]);
            let window = entry.windows[side.index()];
            let params = self.params.clone();
            Connection::adopted(params, own, peer, window, entry.sack)
        });
        let coupling = Coupling::new(ends, Manner::AsOne, self.window_shifts);
        let first = entry.isns.map(|isn| isn.wrapping_add(1));
        Phase::Engaged(Box::new(Engaged { coupling, first }))
    }

    fn pass(&mut self, now: Instant, from: Side, segment: &Segment) {
        let (header, buffer) = (self.params.header as u8, self.params.receive_window);
        let Phase::Passing(watch) = &mut self.phase else { return };
        if let Some(entry) = watch.opened_by(from, segment, buffer) {
            self.phase = self.enter(entry);
            if let Phase::Engaged(engaged) = &mut self.phase {
                // The right host still waits for the end of the handshake.
                engaged.coupling.end_mut(Side::Server).request_ack();
                engaged.coupling.handle_segment(now, from, segment);
            }
            return;
        }
        let incoming = segment;
        let mut segment = *segment;
        watch.pass(from, &mut segment, header, buffer);
        let expected = watch.expected_from(from);
        self.leaving.push_back(Outgoing::forward(from.other(), segment, incoming));
        if let Some(entry) = watch.settled() {
            self.phase = self.enter(entry);
        } else if let Some(expected) = expected {
            self.look_for_loss(now, from, &segment, expected);
        }
    }

    /// The unit has come in at the wrong moment, behind old copies of segments.
    fn leave(&mut self, now: Instant, from: Side, segment: &Segment) {
        if self.give_up() {
            self.pass(now, from, segment);
        }
    }

    /// Ends the unit's part in the connection. If the unit holds bytes at risk (acknowledged to
    /// their sender and not to the unit), both hosts are reset: their sender considers them
    /// delivered, and nobody else has them. Otherwise the connection passes from now on, which
    /// is returned.
    fn give_up(&mut self) -> bool {
        let Phase::Engaged(engaged) = &mut self.phase else { return true };
        match engaged.coupling.bytes_at_risk() {
            0 => {
                self.phase = Phase::Passing(HandshakeMonitor::default());
                self.repeats = Default::default();
                true
            }
            _ => {
                engaged.coupling.abort();
                false
            }
        }
    }

    #[inline]
    fn look_for_loss(&mut self, now: Instant, from: Side, segment: &Segment, expected: u32) {
        let counts = segment.sequence_len() > 0 && !segment.flags.has(Flags::SYN);
        if !counts {
            return;
        }
        let repeats = &mut self.repeats[from.index()];
        if let Some(gone) = repeats.note(now, segment.seq, expected) {
            self.on_gone(gone);
        }
    }

    /// So many bytes were acknowledged, and nobody has them: both hosts are reset.
    #[cold]
    fn on_gone(&mut self, gone: u32) {
        self.lost += u64::from(gone);
        self.repeats = Default::default();
        self.reset_both();
    }

    fn reset_both(&mut self) {
        match &mut self.phase {
            Phase::Engaged(engaged) => engaged.coupling.abort(),
            Phase::Passing(watch) => {
                let numbers = Side::BOTH.map(|side| watch.expected_from(side));
                *watch = HandshakeMonitor::default();
                self.leaving.extend(resets(numbers, self.params.header as u8));
            }
        }
    }
}

impl Engaged {
    /// Whether a host acknowledges what it was never sent from here.
    #[inline]
    fn is_misled(&self, from: Side, segment: &Segment) -> bool {
        let answers = segment.flags.has(Flags::ACK)
            && !segment.flags.has(Flags::RST)
            && !segment.flags.has(Flags::SYN);
        answers && self.coupling.end(from).is_unsent(segment.ack)
    }
}

impl Proxy for Reflect {
    fn handle_segment(&mut self, now: Instant, from: Side, segment: &Segment) {
        if let Phase::Engaged(engaged) = &mut self.phase {
            if engaged.is_misled(from, segment) {
                self.leave(now, from, segment);
                return;
            }
            let opens = segment.flags.has(Flags::SYN) && !segment.flags.has(Flags::ACK);
            if !(opens && from == Side::Client && engaged.coupling.is_over()) {
                engaged.coupling.handle_segment(now, from, segment);
                let expected = engaged.coupling.end(from).expected();
                self.look_for_loss(now, from, segment, expected);
                return;
            }
            // The next connection between the same ports.
            self.lost += engaged.coupling.lost();
            self.phase = Phase::Passing(HandshakeMonitor::default());
        }
        self.pass(now, from, segment);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Outgoing> {
        match &mut self.phase {
            Phase::Engaged(engaged) if self.leaving.is_empty() => {
                engaged.coupling.poll_transmit(now)
            }
            _ => self.leaving.pop_front(),
        }
    }

    fn next_deadline(&self) -> Instant {
        match &self.phase {
            Phase::Passing(_) => Instant::NEVER,
            Phase::Engaged(engaged) => engaged.coupling.next_deadline(),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let Phase::Engaged(engaged) = &mut self.phase else { return };
        engaged.coupling.handle_timeout(now);
        if engaged.coupling.is_deserted(now) {
            self.give_up();
        }
    }

    fn buffer_status(&self, from: Side) -> BufferStatus {
        match &self.phase {
            Phase::Passing(_) => BufferStatus::default(),
            Phase::Engaged(engaged) => engaged.coupling.buffer_status(from),
        }
    }

    fn bytes_at_risk(&self) -> u64 {
        match &self.phase {
            Phase::Passing(_) => 0,
            Phase::Engaged(engaged) => engaged.coupling.bytes_at_risk(),
        }
    }

    fn accepts(&self, from: Side, segment: &Segment) -> Option<(u32, u32)> {
        match &self.phase {
            Phase::Engaged(engaged) => engaged.coupling.accepts(from, segment),
            Phase::Passing(watch) => {
                watch.opened_by(from, segment, self.params.receive_window)?;
                (segment.len > 0).then_some((segment.seq, segment.len))
            }
        }
    }

    fn is_finished(&self) -> bool {
        let is_idle = match &self.phase {
            Phase::Passing(watch) => watch.is_idle(),
            Phase::Engaged(engaged) => engaged.coupling.is_finished(),
        };
        is_idle && self.leaving.is_empty()
    }

    fn reset(&mut self) {
        self.reset_both();
    }

    /// To be set anew for each connection, when its handshake has passed.
    fn set_window_shift(&mut self, toward: Side, shift: u8) {
        self.window_shifts[toward.index()] = shift;
        if let Phase::Engaged(engaged) = &mut self.phase {
            engaged.coupling.set_window_shift(toward, shift);
        }
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics {
            released: Side::BOTH.map(|from| self.buffer_status(from).released),
            at_risk: self.bytes_at_risk(),
            lost: self.lost(),
            ..Statistics::default()
        };
        if let Phase::Engaged(engaged) = &self.phase {
            engaged.coupling.count(&mut statistics);
        }
        statistics
    }

    fn lost(&self) -> u64 {
        match &self.phase {
            Phase::Passing(_) => self.lost,
            Phase::Engaged(engaged) => self.lost + engaged.coupling.lost(),
        }
    }

    fn first_sequence_number(&self, from: Side) -> Option<u32> {
        match &self.phase {
            Phase::Passing(_) => None,
            Phase::Engaged(engaged) => Some(engaged.first[from.index()]),
        }
    }
}

/// Resets for both hosts, with the numbers that they expect: `numbers` are those that are expected
/// of the left host and of the right one.
fn resets(numbers: [Option<u32>; 2], header: u8) -> impl Iterator<Item = Outgoing> {
    Side::BOTH.into_iter().filter_map(move |from| {
        let seq = numbers[from.index()]?;
        let (flags, ack) = match numbers[from.other().index()] {
            Some(ack) => (Flags::RST.with(Flags::ACK), ack),
            None => (Flags::RST, 0),
        };
        let segment = Segment { seq, ack, flags, header, ..Segment::default() };
        Some(Outgoing { to: from.other(), segment, origin: Origin::Proxy })
    })
}
