//! The auditor: re-checks every run by code that did not produce it.
//!
//! It sees what goes into a link and what comes out, with the times that the link claims, and
//! checks them by rules of its own: nothing is created or destroyed, no wire is faster than its
//! rate, nothing arrives before it can, and no queue holds more than it may. A violation makes
//! the run an error.

mod channel;
mod collector;
mod kept;
mod queue;
#[cfg(test)]
mod tests;
mod violation;
mod wire;

use gridhaul_core::link::{DropReason, LinkPayload, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use channel::ChannelCheck;
pub(crate) use collector::CollectorAudit;
use kept::KeptCheck;
use queue::QueueCheck;
pub use violation::{AuditError, CollectorRule, LinkRule, Violation};
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
    /// In place of `queue` where it holds its packets.
    kept: Option<Box<KeptCheck>>,
    /// Where there is attenuation or noise.
    channel: Option<Box<ChannelCheck>>,
    violation: Option<Box<Violation>>,
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
            kept: KeptCheck::new(direction).map(Box::new),
            channel: ChannelCheck::new(direction).map(Box::new),
            violation: None,
        }
    }

    /// Whether it is to be told of each packet that goes in.
    pub(crate) const fn wants_accepted(&self) -> bool {
        self.kept.is_some()
    }

    /// A packet goes in.
    pub(crate) fn on_accepted(&mut self, now: Instant, bytes: u32) {
        if let Some(kept) = &mut self.kept {
            kept.on_accepted(now, bytes);
        }
    }

    /// A passage comes out, at the far end or as a loss.
    #[inline]
    pub(crate) fn on_transit<P: LinkPayload>(&mut self, now: Instant, passage: &PacketTransit<P>) {
        self.out += 1;
        let is_common = self.kept.is_none() && self.channel.is_none();
        if !is_common || !matches!(passage.outcome, TransitOutcome::Arrived) {
            self.on_uncommon(now, passage);
        } else if self.is_ordered(now, passage) {
            self.check_way(now, passage);
        }
    }

    /// A packet that does not simply arrive, or comes from a queue that holds its packets.
    #[inline(never)]
    fn on_uncommon<P: LinkPayload>(&mut self, now: Instant, passage: &PacketTransit<P>) {
        if passage.outcome.is_duplicate() || !self.is_ordered(now, passage) {
            return;
        }
        if let Some(kept) = &mut self.kept {
            let checked = kept.on_transit(passage, self.in_order);
            self.note(checked, now, passage);
        }
        let explained = match (&mut self.channel, passage.outcome) {
            (Some(channel), _) => channel.on_transit(passage),
            (None, TransitOutcome::Lost(DropReason::Shadowing | DropReason::Noise)) => {
                Err(LinkRule::LossWithoutCause)
            }
            (None, _) => Ok(()),
        };
        self.note(explained, now, passage);
        match passage.outcome {
            TransitOutcome::Lost(reason) if reason.is_by_queue() => self.check_drop(now, passage),
            _ => self.check_way(now, passage),
        }
    }

    #[inline]
    fn is_ordered<P>(&mut self, now: Instant, passage: &PacketTransit<P>) -> bool {
        let PacketTransit { offered, started, sent, left, .. } = *passage;
        let ordered = offered <= started && started <= sent && sent <= left && left <= now;
        if !ordered {
            self.violate(LinkRule::TimesOutOfOrder, now, passage);
        }
        ordered
    }

    /// The wire and the way of a packet whose times are in order.
    #[inline(always)]
    fn check_way<P>(&mut self, now: Instant, passage: &PacketTransit<P>) {
        let PacketTransit { bytes, offered, started, sent, left, .. } = *passage;
        if left.as_nanos() - sent.as_nanos() < self.delay {
            self.violate(LinkRule::FasterThanDelay, now, passage);
        }
        let took = sent.as_nanos() - started.as_nanos();
        if !self.wire.is_long_enough(bytes, took) {
            self.violate(LinkRule::FasterThanWire, now, passage);
            return;
        }
        if self.in_order {
            let carried = self.wire.carry(started, sent, took);
            self.note(carried, now, passage);
            if self.kept.is_none() && !self.queue.keeps(offered, started, bytes) {
                self.violate(LinkRule::QueueAboveLimit, now, passage);
            }
        }
    }

    /// At the end of a run: what is neither out nor refused must still be inside.
    pub(crate) fn finish(&mut self, account: Account) -> Result<(), Violation> {
        if let Some(violation) = self.violation.take() {
            return Err(*violation);
        }
        let Account { offered, refused, copies, inside } = account;
        if offered + copies != refused + self.out + inside {
            let left = self.out;
            return Err(Violation::Packets { offered, copies, refused, left, inside });
        }
        Ok(())
    }

    /// A queue drops at once, and without the wire; one that decides on arrival takes nothing that
    /// it drops.
    #[cold]
    fn check_drop<P>(&mut self, now: Instant, passage: &PacketTransit<P>) {
        if self.kept.is_none() {
            self.violate(LinkRule::DroppedAfterAcceptance, now, passage);
        } else if passage.sent != passage.started || passage.left != passage.sent {
            self.violate(LinkRule::DroppedAfterTransmission, now, passage);
        }
    }

    #[inline]
    fn note<P>(&mut self, checked: Result<(), LinkRule>, now: Instant, passage: &PacketTransit<P>) {
        if let Err(rule) = checked {
            self.violate(rule, now, passage);
        }
    }

    #[cold]
    #[inline(never)]
    fn violate<P>(&mut self, rule: LinkRule, now: Instant, passage: &PacketTransit<P>) {
        self.violation.get_or_insert_with(|| Box::new(Violation::of_passage(rule, now, passage)));
    }
}
