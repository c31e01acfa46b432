//! The links of a run, and the routes over them.

use gridhaul_core::link::{DropReason, LinkEntry, LinkObserver, LinkSet, PacketTransit};
use gridhaul_core::tcp::{Flags, Segment};
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

/// A segment that an end has transmitted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transmitted {
    pub seq: u32,
    pub len: u32,
    pub flags: Flags,
    /// Size with headers.
    pub bytes: u32,
    /// False if the queue of the first link has dropped the segment.
    pub accepted: bool,
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

    /// Transmits a segment to the end `to` whose route begins at `next` in the list. `write` writes
    /// the segment, over the content of an earlier one: in the buffer of the first link, if that
    /// has no impairments or observers.
    #[inline(always)]
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        next: u32,
        to: EndId,
        write: impl FnOnce(&mut Segment),
    ) -> Transmitted {
        let link = self.routes[next as usize];
        let entry = self.links.entry_mut(link);
        let packet = match entry.packet_slot(Packet::blank) {
            Some(slot) => slot,
            None => &mut self.detached,
        };
        (packet.to, packet.next, packet.sent) = (to, next + 1, now);
        let segment = packet.segment_mut();
        write(segment);
        let Segment { seq, len, flags, .. } = *segment;
        let bytes = segment.wire_bytes();
        let events = &mut self.events;
        let schedule = |deadline| events.schedule_link(link, deadline);
        let accepted = match entry.offer_slot(now, bytes, schedule) {
            Some(offered) => offered.is_ok(),
            None => self.offer_detached(now, next, bytes),
        };
        Transmitted { seq, len, flags, bytes, accepted }
    }

    /// The contention for a medium is over for a packet.
    #[cold]
    pub(crate) fn advance_medium(&mut self, now: Instant, medium: u32) {
        let events = &mut self.events;
        let schedule = &mut |index, deadline| events.schedule_link(index, deadline);
        self.links.advance_medium(now, medium, schedule);
    }

    /// Whether the queue at this index of the list of routes marks packets that support explicit
    /// congestion notification: it is more than half full.
    #[cold]
    pub(crate) fn marks(&mut self, now: Instant, next: u32) -> bool {
        let link = self.routes[next as usize];
        self.links.entry_mut(link).direction.is_more_than_half_full(now)
    }

    #[inline(never)]
    fn offer_detached(&mut self, now: Instant, next: u32, bytes: u32) -> bool {
        let packet = self.detached;
        self.offer(now, next, bytes, |next| Packet { next, ..packet }).is_ok()
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

    #[inline]
    fn on_transit(&mut self, now: Instant, transit: &PacketTransit<Packet>) {
        self.audit.on_transit(now, transit);
    }
}
