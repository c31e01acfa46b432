//! The auditor: re-checks every run by code that did not produce it.
//!
//! It sees what goes into a link and what comes out, with the times that the link claims, and
//! checks them by rules of its own: nothing is created or destroyed, no wire is faster than its
//! rate, nothing arrives before it can, and no queue holds more than it may. A violation makes
//! the run an error.

mod queue;
#[cfg(test)]
mod tests;
mod wire;

use gridhaul_core::link::{Fate, Passage};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use queue::QueueCheck;
use wire::WireCheck;

/// Audits one direction of a link.
#[derive(Debug)]
pub(crate) struct LinkAudit {
    delay: u64,
    /// Reordered and copied packets come out in another order than they went in.
    in_order: bool,
    /// Passages that came out, copies too.
    out: u64,
    wire: WireCheck,
    queue: QueueCheck,
    violation: Option<Box<str>>,
}

/// The account of a direction at the end of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    /// Packets handed to the link, and those of them that it did not take.
    pub offered: u64,
    pub refused: u64,
    /// Copies that it says it has made.
    pub copies: u64,
    /// Passages that it says are inside, copies too.
    pub inside: u64,
}

impl LinkAudit {
    pub(crate) fn new(direction: &Direction) -> Self {
        Self {
            delay: direction.delay.as_nanos(),
            in_order: direction.reorder.is_none() && direction.duplicate.is_none(),
            out: 0,
            wire: WireCheck::new(direction.rate),
            queue: QueueCheck::new(direction.queue),
            violation: None,
        }
    }

    /// A passage comes out, at the far end or as a loss.
    #[inline]
    pub(crate) fn on_passage<P>(&mut self, now: Instant, passage: &Passage<P>) {
        self.out += 1;
        let Passage { bytes, offered, started, sent, left, fate, .. } = *passage;
        if !matches!(fate, Fate::Arrived) && fate.is_copy() {
            return;
        }
        let ordered = offered <= started && started <= sent && sent <= left && left <= now;
        if !ordered {
            self.blame("the times of a packet are out of order", now, passage);
            return;
        }
        if left.as_nanos() - sent.as_nanos() < self.delay {
            self.blame("a packet was faster than the delay", now, passage);
        }
        let took = sent.as_nanos() - started.as_nanos();
        if !self.wire.is_long_enough(bytes, took) {
            self.blame("a packet was faster than the wire", now, passage);
            return;
        }
        if self.in_order {
            if let Err(what) = self.wire.carry(started, sent, took) {
                self.blame(what, now, passage);
            }
            if !self.queue.keeps(offered, started, bytes) {
                self.blame("the queue held more than its limit", now, passage);
            }
        }
    }

    /// At the end of a run: what is neither out nor refused must still be inside.
    pub(crate) fn finish(&mut self, account: Account) -> Result<(), String> {
        if let Some(violation) = self.violation.take() {
            return Err(violation.into());
        }
        let Account { offered, refused, copies, inside } = account;
        if offered + copies != refused + self.out + inside {
            return Err(format!(
                "{offered} packets went in and {copies} were copied, but {refused} were refused, \
                 {} came out and {inside} are inside",
                self.out
            ));
        }
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn blame<P>(&mut self, what: &str, now: Instant, passage: &Passage<P>) {
        let Passage { bytes, offered, started, sent, left, fate, .. } = passage;
        self.violation.get_or_insert_with(|| {
            format!(
                "{what} (now {now:?}, {bytes} B, offered {offered:?}, started {started:?}, \
                 sent {sent:?}, left {left:?}, {fate:?})"
            )
            .into()
        });
    }
}
