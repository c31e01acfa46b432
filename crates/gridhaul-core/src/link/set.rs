//! The links of a network: each direction with its counters and its observer.

use gridhaul_scenario::scenario::{Diagnostic, Direction, Directions, Scenario};
use gridhaul_scenario::units::Instant;

use super::{
    DropReason, LinkAccount, LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit,
};

/// The directions of the links of a network, numbered from 0.
///
/// A packet is offered to a direction by [`offer`](Self::offer), which counts it, notifies the observer of
/// the direction and the directions that are paired with it. What leaves is taken from the entry
/// ([`LinkEntry::front`]) when the direction is due. The caller keeps the deadlines: the simulator in its
/// event queue, others in [`TimedLinks`](super::TimedLinks).
#[derive(Debug, Clone)]
pub struct LinkSet<P, O = ()> {
    entries: Vec<LinkEntry<P, O>>,
}

/// One direction of a link.
#[derive(Debug, Clone)]
pub struct LinkEntry<P, O = ()> {
    /// The direction itself.
    pub direction: LinkDirection<P>,
    /// What was counted since the start of the run.
    pub account: LinkAccount,
    /// Sees the packets of the direction.
    pub observer: O,
    /// Directions whose latency depends on whether this one is used.
    paired: Box<[u32]>,
    /// Whether an offered packet concerns the observer or a paired direction: one comparison decides for
    /// the directions without either.
    is_observed: bool,
}

/// Sees the packets of one direction: an audit, a capture. `()` observes nothing.
///
/// All methods do nothing unless they are overridden.
pub trait LinkObserver<P> {
    /// Whether [`on_offered`](Self::on_offered) or [`on_accepted`](Self::on_accepted) do anything. The
    /// answer may not change after the direction has become part of a set.
    fn observes_offers(&self) -> bool {
        false
    }

    /// A packet is offered. The queue may drop it.
    fn on_offered(&mut self, _now: Instant, _packet: &P) {}

    /// The queue has accepted a packet of `bytes`.
    fn on_accepted(&mut self, _now: Instant, _bytes: u32) {}

    /// A packet leaves the direction at its far end, or is lost.
    fn on_transit(&mut self, _now: Instant, _passage: &PacketTransit<P>) {}
}

impl<P> LinkObserver<P> for () {}

impl<P: LinkPayload, O: LinkObserver<P>> LinkSet<P, O> {
    /// Idle links: every direction of a scenario for each member of its group, in the order of
    /// `directions`. `observer` makes the observer of a direction of this name and member.
    ///
    /// # Errors
    /// A direction is paired with one that does not exist, which no valid scenario has.
    pub fn of_scenario(
        scenario: &Scenario,
        directions: &Directions,
        replication: u32,
        mut observer: impl FnMut(&str, u64, &Direction) -> O,
    ) -> Result<Self, Diagnostic> {
        let mut entries = Vec::with_capacity(directions.row_of().len());
        for ((name, members), keys) in directions.rows().iter().zip(Directions::keys(scenario)) {
            for member in 0..*members {
                let random = LinkRandomStreams::named(scenario.seed, replication, name, member);
                entries.push(LinkEntry::new(keys, random, observer(name, member, keys)));
            }
        }
        for (entry, paired) in entries.iter_mut().zip(directions.paired(scenario)?) {
            entry.is_observed |= !paired.is_empty();
            entry.paired = paired.into();
        }
        Ok(Self { entries })
    }

    /// Idle links, none of them paired.
    pub fn of_entries(entries: impl IntoIterator<Item = LinkEntry<P, O>>) -> Self {
        Self { entries: entries.into_iter().collect() }
    }

    /// Number of directions.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no direction.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A direction by its number.
    ///
    /// # Panics
    /// There is no direction of this number.
    #[inline]
    #[must_use]
    pub fn entry(&self, link: u32) -> &LinkEntry<P, O> {
        &self.entries[link as usize]
    }

    /// A direction by its number.
    ///
    /// # Panics
    /// There is no direction of this number.
    #[inline]
    pub fn entry_mut(&mut self, link: u32) -> &mut LinkEntry<P, O> {
        &mut self.entries[link as usize]
    }

