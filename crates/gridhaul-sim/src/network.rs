//! The links of a run, and the routes over them.

use gridhaul_core::link::{LinkAccount, LinkDirection, Passage};
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

use crate::audit::LinkAudit;
use crate::capture::Tap;
use crate::events::{Events, Target};
use crate::packet::Packet;

/// Links, routes and the event queue: everything that a packet needs to get on.
#[derive(Debug)]
pub(crate) struct Network {
    pub links: Vec<LinkSlot>,
    /// Routes of all flows one behind the other, each with [`ARRIVED`] behind it.
    pub routes: Vec<u32>,
    pub events: Events,
    /// A packet that is written before a link with impairments or observers gets it.
    pub detached: Packet,
}

/// One direction of a link with its account.
#[derive(Debug)]
pub(crate) struct LinkSlot {
    pub link: LinkDirection<Packet>,
    pub audit: LinkAudit,
    pub stats: LinkAccount,
    /// Directions whose latency depends on whether this one is used.
    pub observers: Box<[u32]>,
    pub tap: Option<Box<Tap>>,
    /// Whether there are observers, a tap or a queue that holds its packets: one question for a link
    /// without.
    pub watched: bool,
}

/// Stands in the list of routes behind the last link of each.
pub(crate) const ARRIVED: u32 = u32::MAX;

/// Numbers from here on are no links but proxies: the first, the second, ... on the way.
pub(crate) const AT_PROXY: u32 = 1 << 31;

impl Network {
    /// Puts a packet onto the link of its route that comes next, at this place in the list.
    /// `packet` makes it, with the place behind. False where the queue drops it.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        next: u32,
        bytes: u32,
        packet: impl Fn(u32) -> Packet,
    ) -> bool {
        let link = self.routes[next as usize];
        let packet = || packet(next + 1);
        let slot = &mut self.links[link as usize];
        slot.stats.offered += 1;
        let watched = slot.watched;
        if watched {
            slot.on_watched(now, &packet());
        }
        let before = slot.link.next_deadline();
        if slot.link.handle_packet_with(now, bytes, packet).is_err() {
            slot.stats.dropped_queue += 1;
            slot.stats.refused += 1;
            return false;
        }
        slot.stats.queue_max = slot.stats.queue_max.max(slot.link.queued_at_last());
        let deadline = slot.link.next_deadline();
        // Behind others it changes nothing about when the link is due.
        if deadline != before {
            self.events.schedule(Target::Link(link), deadline);
        }
        if watched {
            self.on_accepted(now, link, bytes);
        }
        true
    }

    /// Where a segment to the end `to` is to be written that begins its route at `next` in the list:
    /// in the first link, if that is plain. [`Self::send`] follows.
    #[inline(always)]
    pub(crate) fn place_segment(&mut self, now: Instant, next: u32, to: u32) -> &mut Segment {
        let slot = &mut self.links[self.routes[next as usize] as usize];
        let packet = if slot.is_plain() {
            slot.link.place_packet(Packet::blank)
        } else {
            &mut self.detached
        };
        (packet.to, packet.next, packet.sent) = (to, next + 1, now);
        packet.segment_mut()
    }

    /// Sends the segment just written ([`Self::place_segment`]) of this size on the link. False where the
    /// queue drops it.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Instant, next: u32, bytes: u32) -> bool {
        let link = self.routes[next as usize];
        let slot = &mut self.links[link as usize];
        if !slot.is_plain() {
            return self.offer_detached(now, next, bytes);
        }
        slot.stats.offered += 1;
        let before = slot.link.next_deadline();
        if !slot.link.accept_placed(now, bytes) {
            slot.stats.dropped_queue += 1;
            slot.stats.refused += 1;
            return false;
        }
        slot.stats.queue_max = slot.stats.queue_max.max(slot.link.queued_at_last());
        let deadline = slot.link.next_deadline();
        if deadline != before {
            self.events.schedule_link(link, deadline);
        }
        true
    }

    #[inline(never)]
    fn offer_detached(&mut self, now: Instant, next: u32, bytes: u32) -> bool {
        let packet = self.detached;
        self.offer(now, next, bytes, |next| Packet { next, ..packet })
    }

    #[cold]
    fn on_accepted(&mut self, now: Instant, link: u32, bytes: u32) {
        self.links[link as usize].audit.on_accepted(now, bytes);
        let observers = std::mem::take(&mut self.links[link as usize].observers);
        for &observer in &observers {
            self.links[observer as usize].link.note_paired_use(now);
        }
        self.links[link as usize].observers = observers;
    }
}

impl LinkSlot {
    /// Neither impaired nor observed.
    #[inline]
    pub(crate) const fn is_plain(&self) -> bool {
        !self.watched && self.link.is_plain()
    }

    /// The packet that leaves at or before `now`, audited and counted; it stays where it is until
    /// `link.drop_front`.
    #[inline]
    pub(crate) fn front(&mut self, now: Instant) -> Option<&Passage<Packet>> {
        let passage = self.link.front(now)?;
        self.audit.on_passage(now, passage);
        self.stats.count(passage);
        Some(passage)
    }

    #[cold]
    fn on_watched(&mut self, now: Instant, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            tap.on_offered(now, packet);
        }
    }
}
