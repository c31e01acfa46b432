//! The links of a run, and the routes over them.

use gridhaul_core::link::{DropReason, LinkEntry, LinkObserver, LinkSet, LossCause, PacketTransit};
use gridhaul_core::tcp::{LinkEvent, Segment};
use gridhaul_scenario::units::Instant;

use crate::audit::LinkAudit;
use crate::capture::Tap;
use crate::end_id::EndId;
use crate::events::{Events, Target};
use crate::packet::Packet;

/// Links, routes and the event queue: the state that forwarding a packet needs.
#[derive(Debug, Clone)]
pub(crate) struct Network {
    pub links: LinkSet<Packet, Observer>,
    /// Routes of all flows one after another, each followed by [`END_OF_ROUTE`].
    pub routes: Vec<u32>,
    pub events: Events,
    /// Buffer for a packet that is written before it is offered to a link with impairments or
    /// observers.
    pub detached: Packet,
}

/// The first link of a route, looked up once for each segment that an end sends.
pub(crate) struct FirstLink<'a> {
    link: u32,
    next: u32,
    /// Whether the link has neither impairments nor observers.
    is_plain: bool,
    entry: &'a mut Link,
    detached: &'a mut Packet,
    events: &'a mut Events,
}

/// One direction of a link with its counters and observers.
pub(crate) type Link = LinkEntry<Packet, Observer>;

/// The observers of one direction of a link.
#[derive(Debug)]
pub(crate) struct Observer {
    pub audit: LinkAudit,
    pub tap: Option<Box<Tap>>,
}

/// Follows the last link of each route in the list of routes.
pub(crate) const END_OF_ROUTE: u32 = u32::MAX;

/// Entries from here on are proxies instead of links: the first, the second, ... on the path.
pub(crate) const FIRST_PROXY: u32 = 1 << 31;

impl Network {
    /// Offers a packet to the link at the index `next` of the list of routes. `packet` builds the
    /// packet from the following index.
    ///
    /// # Errors
    /// The queue drops the packet, for the returned reason.
    #[inline(always)]
    pub(crate) fn offer(
        &mut self,
        now: Instant,
        next: u32,
        bytes: u32,
        packet: impl Fn(u32) -> Packet,
    ) -> Result<(), DropReason> {
        let link = self.routes[next as usize];
        let events = &mut self.events;
        let schedule = |index, deadline| events.schedule(Target::Link(index), deadline);
        self.links.offer(now, link, bytes, || packet(next + 1), schedule)
    }

    /// The first link of the route that begins at `next` in the list.
    #[inline(always)]
    pub(crate) fn first_link(&mut self, next: u32) -> FirstLink<'_> {
        let link = self.routes[next as usize];
        let entry = self.links.entry_mut(link);
        let (detached, events) = (&mut self.detached, &mut self.events);
        FirstLink { link, next, is_plain: entry.is_plain(), entry, detached, events }
    }

    /// Offers the packet that [`FirstLink::segment`] has left detached. Returns false if the queue
    /// drops the packet.
    #[inline(never)]
    pub(crate) fn offer_detached(&mut self, now: Instant, next: u32, bytes: u32) -> bool {
        let packet = self.detached;
        self.offer(now, next, bytes, |next| Packet { next, ..packet }).is_ok()
    }

    /// The contention for a medium is over for a packet.
    #[cold]
    pub(crate) fn advance_medium(&mut self, now: Instant, medium: u32) {
        let events = &mut self.events;
        let schedule = &mut |index, deadline| events.schedule_link(index, deadline);
        self.links.advance_medium(now, medium, schedule);
    }

    /// The report of the link at this index of the list of routes about a packet that was just
    /// offered to it.
    #[cold]
    pub(crate) fn report(&mut self, now: Instant, next: u32, accepted: bool) -> Option<LinkEvent> {
        if !accepted {
            return Some(LinkEvent::Lost(LossCause::Queue));
        }
        self.marks(now, next).then_some(LinkEvent::Marked)
    }

    /// Whether the queue at this index of the list of routes marks packets that support explicit
    /// congestion notification: it is more than half full.
    #[cold]
    pub(crate) fn marks(&mut self, now: Instant, next: u32) -> bool {
        let link = self.routes[next as usize];
        self.links.entry_mut(link).direction.is_more_than_half_full(now)
    }
}

impl FirstLink<'_> {
    /// Returns the memory for a segment to the end `to`, with the content of an earlier one: in the
    /// buffer of the link, if that has no impairments or observers. [`Self::send`] must follow.
    #[inline(always)]
    pub(crate) fn segment(&mut self, now: Instant, to: EndId) -> &mut Segment {
        let packet =
            if self.is_plain { self.entry.packet_slot(Packet::blank) } else { &mut *self.detached };
        (packet.to, packet.next, packet.sent) = (to, self.next + 1, now);
        packet.segment_mut()
    }

    /// Transmits the segment just written to the memory of [`Self::segment`], of this size. Returns
    /// whether the queue accepts the segment; `None` if the caller has to offer it by
    /// [`Network::offer_detached`].
    #[inline(always)]
    pub(crate) fn send(self, now: Instant, bytes: u32) -> Option<bool> {
        let Self { link, is_plain, entry, events, .. } = self;
        let schedule = |deadline| events.schedule_link(link, deadline);
        if !is_plain {
            return None;
        }
        Some(entry.offer_slot(now, bytes, schedule))
    }
}

/// The copy of a session has no capture, as the session itself.
impl Clone for Observer {
    fn clone(&self) -> Self {
        Self { audit: self.audit.clone(), tap: None }
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

    #[inline(always)]
    fn on_transit(&mut self, now: Instant, transit: &PacketTransit<Packet>) {
        self.audit.on_transit(now, transit);
    }

    #[inline(always)]
    fn on_arrived(&mut self, now: Instant, transit: &PacketTransit<Packet>) {
        self.audit.on_arrived(now, transit);
    }
}
