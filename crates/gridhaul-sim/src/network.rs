//! The links of a run, and the routes over them.

use gridhaul_core::link::{DropReason, Fate, LinkDirection, Passage};
use gridhaul_scenario::units::Instant;

use crate::audit::LinkAudit;
use crate::capture::Tap;
use crate::events::{Events, Target};
use crate::packet::{Body, Packet};

/// Links, routes and the event queue: everything that a packet needs to get on.
#[derive(Debug)]
pub(crate) struct Network {
    pub links: Vec<LinkSlot>,
    /// Routes of all flows one behind the other; flows hold ranges of it.
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
}

/// What is counted of a direction, from the start of the run.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LinkStats {
    pub offered: u64,
    pub arrived: u64,
    pub arrived_bytes: u64,
    pub dropped_queue: u64,
    pub dropped_loss: u64,
    pub dropped_outage: u64,
    pub damaged: u64,
    pub copies: u64,
    pub waited_ns: u64,
    pub busy_ns: u64,
    pub delay_ns: u64,
    pub queue_max: u32,
}

impl Network {
    /// Puts a packet onto the link of its route that comes next. Returns it where the queue is
    /// full.
    #[inline]
    pub(crate) fn offer(&mut self, now: Instant, link: u32, packet: Packet) -> Result<(), Packet> {
        let slot = &mut self.links[link as usize];
        let bytes = packet.body.wire_bytes();
        slot.audit.on_offered();
        slot.stats.offered += 1;
        if let Some(tap) = &mut slot.tap {
            tap.on_offered(now, &packet);
        }
        let accepted = slot.link.handle_packet(now, bytes, packet);
        if let Err(refused) = accepted {
            slot.audit.on_refused();
            slot.stats.dropped_queue += 1;
            return Err(refused.payload);
        }
        slot.stats.queue_max = slot.stats.queue_max.max(slot.link.queue_packets(now));
        let deadline = slot.link.next_deadline();
        self.events.schedule(Target::Link(link), deadline);
        if !self.links[link as usize].observers.is_empty() {
            self.note_use(now, link);
        }
        Ok(())
    }

    /// Takes the next packet that has left a link.
    #[inline]
    pub(crate) fn take(&mut self, now: Instant, link: u32) -> Option<Passage<Packet>> {
        let slot = &mut self.links[link as usize];
        let passage = slot.link.poll_output(now)?;
        slot.audit.on_passage(now, &passage);
        slot.stats.count(&passage);
        Some(passage)
    }

    /// Wakes the link when its next packet leaves.
    #[inline]
    pub(crate) fn reschedule(&mut self, link: u32) {
        let deadline = self.links[link as usize].link.next_deadline();
        self.events.schedule(Target::Link(link), deadline);
    }

    #[cold]
    fn note_use(&mut self, now: Instant, link: u32) {
        let observers = std::mem::take(&mut self.links[link as usize].observers);
        for &observer in &observers {
            self.links[observer as usize].link.note_paired_use(now);
        }
        self.links[link as usize].observers = observers;
    }
}

impl LinkStats {
    #[inline]
    fn count<P>(&mut self, passage: &Passage<P>) {
        let bytes = u64::from(passage.bytes);
        match passage.fate {
            Fate::Arrived => {}
            Fate::Damaged => self.damaged += 1,
            Fate::Copy | Fate::DamagedCopy => {
                // A copy never was on the wire: it only arrives.
                self.copies += 1;
                self.arrived += 1;
                self.arrived_bytes += bytes;
                return;
            }
            Fate::Lost(DropReason::Outage) => self.dropped_outage += 1,
            Fate::Lost(_) => self.dropped_loss += 1,
        }
        self.waited_ns += passage.started.since(passage.offered).as_nanos();
        self.busy_ns += passage.sent.since(passage.started).as_nanos();
        if passage.fate.arrives() {
            self.arrived += 1;
            self.arrived_bytes += bytes;
            self.delay_ns += passage.left.since(passage.offered).as_nanos();
        }
    }
}

impl Body {
    /// Size on the wire with headers.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> u32 {
        match self {
            Self::Tcp(segment) => segment.wire_bytes(),
            Self::Datagram(datagram) => datagram.bytes + DATAGRAM_HEADER,
        }
    }
}

const DATAGRAM_HEADER: u32 = gridhaul_scenario::scenario::DATAGRAM_HEADER.get() as u32;
