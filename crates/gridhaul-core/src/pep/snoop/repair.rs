//! Acknowledgements of the receiver: which segments have arrived, which are missing, and which of
//! the acknowledgements are forwarded to the sender.

use gridhaul_scenario::units::Instant;

use super::Snoop;
use super::cache::CachedSegment;
use crate::pep::{Origin, Outgoing};
use crate::tcp::{Flags, SackBlocks, Segment};

/// Number of duplicate acknowledgements without SACK that indicate a loss. A single duplicate may
/// be caused by a spurious retransmission, and would trigger the next spurious one without end.
const DUPLICATE_THRESHOLD: u64 = 2;

impl Snoop {
    /// Handles an acknowledgement of the receiver. Returns the segment to forward, if any.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment,
    ) -> Option<Segment> {
        let Some(ack) = self.state.position(segment.ack) else { return Some(*segment) };
        if ack > self.state.highest {
            // Segments have reached the receiver over another path: the state is outdated.
            self.clear(now);
            return Some(*segment);
        }
        let una = self.state.una.or(self.floor()).unwrap_or(0);
        let same_window = segment.window == self.state.window;
        if ack >= una {
            self.state.window = segment.window;
            self.state.edge = ack + u64::from(segment.window);
        }
        self.handle_sack_blocks(now, ack, segment);
        if ack > una || ack == una && self.state.una.is_none() {
            self.advance(now, ack);
            self.release_to(segment.ack);
        } else if ack == una && same_window && self.is_hidden(ack, segment) {
            return None;
        }
        Some(self.without_own_holes(ack, segment))
    }

    /// Retransmits segments that SACK blocks or duplicate acknowledgements report as missing.
    pub(super) fn repair(&mut self, now: Instant) {
        let Some(una) = self.state.una else { return };
        if self.sack {
            // A segment is lost if a later transmission has arrived (RFC 8985, section 6.2, without
            // a reordering window, because a hop does not reorder).
            let (to, arrived, edge) = (self.state.sacked_to, self.state.arrived, self.state.edge);
            let lost = |entry: &&CachedSegment| {
                entry.latest_transmission < arrived && may_be_missing(entry, edge)
            };
            let below = self.cache.iter().take_while(|entry| entry.end <= to);
            let lost: Vec<u64> = below.filter(lost).map(|entry| entry.start).collect();
            lost.into_iter().for_each(|start| self.retransmit(now, start));
        } else if let Some(hole) = self.cache.at(una)
            && may_be_missing(hole, self.state.edge)
            && !hole.retransmitted_by_sender
        {
            // Each later segment causes one duplicate at most. More duplicates than the number of
            // later segments at the time of the retransmission mean that it is lost as well.
            let (followed, state) =
                (self.state.transmissions - hole.first_transmission, &self.state);
            let duplicate_threshold = if state.duplicate_threshold > 0 {
                state.duplicate_threshold
            } else {
                followed.clamp(1, DUPLICATE_THRESHOLD)
            };
            if followed > 0 && state.duplicates >= duplicate_threshold
                || hole.latest_transmission < state.arrived
            {
                let start = hole.start;
                self.retransmit(now, start);
                self.state.duplicate_threshold = followed + 1;
            }
        }
    }

    /// Retransmits the cached segment that begins at `start`.
    pub(super) fn retransmit(&mut self, now: Instant, start: u64) {
        if self.timer_target() == Some(start) {
            self.timer.stop();
        }
        let Some(entry) = self.cache.iter_mut().find(|entry| entry.start == start) else { return };
        self.state.transmissions += 1;
        self.state.spurious += 1;
        self.retransmissions += 1;
        entry.latest_transmission = self.state.transmissions;
        entry.sent_at = now;
        entry.retransmitted = true;
        let outgoing = Outgoing { to: self.toward, segment: entry.segment, origin: Origin::Proxy };
        self.queue.push_back(outgoing);
    }

    /// Start of the segment for which the timer runs: the first that may be missing. Segments after
    /// a gap that is not cached may have arrived.
    pub(super) fn timer_target(&self) -> Option<u64> {
        let una = self.state.una?;
        let missing = |entry: &&CachedSegment| {
            (entry.start <= una || entry.end <= self.state.sacked_to)
                && may_be_missing(entry, self.state.edge)
        };
        self.cache
            .iter()
            .take_while(|entry| entry.start <= una.max(self.state.sacked_to))
            .find(missing)
            .map(|entry| entry.start)
    }

    /// Handles the acknowledgement of all data before `ack`.
    fn advance(&mut self, now: Instant, ack: u64) {
        let state = &mut self.state;
        let timer = &mut self.timer;
        let mut in_order = true;
        let mut sample = None;
        let mut acknowledged = 0_u64;
        self.cache.acknowledge(ack, |entry| {
            if entry.was_sent_once() {
                state.arrived = state.arrived.max(entry.latest_transmission);
            } else if entry.retransmitted && timer.is_plausible(entry.sent_at, now) {
                // The retransmission has arrived, and not the original.
                state.arrived = state.arrived.max(entry.latest_transmission);
                state.spurious = state.spurious.saturating_sub(1);
            }
            acknowledged += u64::from(entry.sent);
            // Segments after a gap are acknowledged late, and yield no round-trip time sample.
            in_order &= entry.was_sent_once();
            let timed = in_order && entry.sent && !entry.sacked && entry.end == ack;
            sample = timed.then_some((entry.sent_at, entry.outstanding));
        });
        if let Some((sent_at, out)) = sample {
            timer.measure(sent_at, now);
            self.window.measure(sent_at, now, out, self.cache.is_waiting());
        }
        state.una = Some(ack);
        (state.duplicates, state.duplicate_threshold) = (0, 0);
        // The segments after the filled gap are those that duplicates had reported.
        state.arrived_beyond = state.arrived_beyond.saturating_sub(acknowledged.saturating_sub(1));
        if ack >= state.sent_to {
            state.arrived_beyond = 0;
        }
        timer.on_progress(now);
        timer.stop();
    }

    fn handle_sack_blocks(&mut self, now: Instant, ack: u64, segment: &Segment) {
        for &(left, right) in segment.sack.as_slice() {
            let (Some(left), Some(right)) = (self.state.position(left), self.state.position(right))
            else {
                continue;
            };
            // At or below the acknowledgement: D-SACK (RFC 2883), which reports no new data.
            if left <= ack || right <= left || right > self.state.highest {
                continue;
            }
            self.sack = true;
            let (state, timer) = (&mut self.state, &mut self.timer);
            state.sacked_to = state.sacked_to.max(right);
            let (window, limited) = (&mut self.window, self.cache.is_waiting());
            self.cache.sack(&(left..right), |entry| {
                if entry.was_sent_once() {
                    timer.measure(entry.sent_at, now);
                    window.measure(entry.sent_at, now, entry.outstanding, limited);
                } else if entry.retransmitted && timer.is_plausible(entry.sent_at, now) {
                    state.spurious = state.spurious.saturating_sub(1);
                } else {
                    return;
                }
                state.arrived = state.arrived.max(entry.latest_transmission);
            });
        }
    }

    /// Whether a duplicate acknowledgement is hidden from the sender. It is forwarded if the sender
    /// has to retransmit, if the sender has retransmitted already and counts duplicates, and if it
    /// answers a segment of the sender.
    fn is_hidden(&mut self, una: u64, segment: &Segment) -> bool {
        let state = &mut self.state;
        if segment.sequence_len() > 0 || segment.flags != Flags::ACK || is_dsack(segment) {
            return false;
        }
        if una < state.sent_to {
            state.duplicates += 1;
            state.arrived_beyond += 1;
            let hole = self.cache.at(una);
            return hole.is_some_and(|hole| {
                !hole.retransmitted_by_sender && may_be_missing(hole, state.edge)
            });
        }
        let is_spurious = state.spurious > 0;
        state.spurious -= u32::from(is_spurious);
        is_spurious
    }

    /// The acknowledgement without SACK blocks above a hole that the proxy repairs. The bytes of
    /// the option become no-operations (RFC 9293, section 3.1), so that later bytes are not moved.
    fn without_own_holes(&mut self, ack: u64, segment: &Segment) -> Segment {
        let edge = self.state.edge;
        let own = self
            .cache
            .iter()
            .find(|entry| !entry.retransmitted_by_sender && may_be_missing(entry, edge));
        let Some(own) = own.map(|entry| entry.start) else { return *segment };
        let mut sack = SackBlocks::default();
        for &(left, right) in segment.sack.as_slice() {
            let end = self.state.position(right);
            if end.is_none_or(|end| end <= own.max(ack)) {
                sack.push(left, right);
            }
        }
        Segment { sack, ..*segment }
    }
}

/// Whether the segment may be missing at the receiver, and lies within its window.
fn may_be_missing(entry: &CachedSegment, edge: u64) -> bool {
    entry.sent && !entry.sacked && entry.payload_end() <= edge
}

/// Whether the first block is D-SACK (RFC 2883, section 4): it reports a duplicate segment, at or
/// below the acknowledgement.
fn is_dsack(segment: &Segment) -> bool {
    let first = segment.sack.as_slice().first();
    first.is_some_and(|&(_, right)| right.wrapping_sub(segment.ack).cast_signed() <= 0)
}
