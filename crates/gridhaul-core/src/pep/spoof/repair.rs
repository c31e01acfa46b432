//! Acknowledgements of the next hop: which copies are released, and which segments are lost and
//! retransmitted over the hop.

use gridhaul_scenario::units::{Duration, Instant};

use super::direction::{Direction, Transmission};
use crate::tcp::{Flags, Segment};

/// Duplicate acknowledgements that indicate a loss (RFC 5681, section 3.2; paper `plc`, section
/// II.D.2: triple duplicate ACK).
const DUPLICATE_THRESHOLD: u64 = 3;

/// R2 of RFC 1122, section 4.2.3.5. The timer of a hop expires at least once per second or round
/// trip, so that many retransmissions are unanswered by then.
const R2: Duration = Duration::from_secs(100);

impl Direction {
    /// Handles an acknowledgement of the next hop. Returns the segments to send.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        segment: &Segment,
    ) -> Vec<Transmission> {
        let mut transmissions = Vec::new();
        let Some(ack) = self.acknowledged_position(segment.ack) else { return transmissions };
        if ack < self.released || ack > self.sent_to {
            return transmissions;
        }
        let is_same_window = segment.window == self.next_window;
        let edge = ack + u64::from(segment.window);
        if edge > self.edge {
            self.timer.on_progress(now);
        }
        (self.next_window, self.edge, self.unanswered_since) = (segment.window, edge, None);
        self.handle_sack_blocks(now, ack, segment);
        if ack > self.released {
            self.advance(now, ack);
        } else if segment.len == 0 && segment.flags == Flags::ACK && is_same_window {
            self.duplicates += 1;
        }
        self.repair(now, &mut transmissions);
        self.send_waiting(now, &mut transmissions);
        self.update_timer(now);
        transmissions
    }

    /// Handles an expired timer. Returns the segment to send.
    pub(super) fn on_timeout(&mut self, now: Instant) -> Option<Transmission> {
        self.timer.stop();
        let first = *self.store.first_at(self.released)?;
        self.timer.back_off();
        self.timeouts += 1;
        let transmission = if first.sent && (first.len == 0 || first.payload_end() <= self.edge) {
            self.retransmit(now, 0)
        } else {
            // Zero-window probe (RFC 9293, section 3.8.6.1): what fits into the window, at least a
            // byte.
            let room = self.edge.saturating_sub(first.start).max(1);
            let len = u64::from(first.len).min(room);
            let fin = first.fin && len == u64::from(first.len);
            self.sent_to = self.sent_to.max(first.start + len + u64::from(fin));
            (first.start, len as u32, fin)
        };
        self.timer.start(now, self.store.sent() == 1);
        Some(transmission)
    }

    /// Whether the next hop has not answered within R2.
    pub(super) fn exceeds_r2(&self, now: Instant) -> bool {
        self.unanswered_since.is_some_and(|since| now.since(since) >= R2)
    }

    /// Releases everything before `ack`.
    fn advance(&mut self, now: Instant, ack: u64) {
        let (timer, arrived) = (&self.timer, &mut self.arrived);
        // The segment that has caused the acknowledgement is the one that was sent last.
        let mut last: Option<(u64, bool, Instant)> = None;
        self.store.acknowledge(ack, |segment| {
            // Acknowledgements of retransmitted segments are ambiguous (Karn's algorithm).
            if !segment.retransmitted || timer.is_plausible(segment.sent_at, now) {
                *arrived = (*arrived).max(segment.transmission);
            }
            if last.is_none_or(|(transmission, ..)| transmission < segment.transmission) {
                last = Some((segment.transmission, segment.retransmitted, segment.sent_at));
            }
        });
        if let Some((_, false, sent_at)) = last {
            self.timer.measure(sent_at, now);
        }
        self.released = ack;
        if self.received < ack {
            self.received = self.store.contiguous_to(ack);
        }
        self.duplicates = 0;
        self.timer.on_progress(now);
        self.timer.stop();
    }

    /// Retransmits what is lost. A hop keeps the order of segments, so a segment is lost if one
    /// that was sent later has arrived (RFC 8985, section 6.2, without a reordering window).
    /// Without selective acknowledgements, the third duplicate beyond those that segments sent
    /// earlier may cause proves the same.
    fn repair(&mut self, now: Instant, into: &mut Vec<Transmission>) {
        if self.sack {
            let (to, arrived) = (self.sacked_to, self.arrived);
            let sent = self.store.iter_sent().take_while(|(_, segment)| segment.end() <= to);
            let lost =
                sent.filter(|(_, segment)| !segment.sacked && segment.transmission < arrived);
            let lost: Vec<usize> = lost.map(|(index, _)| index).collect();
            for index in lost {
                into.push(self.retransmit(now, index));
            }
        }
        let Some(hole) = self.hole() else { return };
        let needed = hole.earlier_duplicates + DUPLICATE_THRESHOLD;
        let is_lost = hole.transmission < self.arrived || self.duplicates >= needed;
        if is_lost && hole.payload_end() <= self.edge {
            self.timer.stop();
            into.push(self.retransmit(now, 0));
        }
    }

    fn retransmit(&mut self, now: Instant, index: usize) -> Transmission {
        self.retransmissions += 1;
        self.store.get_mut(index).retransmitted = true;
        self.transmit(now, index)
    }

    fn handle_sack_blocks(&mut self, now: Instant, ack: u64, segment: &Segment) {
        if !self.sack {
            return;
        }
        for &(left, right) in segment.sack.as_slice() {
            let positions = (self.acknowledged_position(left), self.acknowledged_position(right));
            let (Some(left), Some(right)) = positions else { continue };
            // At or below the acknowledgement: D-SACK (RFC 2883), which reports no new data.
            if left <= ack || right <= left || right > self.sent_to {
                continue;
            }
            self.sacked_to = self.sacked_to.max(right);
            let (timer, arrived) = (&mut self.timer, &mut self.arrived);
            self.store.sack(&(left..right), |segment| {
                if !segment.retransmitted {
                    timer.measure(segment.sent_at, now);
                } else if !timer.is_plausible(segment.sent_at, now) {
                    return;
                }
                *arrived = (*arrived).max(segment.transmission);
            });
        }
    }
}