    /// All directions in the order of their numbers.
    pub fn iter(&self) -> std::slice::Iter<'_, LinkEntry<P, O>> {
        self.entries.iter()
    }

    /// All directions in the order of their numbers.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, LinkEntry<P, O>> {
        self.entries.iter_mut()
    }

    /// What was counted up to `now`, for each direction.
    pub fn accounts(&self, now: Instant) -> impl Iterator<Item = LinkAccount> {
        self.entries.iter().map(move |entry| entry.account.at(now, &entry.direction))
    }

    /// Offers a packet of `bytes` to a direction; `packet` makes the packet in its place. Where the
    /// deadline of the direction changes, `schedule` is called with the new deadline: a packet that waits
    /// after others does not change it.
    ///
    /// # Errors
    /// The queue has dropped the packet, for this reason.
    ///
    /// # Panics
    /// There is no direction of this number.
    #[inline(always)]
    pub fn offer(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        packet: impl Fn() -> P,
        schedule: impl FnOnce(Instant),
    ) -> Result<(), DropReason> {
        let entry = &mut self.entries[link as usize];
        entry.account.offered += 1;
        let is_observed = entry.is_observed;
        if is_observed {
            entry.on_offered(now, &packet());
        }
        let before = entry.direction.next_deadline();
        if let Err(reason) = entry.direction.handle_packet_with(now, bytes, packet) {
            entry.account.on_refused();
            return Err(reason);
        }
        entry.on_queued(before, schedule);
        if is_observed {
            self.on_accepted(now, link, bytes);
        }
        Ok(())
    }

    /// The place of the next packet of a direction that is neither impaired nor observed, with what was
    /// there before; `None` for other directions. The caller writes the packet and offers it by
    /// [`offer_slot`](Self::offer_slot). `filler` is for new memory.
    ///
    /// # Panics
    /// There is no direction of this number.
    #[inline(always)]
    pub fn packet_slot(&mut self, link: u32, filler: impl FnOnce() -> P) -> Option<&mut P> {
        let entry = &mut self.entries[link as usize];
        entry.is_plain().then(|| entry.direction.next_slot(filler))
    }

    /// As [`offer`](Self::offer), for a packet of `bytes` that was written in [`packet_slot`](Self::packet_slot).
    /// `None` where the direction has no such place.
    ///
    /// # Panics
    /// There is no direction of this number.
    #[inline(always)]
    pub fn offer_slot(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        schedule: impl FnOnce(Instant),
    ) -> Option<Result<(), DropReason>> {
        let entry = &mut self.entries[link as usize];
        if !entry.is_plain() {
            return None;
        }
        entry.account.offered += 1;
        let before = entry.direction.next_deadline();
        if !entry.direction.accept_slot(now, bytes) {
            entry.account.on_refused();
            return Some(Err(DropReason::QueueFull));
        }
        entry.on_queued(before, schedule);
        Some(Ok(()))
    }

    #[cold]
    fn on_accepted(&mut self, now: Instant, link: u32, bytes: u32) {
        let entry = &mut self.entries[link as usize];
        entry.observer.on_accepted(now, bytes);
        let paired = std::mem::take(&mut entry.paired);
        for &other in &paired {
            self.entries[other as usize].direction.note_paired_use(now);
        }
        self.entries[link as usize].paired = paired;
    }
}

impl<P: LinkPayload, O: LinkObserver<P>> LinkEntry<P, O> {
    /// An idle direction, paired with none.
    #[must_use]
    pub fn new(direction: &Direction, random: LinkRandomStreams, observer: O) -> Self {
        Self {
            direction: LinkDirection::new(direction, random),
            account: LinkAccount::of(direction),
            is_observed: observer.observes_offers(),
            observer,
            paired: Box::default(),
        }
    }

    /// Whether the direction is neither impaired nor observed.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        !self.is_observed && self.direction.is_plain()
    }

    /// The packet that leaves at or before `now`, observed and counted. The packet stays in its place until
    /// `direction.drop_front()`; call this method once for each packet.
    #[inline]
    pub fn front(&mut self, now: Instant) -> Option<&PacketTransit<P>> {
        let transit = self.direction.front(now)?;
        self.observer.on_transit(now, transit);
        self.account.count(transit);
        Some(transit)
    }

    /// The queue has taken a packet: `before` was the deadline without it.
    #[inline(always)]
    fn on_queued(&mut self, before: Instant, schedule: impl FnOnce(Instant)) {
        self.account.queue_max = self.account.queue_max.max(self.direction.queued_at_last());
        let deadline = self.direction.next_deadline();
        if deadline != before {
            schedule(deadline);
        }
    }

    #[cold]
    fn on_offered(&mut self, now: Instant, packet: &P) {
        self.observer.on_offered(now, packet);
    }
}
