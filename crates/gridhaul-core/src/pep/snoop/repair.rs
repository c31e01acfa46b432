//! What acknowledgements say about the last hop: what has arrived, what is missing, and what of
//! that the sender is told.

use gridhaul_scenario::units::Instant;

use super::Snoop;
use super::cache::Entry;
use crate::pep::{Origin, Outgoing};
use crate::tcp::{Flags, SackBlocks, Segment};

/// Duplicates without selective acknowledgements that mean a loss. One could be the answer to a
/// copy that was sent in vain, and would bring forth the next such copy, for ever.
const ENOUGH: u64 = 2;

impl Snoop {
    /// An acknowledgement from behind the lossy hop. Returns what of it goes on.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment,
    ) -> Option<Segment> {
        let Some(ack) = self.view.position(segment.ack) else { return Some(*segment) };
        if ack > self.view.highest {
            // Something has gone to the receiver on another way: what is known here is old.
            self.forget(now);
            return Some(*segment);
        }
        let una = self.view.una.or(self.floor()).unwrap_or(0);
        let same_window = segment.window == self.view.window;
        if ack >= una {
            self.view.window = segment.window;
            self.view.edge = ack + u64::from(segment.window);
        }
        self.take_sacks(now, ack, segment);
        if ack > una || ack == una && self.view.una.is_none() {
            self.advance(now, ack);
            self.release_to(segment.ack);
        } else if ack == una && same_window && self.is_hidden(ack, segment) {
            return None;
        }
        Some(self.without_own_holes(ack, segment))
    }

    /// Sends copies of what selective acknowledgements or duplicates show to be missing.
    pub(super) fn repair(&mut self, now: Instant) {
        let Some(una) = self.view.una else { return };
        if self.sack {
            // Something that went over the hop later has arrived (RFC 8985, section 6.2, with no
            // window for reordering: a hop keeps its order).
            let (to, arrived, edge) = (self.view.sacked_to, self.view.arrived, self.view.edge);
            let lost = |entry: &&Entry| entry.latest < arrived && is_open(entry, edge);
            let below = self.cache.iter().take_while(|entry| entry.end <= to);
            let lost: Vec<u64> = below.filter(lost).map(|entry| entry.start).collect();
            lost.into_iter().for_each(|start| self.copy(now, start));
        } else if let Some(hole) = self.cache.at(una)
            && is_open(hole, self.view.edge)
            && !hole.repeated
        {
            // Each segment that has followed brings one duplicate at most. More than those that
            // had followed when a copy was sent mean that the copy is lost, too.
            let (followed, view) = (self.view.order - hole.first, &self.view);
            let needed = if view.needed > 0 { view.needed } else { followed.clamp(1, ENOUGH) };
            if followed > 0 && view.duplicates >= needed || hole.latest < view.arrived {
                let start = hole.start;
                self.copy(now, start);
                self.view.needed = followed + 1;
            }
        }
    }

    /// Sends what is kept from `start` on over the hop again.
    pub(super) fn copy(&mut self, now: Instant, start: u64) {
        if self.overdue() == Some(start) {
            self.timer.stop();
        }
        let Some(entry) = self.cache.iter_mut().find(|entry| entry.start == start) else { return };
        self.view.order += 1;
        self.view.vain += 1;
        entry.latest = self.view.order;
        entry.sent_at = now;
        entry.copied = true;
        let copy = Outgoing { to: self.toward, segment: entry.segment, origin: Origin::Proxy };
        self.out.push_back(copy);
    }

    /// Where the entry starts that the timer is for: the first of those that are missing for all
    /// that is known. What lies behind a gap that is not kept here may have arrived.
    pub(super) fn overdue(&self) -> Option<u64> {
        let una = self.view.una?;
        let missing = |entry: &&Entry| {
            (entry.start <= una || entry.end <= self.view.sacked_to)
                && is_open(entry, self.view.edge)
        };
        self.cache
            .iter()
            .take_while(|entry| entry.start <= una.max(self.view.sacked_to))
            .find(missing)
            .map(|entry| entry.start)
    }

    /// Everything before `ack` has arrived.
    fn advance(&mut self, now: Instant, ack: u64) {
        let view = &mut self.view;
        let timer = &mut self.timer;
        let mut plain = true;
        let mut sample = None;
        let mut freed = 0_u64;
        self.cache.acknowledge(ack, |entry| {
            if entry.is_plain() {
                view.arrived = view.arrived.max(entry.latest);
            } else if entry.copied && timer.is_plausible(entry.sent_at, now) {
                // It is the copy that has arrived.
                view.arrived = view.arrived.max(entry.latest);
                view.vain = view.vain.saturating_sub(1);
            }
            freed += u64::from(entry.gone);
            // What had waited behind a gap was acknowledged late.
            plain &= entry.is_plain();
            let timed = plain && entry.gone && !entry.sacked && entry.end == ack;
            sample = timed.then_some((entry.sent_at, entry.out));
        });
        if let Some((sent_at, out)) = sample {
            timer.measure(sent_at, now);
            self.window.measure(sent_at, now, out, self.cache.is_waiting());
        }
        view.una = Some(ack);
        (view.duplicates, view.needed) = (0, 0);
        // Behind the gap that was filled lies what duplicates had announced.
        view.beyond = view.beyond.saturating_sub(freed.saturating_sub(1));
        if ack >= view.gone_to {
            view.beyond = 0;
        }
        timer.hear(now);
        timer.stop();
    }

    fn take_sacks(&mut self, now: Instant, ack: u64, segment: &Segment) {
        for &(left, right) in segment.sack.as_slice() {
            let (Some(left), Some(right)) = (self.view.position(left), self.view.position(right))
            else {
                continue;
            };
            // At or below the acknowledgement: a duplicate (RFC 2883), which is no news.
            if left <= ack || right <= left || right > self.view.highest {
                continue;
            }
            self.sack = true;
            let (view, timer) = (&mut self.view, &mut self.timer);
            view.sacked_to = view.sacked_to.max(right);
            let (window, limited) = (&mut self.window, self.cache.is_waiting());
            self.cache.sack(&(left..right), |entry| {
                if entry.is_plain() {
                    timer.measure(entry.sent_at, now);
                    window.measure(entry.sent_at, now, entry.out, limited);
                } else if entry.copied && timer.is_plausible(entry.sent_at, now) {
                    view.vain = view.vain.saturating_sub(1);
                } else {
                    return;
                }
                view.arrived = view.arrived.max(entry.latest);
            });
        }
    }

    /// Whether an acknowledgement that says nothing new is kept from the sender. It goes on where
    /// the sender must repair, where it has repaired already and counts, and where it is an answer
    /// to the sender itself.
    fn is_hidden(&mut self, una: u64, segment: &Segment) -> bool {
        let view = &mut self.view;
        if segment.sequence_len() > 0 || segment.flags != Flags::ACK || has_duplicate(segment) {
            return false;
        }
        if una < view.gone_to {
            view.duplicates += 1;
            view.beyond += 1;
            let hole = self.cache.at(una);
            return hole.is_some_and(|hole| !hole.repeated && is_open(hole, view.edge));
        }
        let answer = view.vain > 0;
        view.vain -= u32::from(answer);
        answer
    }

    /// The acknowledgement without the ranges that lie above a hole which is repaired from here.
    /// The option's bytes stay in the header, as no-operations (RFC 9293, 3.1), so that nobody needs
    /// to move what follows.
    fn without_own_holes(&mut self, ack: u64, segment: &Segment) -> Segment {
        let edge = self.view.edge;
        let own = self.cache.iter().find(|entry| !entry.repeated && is_open(entry, edge));
        let Some(own) = own.map(|entry| entry.start) else { return *segment };
        let mut sack = SackBlocks::default();
        for &(left, right) in segment.sack.as_slice() {
            let end = self.view.position(right);
            if end.is_none_or(|end| end <= own.max(ack)) {
                sack.push(left, right);
            }
        }
        Segment { sack, ..*segment }
    }
}

/// Whether it may be missing behind the hop, and the receiver has room for it.
fn is_open(entry: &Entry, edge: u64) -> bool {
    entry.gone && !entry.sacked && entry.payload_end() <= edge
}

/// Whether the first block reports a segment that has come twice (RFC 2883, section 4): it lies at
/// or below the acknowledgement.
fn has_duplicate(segment: &Segment) -> bool {
    let first = segment.sack.as_slice().first();
    first.is_some_and(|&(_, right)| right.wrapping_sub(segment.ack).cast_signed() <= 0)
}
