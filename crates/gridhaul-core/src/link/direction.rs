//! One direction of a link as a state machine.

use std::collections::VecDeque;

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::impairments::{Impairments, Sent};
use super::loss::Loss;
use super::queue::DropTail;
use super::wire::Wire;
use super::{DropReason, Fate, LinkChance, Passage, Refused};

/// One direction of a link: a queue, then a wire, then the way to the other end.
///
/// Call order: hand packets in with [`handle_packet`](Self::handle_packet), never with a `now`
/// before an earlier one; at [`next_deadline`](Self::next_deadline) take what leaves with
/// [`poll_output`](Self::poll_output) until it returns `None`.
#[derive(Debug, Clone)]
pub struct LinkDirection<P> {
    queue: DropTail,
    wire: Wire,
    delay: Duration,
    loss: Loss,
    /// `None` for a plain link, which pays one branch for it.
    impairments: Option<Box<Impairments>>,
    /// Everything that was accepted and has not left, in order of `left`.
    inside: VecDeque<Passage<P>>,
    copies: u64,
}

impl<P: Clone> LinkDirection<P> {
    /// An idle direction.
    ///
    /// # Panics
    /// On a rate of zero, which no valid scenario has.
    #[must_use]
    pub fn new(direction: &scenario::Direction, chance: LinkChance) -> Self {
        Self {
            queue: DropTail::new(direction.queue),
            wire: Wire::new(direction.rate),
            delay: direction.delay,
            loss: Loss::new(direction.loss.as_ref(), chance),
            impairments: Impairments::new(direction, chance),
            inside: VecDeque::new(),
            copies: 0,
        }
    }

    /// Hands in a packet of `bytes`, headers included.
    ///
    /// # Errors
    /// Hands the packet back where the queue has no room for it.
    #[inline]
    pub fn handle_packet(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: P,
    ) -> Result<(), Refused<P>> {
        self.queue.advance(now);
        let mut started = self.wire.free_from(now);
        if let Some(impairments) = &self.impairments {
            started = impairments.outages.release(started);
        }
        if started > now && !self.queue.wait(started, bytes) {
            return Err(Refused { payload, reason: DropReason::QueueFull });
        }
        let busy = self.wire.charge(started, bytes);
        if self.impairments.is_some() {
            self.finish_impaired(now, bytes, payload, started, busy);
            return Ok(());
        }
        let sent = started + busy;
        self.wire.occupy_until(sent);
        let lost = self.loss.loses();
        let fate = if lost { Fate::Lost(DropReason::Loss) } else { Fate::Arrived };
        let left = sent + self.delay;
        self.inside.push_back(Passage { payload, bytes, offered: now, started, sent, left, fate });
        Ok(())
    }

    /// When [`poll_output`](Self::poll_output) next returns something; [`Instant::NEVER`] while
    /// nothing is inside, or nothing that could ever leave.
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.inside.front().map_or(Instant::NEVER, |first| first.left)
    }

    /// What leaves at or before `now`, lost packets included, one by one in order of time; at
    /// equal times in the order in which it was handed in.
    #[inline]
    pub fn poll_output(&mut self, now: Instant) -> Option<Passage<P>> {
        if self.next_deadline() > now { None } else { self.inside.pop_front() }
    }

    /// Packets that wait for the wire at `now`; the one on the wire does not count.
    pub fn queue_packets(&mut self, now: Instant) -> u32 {
        self.queue.advance(now);
        self.queue.packets()
    }

    /// Bytes that wait for the wire at `now`; the packet on the wire does not count.
    pub fn queue_bytes(&mut self, now: Instant) -> u64 {
        self.queue.advance(now);
        self.queue.bytes()
    }

    /// Passages that [`poll_output`](Self::poll_output) has yet to return: what waits, is on the
    /// wire or on the way, lost packets and second copies included.
    ///
    /// At every instant, accepted packets + [`copies`](Self::copies) = returned passages + inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.inside.len()
    }

    /// Second copies that duplication has made since the beginning.
    #[must_use]
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// The direction that this one is paired with carries a packet (see `load_latency`).
    #[inline]
    pub fn note_paired_use(&mut self, now: Instant) {
        if let Some(impairments) = &mut self.impairments {
            impairments.note_paired_use(now);
        }
    }

    #[inline(never)]
    fn finish_impaired(
        &mut self,
        offered: Instant,
        bytes: u32,
        payload: P,
        started: Instant,
        busy: Duration,
    ) {
        let Some(impairments) = &mut self.impairments else { return };
        let sent = impairments.outages.end_of_transmission(started, busy);
        self.wire.occupy_until(sent);
        let lost = self.loss.loses();
        let verdict = impairments.judge(Sent { bytes, offered, started, sent, lost }, self.delay);
        let (left, fate) = (verdict.left, verdict.fate);
        let passage = Passage { payload, bytes, offered, started, sent, left, fate };
        let copy = fate.of_copy().filter(|_| verdict.duplicated);
        let copy = copy.map(|fate| Passage { fate, ..passage.clone() });
        self.insert(passage);
        if let Some(copy) = copy {
            self.copies += 1;
            self.insert(copy);
        }
    }

    /// Keeps `inside` in order of `left`, looking from the back: only reordering ever moves
    /// anything, and only past the packets that overtake.
    fn insert(&mut self, passage: Passage<P>) {
        let behind = self.inside.iter().rev().take_while(|other| other.left > passage.left).count();
        self.inside.insert(self.inside.len() - behind, passage);
    }
}
