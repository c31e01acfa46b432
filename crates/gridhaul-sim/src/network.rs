//! The links of a run, and the routes over them.

use gridhaul_core::link::{LinkEntry, LinkObserver, LinkSet, PacketTransit};
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::units::Instant;

use crate::audit::LinkAudit;
use crate::capture::Tap;
use crate::events::{Events, Target};
use crate::packet::Packet;

/// Links, routes and the event queue: everything that a packet needs to get on.
#[derive(Debug)]
pub(crate) struct Network {
    pub links: LinkSet<Packet, Observer>,
    /// Routes of all flows one behind the other, each with [`ARRIVED`] behind it.
    pub routes: Vec<u32>,
    pub events: Events,
    /// A packet that is written before a link with impairments or observers gets it.
    pub detached: Packet,
}

/// One direction of a link with its counters and observers.
pub(crate) type Link = LinkEntry<Packet, Observer>;

/// What observes one direction of a link.
#[derive(Debug)]
pub(crate) struct Observer {
    pub audit: LinkAudit,
    pub tap: Option<Box<Tap>>,
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
        let events = &mut self.events;
        let schedule = |deadline| events.schedule(Target::Link(link), deadline);
        self.links.offer(now, link, bytes, || packet(next + 1), schedule).is_ok()
    }

    /// Where a segment to the end `to` is to be written that begins its route at `next` in the list:
    /// in the first link, if that is plain. [`Self::send`] follows.
    #[inline(always)]
    pub(crate) fn place_segment(&mut self, now: Instant, next: u32, to: u32) -> &mut Segment {
        let link = self.routes[next as usize];
        let packet = match self.links.packet_slot(link, Packet::blank) {
            Some(place) => place,
            None => &mut self.detached,
        };
        (packet.to, packet.next, packet.sent) = (to, next + 1, now);
        packet.segment_mut()
    }

    /// Sends the segment just written ([`Self::place_segment`]) of this size on the link. False where the
    /// queue drops it.
    #[inline(always)]
    pub(crate) fn send(&mut self, now: Instant, next: u32, bytes: u32) -> bool {
        let link = self.routes[next as usize];
        let events = &mut self.events;
        let schedule = |deadline| events.schedule_link(link, deadline);
        match self.links.offer_slot(now, link, bytes, schedule) {
            Some(accepted) => accepted.is_ok(),
            None => self.offer_detached(now, next, bytes),
        }
    }

    #[inline(never)]
    fn offer_detached(&mut self, now: Instant, next: u32, bytes: u32) -> bool {
        let packet = self.detached;
        self.offer(now, next, bytes, |next| Packet { next, ..packet })
    }
}

impl LinkObserver<Packet> for Observer {
    fn observes_offers(&self) -> bool {
        self.tap.is_some() || self.audit.wants_accepted()
    }

    fn on_offered(&mut self, now: Instant, packet: &Packet) {
        if let Some(tap) = &mut self.tap {
            tap.on_offered(now, packet);
        }
    }

    fn on_accepted(&mut self, now: Instant, bytes: u32) {
        self.audit.on_accepted(now, bytes);
    }

    #[inline]
    fn on_transit(&mut self, now: Instant, passage: &PacketTransit<Packet>) {
        self.audit.on_transit(now, passage);
    }
}
