//! One direction of a set, with its counters and its observer.

use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use crate::link::direction::Acceptance;
use crate::link::medium::MediumAccess;
use crate::link::{
    LinkAccount, LinkAttack, LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit,
    TransitOutcome,
};

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct LinkEntry<P, O = ()> {
    /// The direction itself.
    pub direction: LinkDirection<P>,
    /// Counters since the start of the run.
    pub account: LinkAccount,
    /// Observer of the packets of the direction.
    pub observer: O,
    /// Directions whose latency depends on the use of this direction.
    pub(super) paired: Box<[u32]>,
    /// Whether offered packets concern the observer, a paired direction or a shared medium: one
    /// comparison covers all cases.
    pub(super) is_observed: bool,
}

/// Observes the packets of one direction, for audits and captures. `()` observes nothing.
///
/// All methods have empty default implementations.
pub trait LinkObserver<P> {
    /// Whether [`on_offered`](Self::on_offered) or [`on_accepted`](Self::on_accepted) are
    /// implemented. The value must be constant while the direction is part of a set.
    fn observes_offers(&self) -> bool {
        false
    }

    /// A packet is offered. The queue may drop it.
    fn on_offered(&mut self, _now: Instant, _packet: &P) {}

    /// The queue has accepted a packet of `bytes` on the link.
    fn on_accepted(&mut self, _now: Instant, _bytes: u32) {}

    /// A packet arrives at the other end of the direction, or is lost.
    fn on_transit(&mut self, _now: Instant, _transit: &PacketTransit<P>) {}

    /// [`on_transit`](Self::on_transit) of a packet that arrives unimpaired, as most do.
    fn on_arrived(&mut self, now: Instant, transit: &PacketTransit<P>) {
        self.on_transit(now, transit);
    }
}

impl<P> LinkObserver<P> for () {}

impl<P: LinkPayload, O: LinkObserver<P>> LinkEntry<P, O> {
    /// An idle direction that is not paired, with a medium of its own.
    #[must_use]
    pub fn new(direction: &Direction, random: LinkRandomStreams, observer: O) -> Self {
        Self::with_access(direction, &MediumAccess::Own, random, observer)
    }

    /// An idle direction that is not paired, with this access to its medium.
    pub(super) fn with_access(
        direction: &Direction,
        access: &MediumAccess,
        random: LinkRandomStreams,
        observer: O,
    ) -> Self {
        let contends = matches!(access, MediumAccess::Contention);
        let mut account = LinkAccount::of(direction);
        account.has_contention = contends;
        Self {
            direction: LinkDirection::with_access(direction, access, random),
            account,
            is_observed: contends || observer.observes_offers(),
            observer,
            paired: Box::default(),
        }
    }

    /// Adds an attack. `keys` and `random` are those with which the entry was built; no packet has
    /// been offered yet.
    pub fn add_attack(&mut self, attack: LinkAttack, keys: &Direction, random: LinkRandomStreams) {
        self.account.has_attacks = true;
        self.direction.add_attack(attack, keys, random);
    }

    /// Whether the direction is plain and not observed.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        !self.is_observed && self.direction.is_plain()
    }

    /// The buffer slot of the next packet of a direction that [is plain](Self::is_plain), with its
    /// previous content. The caller writes the packet and offers it with
    /// [`offer_slot`](Self::offer_slot). `filler` initialises new memory.
    #[inline(always)]
    pub fn packet_slot(&mut self, filler: impl FnOnce() -> P) -> &mut P {
        self.direction.next_slot(filler)
    }

    /// As [`LinkSet::offer`](super::LinkSet::offer), for a packet of `bytes` written to
    /// [`packet_slot`](Self::packet_slot). Returns whether the queue accepts the packet.
    #[inline(always)]
    pub fn offer_slot(&mut self, now: Instant, bytes: u32, schedule: impl FnOnce(Instant)) -> bool {
        debug_assert!(self.is_plain(), "the packet is in the slot of a plain direction");
        self.account.offered += 1;
        let acceptance = self.direction.accept_slot(now, bytes);
        if matches!(acceptance, Acceptance::QueueFull) {
            self.account.on_refused();
            return false;
        }
        self.account.queue_max = self.account.queue_max.max(self.direction.queue.packets());
        if let Acceptance::Next(deadline) = acceptance {
            schedule(deadline);
        }
        true
    }

    /// The largest queue length begins anew with the present one: the measured time begins.
    pub(super) fn restart_maxima(&mut self, now: Instant) {
        self.account.queue_max = self.direction.waiting_at(now);
        self.direction.restart_class_maxima();
    }

    /// The packet that departs at or before `now`, after notifying the observer and the counters.
    /// The packet stays in the buffer until `direction.drop_front()`; call this method once for
    /// each packet.
    #[inline(always)]
    pub fn front(&mut self, now: Instant) -> Option<&PacketTransit<P>> {
        let transit = self.direction.front(now)?;
        if matches!(transit.outcome, TransitOutcome::Arrived) {
            self.observer.on_arrived(now, transit);
            self.account.count_arrived(transit);
        } else {
            self.observer.on_transit(now, transit);
            self.account.count_impaired(transit);
        }
        Some(transit)
    }

    /// The queue has accepted a packet; `before` was the previous deadline.
    #[inline(always)]
    pub(super) fn on_queued(&mut self, before: Instant, schedule: impl FnOnce(Instant)) {
        self.account.queue_max = self.account.queue_max.max(self.direction.queued_at_last());
        let deadline = self.direction.next_deadline();
        if deadline != before {
            schedule(deadline);
        }
    }
}
