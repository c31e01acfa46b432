//! The auditor: checks every run with code that is independent of the simulator.
//!
//! The auditor sees the packets that enter and leave a link, with the times that the link reports.
//! Its rules are conservation (no packet is created or destroyed), capacity (no transmitter exceeds
//! its rate, and those of a shared medium do not exceed its time), causality (no packet arrives
//! before its propagation delay) and queue limits. A violation makes the run an error.

mod aggregator;
mod channel;
mod managed_queue;
mod medium;
mod opportunities;
mod queue;
#[cfg(test)]
mod tests;
mod transmitter;
mod violation;

use gridhaul_core::link::{DropReason, EcnCodePoint, LinkPayload, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{Direction, LinkTraceContent};
use gridhaul_scenario::units::Instant;

pub(crate) use aggregator::AggregatorAudit;
use channel::ChannelCheck;
use managed_queue::ManagedQueueCheck;
pub(crate) use medium::{MediumUse, check_medium, directions_on};
use queue::QueueCheck;
use transmitter::TransmitterCheck;
pub use violation::{AggregatorRule, AuditError, LinkRule, Violation};

/// Audits one direction of a link.
#[derive(Debug, Clone)]
pub(crate) struct LinkAudit {
    delay: u64,
    /// Whether packets leave in the order in which they were accepted: without reordering and
    /// duplication.
    in_order: bool,
    /// Whether attackers may drop packets.
    is_attacked: bool,
    /// Whether there is none of `managed_queue`, `channel` and `medium_use`.
    is_common: bool,
    /// Whether queue management may mark packets that support it.
    marks_packets: bool,
    /// Packets that left the direction, copies included.
    left: u64,
    transmitter: TransmitterCheck,
    queue: QueueCheck,
    /// Replaces `queue` for a queue that decides at dequeue (CoDel, FQ-CoDel).
    managed_queue: Option<Box<ManagedQueueCheck>>,
    /// Check of rates that change and of losses by attenuation or noise, for directions that have
    /// any of them.
    channel: Option<Box<ChannelCheck>>,
    /// Use of the medium that the direction shares with others.
    medium_use: Option<Box<MediumUse>>,
    violation: Option<Box<Violation>>,
}

/// Packet counts that a direction reports at the end of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkTotals {
    /// Packets offered to the link, and those that its queue refused.
    pub offered: u64,
    pub refused: u64,
    /// Copies that the link has made.
    pub copies: u64,
    /// Packets inside the link, copies included.
    pub inside: u64,
}

impl LinkAudit {
    pub(crate) fn new(direction: &Direction, trace: Option<&LinkTraceContent>) -> Self {
        let in_order = direction.reorder.is_none() && direction.duplicate.is_none();
        let managed_queue = ManagedQueueCheck::new(direction).map(Box::new);
        let channel = ChannelCheck::new(direction, trace).map(Box::new);
        Self {
            delay: direction.delay.as_nanos(),
            in_order,
            is_attacked: false,
            is_common: managed_queue.is_none() && channel.is_none(),
            marks_packets: direction.marks_packets(),
            left: 0,
            transmitter: TransmitterCheck::of(direction, trace),
            queue: QueueCheck::new(direction.queue),
            managed_queue,
            channel,
            medium_use: None,
            violation: None,
        }
    }

    /// The direction is under attack; attackers that delay packets change their order.
    pub(crate) fn expect_attack(&mut self, delays: bool) {
        self.is_attacked = true;
        self.in_order &= !delays;
    }

    /// The direction shares its medium with others.
    pub(crate) fn observe_medium(&mut self) {
        self.medium_use = Some(Box::default());
        self.is_common = false;
    }

    /// Use of the medium that the direction shares with others.
    pub(crate) fn medium_use(&self) -> MediumUse {
        self.medium_use.as_deref().copied().unwrap_or_default()
    }

    /// Whether the audit needs each accepted packet.
    pub(crate) const fn wants_accepted(&self) -> bool {
        self.managed_queue.is_some()
    }

    /// The link has accepted a packet.
    pub(crate) fn on_accepted(&mut self, now: Instant, bytes: u32) {
        if let Some(queue) = &mut self.managed_queue {
            queue.on_accepted(now, bytes);
        }
    }

    /// A packet leaves the link, delivered or lost.
    pub(crate) fn on_transit<P: LinkPayload>(&mut self, now: Instant, transit: &PacketTransit<P>) {
        if matches!(transit.outcome, TransitOutcome::Arrived) {
            self.on_arrived(now, transit);
        } else {
            self.left += 1;
            self.on_uncommon(now, transit);
        }
    }

    /// A packet leaves the link unimpaired, as nearly all do: their checks are inlined into the
    /// event loop.
    #[inline(always)]
    pub(crate) fn on_arrived<P: LinkPayload>(&mut self, now: Instant, transit: &PacketTransit<P>) {
        self.left += 1;
        if !self.is_common {
            self.on_uncommon(now, transit);
        } else if let Err(rule) = self.check_common(now, transit) {
            self.violate(rule, now, transit);
        }
    }

