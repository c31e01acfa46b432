//! The links of a run, and the routes over them.

use gridhaul_core::link::{DropReason, Fate, LinkDirection, Passage};
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
}

/// One direction of a link with its account.
#[derive(Debug)]
pub(crate) struct LinkSlot {
    pub link: LinkDirection<Packet>,
    pub audit: LinkAudit,
    pub stats: LinkStats,
    /// Directions whose latency depends on whether this one is used.
    pub observers: Box<[u32]>,
    pub tap: Option<Box<Tap>>,
    /// Whether there are observers, a tap or a queue that holds its packets: one question for a link
    /// without.
    pub watched: bool,
}

/// What is counted of a direction, from the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinkStats {
    pub offered: u64,
    pub arrived: u64,
    pub arrived_bytes: u64,
    /// By the queue, on arrival or later; and those that it did not take.
    pub dropped_queue: u64,
    pub refused: u64,
    pub dropped_loss: u64,
    pub dropped_outage: u64,
    pub damaged: u64,
    pub copies: u64,
    pub waited_ns: u64,
    pub busy_ns: u64,
    pub delay_ns: u64,
    pub queue_max: u32,
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

impl LinkStats {
    #[inline]
    fn count<P>(&mut self, passage: &Passage<P>) {
        let Passage { bytes, offered, started, sent, left, fate, .. } = *passage;
        if !matches!(fate, Fate::Arrived) {
            self.count_impaired(passage);
            return;
        }
        // The auditor has seen that these times are in order, or the run is an error.
        let [offered, started, sent, left] = [offered, started, sent, left].map(Instant::as_nanos);
        self.waited_ns += started.wrapping_sub(offered);
        self.busy_ns += sent.wrapping_sub(started);
        self.delay_ns += left.wrapping_sub(offered);
        self.arrived += 1;
        self.arrived_bytes += u64::from(bytes);
    }

    #[cold]
    #[inline(never)]
    fn count_impaired<P>(&mut self, passage: &Passage<P>) {
        let Passage { bytes, offered, started, sent, left, fate, .. } = *passage;
        if fate.arrives() {
            self.arrived += 1;
            self.arrived_bytes += u64::from(bytes);
        }
        if fate.is_copy() {
            // A copy never was on the wire: it only arrives.
            self.copies += 1;
            return;
        }
        // What the queue has dropped waited until then, and was never on the wire.
        self.waited_ns += started.since(offered).as_nanos();
        self.busy_ns += sent.since(started).as_nanos();
        match fate {
            Fate::Lost(DropReason::Outage) => self.dropped_outage += 1,
            Fate::Lost(reason) if reason.is_by_queue() => self.dropped_queue += 1,
            Fate::Lost(_) => self.dropped_loss += 1,
            _ => self.delay_ns += left.since(offered).as_nanos(),
        }
        self.damaged += u64::from(fate.is_damaged());
    }
}
