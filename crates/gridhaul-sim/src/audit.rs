//! The auditor: re-checks every run by code that did not produce it.
//!
//! It sees what goes into a link and what comes out, with the times that the link claims, and
//! checks them by rules of its own: nothing is created or destroyed, no wire is faster than its
//! rate, nothing arrives before it can, and no queue holds more than it may. A violation makes
//! the run an error.

use std::collections::VecDeque;

use gridhaul_core::link::{Fate, Passage};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::{Instant, QueueLimit};

/// Audits one direction of a link.
#[derive(Debug)]
pub(crate) struct LinkAudit {
    rate: u64,
    delay: u64,
    limit: QueueLimit,
    /// Reordered and copied packets come out in another order than they went in.
    in_order: bool,
    offered: u64,
    refused: u64,
    out: u64,
    /// Start of transmission and size of packets that may still wait at a later offer.
    waiting: VecDeque<(Instant, u32)>,
    waiting_bytes: u64,
    wire_free: Instant,
    /// Transmission work in units of 1/rate nanoseconds, and the time it may have taken.
    work: u128,
    busy_since: Option<Instant>,
    violation: Option<String>,
}

impl LinkAudit {
    pub(crate) fn new(direction: &Direction) -> Self {
        Self {
            rate: direction.rate.as_bits_per_sec(),
            delay: direction.delay.as_nanos(),
            limit: direction.queue,
            in_order: direction.reorder.is_none() && direction.duplicate.is_none(),
            offered: 0,
            refused: 0,
            out: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            wire_free: Instant::ZERO,
            work: 0,
            busy_since: None,
            violation: None,
        }
    }

    #[inline]
    pub(crate) fn on_offered(&mut self) {
        self.offered += 1;
    }

    #[inline]
    pub(crate) fn on_refused(&mut self) {
        self.refused += 1;
    }

    /// A packet comes out, at the far end or as a loss.
    #[inline]
    pub(crate) fn on_passage<P>(&mut self, now: Instant, passage: &Passage<P>) {
        let copy = matches!(passage.fate, Fate::Copy | Fate::DamagedCopy);
        if copy {
            return;
        }
        self.out += 1;
        let Passage { bytes, offered, started, sent, left, .. } = *passage;
        let arrived = matches!(passage.fate, Fate::Arrived | Fate::Damaged);
        let took = sent.since(started).as_nanos();
        // One nanosecond of rounding is allowed for each packet; the sum is checked below.
        let needed = u64::from(bytes) * 8_000_000_000;
        let ordered = offered <= started && started <= sent && sent <= left && left <= now;
        let causal = !arrived || left.since(sent).as_nanos() >= self.delay;
        if !ordered || !causal || (took + 1) * self.rate < needed {
            self.blame("a packet was faster than the link", now, passage);
        }
        self.check_capacity(now, passage, needed);
        if self.in_order {
            self.check_queue(now, passage);
        }
    }

    /// The wire carries one packet at a time, and a long busy time keeps the rate to the bit.
    #[inline]
    fn check_capacity<P>(&mut self, now: Instant, passage: &Passage<P>, needed: u64) {
        if !self.in_order {
            return;
        }
        if passage.started > self.wire_free || self.busy_since.is_none() {
            self.busy_since = Some(passage.started);
            self.work = 0;
        } else if passage.started < self.wire_free {
            self.blame("two packets were on the wire at once", now, passage);
        }
        self.wire_free = passage.sent;
        self.work += u128::from(needed);
        let since = self.busy_since.map_or(0, |begin| passage.sent.since(begin).as_nanos());
        if self.work > (u128::from(since) + 1) * u128::from(self.rate) {
            self.blame("a busy wire was faster than its rate", now, passage);
        }
    }

    /// Counts who was waiting when this packet was offered.
    #[inline]
    fn check_queue<P>(&mut self, now: Instant, passage: &Passage<P>) {
        while let Some(&(started, bytes)) = self.waiting.front() {
            if started > passage.offered {
                break;
            }
            self.waiting_bytes -= u64::from(bytes);
            self.waiting.pop_front();
        }
        if passage.started > passage.offered {
            self.waiting.push_back((passage.started, passage.bytes));
            self.waiting_bytes += u64::from(passage.bytes);
            let kept = match self.limit {
                QueueLimit::Packets(packets) => self.waiting.len() as u64 <= u64::from(packets),
                QueueLimit::Bytes(bytes) => self.waiting_bytes <= bytes.get(),
                QueueLimit::Unlimited => true,
            };
            if !kept {
                self.blame("the queue held more than its limit", now, passage);
            }
        }
    }

    /// At the end of a run: what is neither out nor refused must still be inside.
    pub(crate) fn finish(&mut self, name: &str, inside: u64) -> Result<(), String> {
        if let Some(violation) = self.violation.take() {
            return Err(format!("{name}: {violation}"));
        }
        if self.offered != self.refused + self.out + inside {
            return Err(format!(
                "{name}: {} packets went in, but {} were refused, {} came out and {inside} are \
                 inside",
                self.offered, self.refused, self.out
            ));
        }
        Ok(())
    }

    #[cold]
    fn blame<P>(&mut self, what: &str, now: Instant, passage: &Passage<P>) {
        let Passage { bytes, offered, started, sent, left, fate, .. } = passage;
        self.violation.get_or_insert_with(|| {
            format!(
                "{what} (now {now:?}, {bytes} B, offered {offered:?}, started {started:?}, \
                 sent {sent:?}, left {left:?}, {fate:?})"
            )
        });
    }
}