    /// Checks a packet that has arrived unimpaired.
    #[inline(always)]
    fn check_common<P>(
        &mut self,
        now: Instant,
        transit: &PacketTransit<P>,
    ) -> Result<(), LinkRule> {
        check_order(now, transit)?;
        self.check_transit(transit)
    }

    /// Checks a lost or impaired packet, or a packet of a managed queue.
    #[inline(never)]
    fn on_uncommon<P: LinkPayload>(&mut self, now: Instant, transit: &PacketTransit<P>) {
        // A duplicate has passed neither queue nor transmitter, which its original has.
        if transit.outcome.is_duplicate() {
            return;
        }
        if let Err(rule) = check_order(now, transit) {
            self.violate(rule, now, transit);
            return;
        }
        if let Some(queue) = &mut self.managed_queue {
            let checked = queue.on_transit(transit, self.in_order);
            self.note(checked, now, transit);
        }
        let explained = match (&mut self.channel, transit.outcome) {
            (Some(channel), _) => channel.on_transit(transit, self.in_order),
            (None, TransitOutcome::Lost(DropReason::Shadowing | DropReason::Noise)) => {
                Err(LinkRule::LossWithoutCause)
            }
            (None, _) => Ok(()),
        };
        self.note(explained, now, transit);
        if !self.is_attacked && transit.outcome == TransitOutcome::Lost(DropReason::Attack) {
            self.violate(LinkRule::LossWithoutCause, now, transit);
        }
        let is_marked = transit.outcome == TransitOutcome::Marked;
        if is_marked && !(self.marks_packets && transit.payload.ecn() == EcnCodePoint::Ce) {
            self.violate(LinkRule::MarkedWithoutEcn, now, transit);
        }
        match transit.outcome {
            TransitOutcome::Lost(reason) if reason.is_by_queue() => self.check_drop(now, transit),
            TransitOutcome::Lost(DropReason::Collision) => {
                let checked = self.check_transit(transit);
                self.note(checked, now, transit);
            }
            _ => {
                let checked = self.check_transit(transit);
                self.note(checked, now, transit);
                if let Some(medium_use) = &mut self.medium_use {
                    medium_use.add(self.transmitter.whole_nanos());
                }
            }
        }
    }

    /// Checks transmission and propagation of a packet whose times are in order.
    #[inline(always)]
    fn check_transit<P>(&mut self, transit: &PacketTransit<P>) -> Result<(), LinkRule> {
        let PacketTransit { bytes, offered, started, sent, left, .. } = *transit;
        if left.as_nanos() - sent.as_nanos() < self.delay {
            return Err(LinkRule::FasterThanDelay);
        }
        let took = sent.as_nanos() - started.as_nanos();
        if !self.transmitter.is_long_enough(bytes, took) {
            return Err(LinkRule::TransmissionTooShort);
        }
        // These checks compare a packet with those before it in the order of transmission, in which
        // packets leave only without reordering and duplication.
        if self.in_order {
            self.transmitter.check_sequence(started, sent, took)?;
            if self.managed_queue.is_none() && !self.queue.is_within_limit(offered, started, bytes)
            {
                return Err(LinkRule::QueueAboveLimit);
            }
        }
        Ok(())
    }

    /// Checks conservation at the end of a run: packets that have neither left nor been refused are
    /// inside.
    pub(crate) fn finish(&mut self, totals: LinkTotals) -> Result<(), Violation> {
        if let Some(violation) = self.violation.take() {
            return Err(*violation);
        }
        let LinkTotals { offered, refused, copies, inside } = totals;
        if offered + copies != refused + self.left + inside {
            let left = self.left;
            return Err(Violation::Packets { offered, copies, refused, left, inside });
        }
        Ok(())
    }

    /// Checks a drop by the queue: the packet must not have been transmitted, and a queue that
    /// decides on arrival must not have accepted it.
    #[cold]
    fn check_drop<P>(&mut self, now: Instant, transit: &PacketTransit<P>) {
        if self.managed_queue.is_none() {
            self.violate(LinkRule::DroppedAfterAcceptance, now, transit);
        } else if transit.sent != transit.started || transit.left != transit.sent {
            self.violate(LinkRule::DroppedAfterTransmission, now, transit);
        }
    }

    #[inline]
    fn note<P>(&mut self, checked: Result<(), LinkRule>, now: Instant, transit: &PacketTransit<P>) {
        if let Err(rule) = checked {
            self.violate(rule, now, transit);
        }
    }

    #[cold]
    #[inline(never)]
    fn violate<P>(&mut self, rule: LinkRule, now: Instant, transit: &PacketTransit<P>) {
        // The first violation is reported; later ones may be its consequences.
        self.violation.get_or_insert_with(|| Box::new(Violation::of_transit(rule, now, transit)));
    }
}

/// Checks that the times of a packet are in order.
#[inline]
fn check_order<P>(now: Instant, transit: &PacketTransit<P>) -> Result<(), LinkRule> {
    let PacketTransit { offered, started, sent, left, .. } = *transit;
    let ordered = offered <= started && started <= sent && sent <= left && left <= now;
    if ordered { Ok(()) } else { Err(LinkRule::TimesOutOfOrder) }
}
