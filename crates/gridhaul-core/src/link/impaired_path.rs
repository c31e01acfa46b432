//! The path of a packet through a direction that is not plain: impaired, or with a managed queue.

use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use super::aqm::{Arrival, Discipline, StoredPacket, StoredPackets};
use super::impairments::{Impairments, Sent};
use super::{
    DropReason, LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit, TransitOutcome,
};

/// Everything that a plain direction does without.
#[derive(Debug, Clone)]
pub(super) struct ImpairedPath<P> {
    impairments: Impairments,
    discipline: Discipline<P>,
}

impl<P: LinkPayload> ImpairedPath<P> {
    /// What sets a direction impaired; `None` for a plain one.
    pub(super) fn new(direction: &Direction, random: LinkRandomStreams) -> Option<Box<Self>> {
        let plain = Impairments::is_none(direction) && direction.aqm.is_none();
        (!plain).then(|| {
            Box::new(Self {
                impairments: Impairments::new(direction, random),
                discipline: Discipline::new(direction, random),
            })
        })
    }

    pub(super) fn note_paired_use(&mut self, now: Instant) {
        self.impairments.note_paired_use(now);
    }

    /// The queue, if it holds its packets.
    pub(super) const fn stored(&self) -> Option<&StoredPackets<P>> {
        match &self.discipline {
            Discipline::StoredPackets(stored) => Some(stored),
            Discipline::DropTail | Discipline::Early(_) => None,
        }
    }

    fn stored_mut(&mut self) -> Option<&mut StoredPackets<P>> {
        match &mut self.discipline {
            Discipline::StoredPackets(stored) => Some(stored),
            Discipline::DropTail | Discipline::Early(_) => None,
        }
    }
}

impl<P: LinkPayload> LinkDirection<P> {
    /// The same as [`handle_packet`](Self::handle_packet) with all that a plain link does not do.
    #[inline(never)]
    pub(super) fn handle_impaired(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: P,
    ) -> Result<(), DropReason> {
        let packet = StoredPacket { payload, bytes, offered: now };
        self.settle(now);
        let Some(impaired) = &mut self.impaired else { return Ok(()) };
        let started = impaired.impairments.outages.release(self.transmitter.free_at().max(now));
        let waits = started > now;
        match &mut impaired.discipline {
            Discipline::StoredPackets(stored) => {
                let waits = waits || stored.packets() > 0;
                if stored.packets() == 0 {
                    stored.push(packet, waits)?;
                    stored.wake_at(started);
                } else {
                    stored.push(packet, waits)?;
                }
                self.lose_dropped(now, DropReason::QueueFull);
                self.settle(now);
                return Ok(());
            }
            Discipline::Early(early) => {
                let arrival = Arrival {
                    now,
                    bytes,
                    free_at: self.transmitter.free_at(),
                    waits,
                    queue_packets: self.queue.packets(),
                    queue_bytes: self.queue.bytes(),
                };
                if early.drops(&arrival) {
                    return Err(DropReason::Aqm);
                }
                if waits && !self.queue.wait(started, bytes) {
                    early.on_full();
                    return Err(DropReason::QueueFull);
                }
            }
            Discipline::DropTail => {
                if waits && !self.queue.wait(started, bytes) {
                    return Err(DropReason::QueueFull);
                }
            }
        }
        self.transmit(started, packet, now);
        Ok(())
    }

    /// Lets the wire take all packets whose turn comes by `now`, and forgets in drop-tail those
    /// that it has taken.
    pub(super) fn settle(&mut self, now: Instant) {
        self.queue.advance(now);
        while let Some(stored) = self.impaired.as_mut().and_then(|impaired| impaired.stored_mut())
            && stored.packets() > 0
            && stored.wake() <= now
        {
            let started = stored.wake();
            let taken = stored.take(started);
            self.lose_dropped(started, DropReason::Aqm);
            if let Some(packet) = taken {
                // Load-dependent latency looks at a packet when it leaves the queue: these times
                // are in order, those of arrival need not be.
                self.transmit(started, packet, started);
            }
            let free_at = self.transmitter.free_at();
            if let Some(impaired) = &mut self.impaired {
                let next = impaired.impairments.outages.release(free_at);
                if let Some(stored) = impaired.stored_mut() {
                    stored.wake_at(next);
                }
            }
        }
        self.find_next();
    }

    /// When something leaves, or a packet is taken from the queue that holds its packets.
    pub(super) fn find_next(&mut self) {
        let wake =
            self.impaired.as_ref().and_then(|impaired| impaired.stored()).map(StoredPackets::wake);
        let left = self.inside.front().map(|first| first.left);
        self.next = left.into_iter().chain(wake).min().unwrap_or(Instant::NEVER);
    }

    /// What a queue that holds its packets has dropped at `now` leaves as lost.
    fn lose_dropped(&mut self, now: Instant, reason: DropReason) {
        while let Some(packet) = self
            .impaired
            .as_mut()
            .and_then(|impaired| impaired.stored_mut())
            .and_then(StoredPackets::pop_dropped)
        {
            let StoredPacket { payload, bytes, offered } = packet;
            let outcome = TransitOutcome::Lost(reason);
            let transit = PacketTransit {
                payload,
                bytes,
                offered,
                started: now,
                sent: now,
                left: now,
                outcome,
            };
            self.insert(transit);
        }
    }

    /// The wire takes a packet at `started`. Load-dependent latency counts it at `counted`.
    fn transmit(&mut self, started: Instant, packet: StoredPacket<P>, counted: Instant) {
        let Some(impaired) = &mut self.impaired else { return };
        let StoredPacket { payload, bytes, offered } = packet;
        let busy = self.transmitter.charge(started, bytes);
        let sent = impaired.impairments.outages.end_of_transmission(started, busy);
        self.transmitter.occupy_until(sent);
        let lost = self.loss.loses();
        let impaired_packet =
            impaired.impairments.judge(Sent { bytes, counted, started, sent, lost }, self.delay);
        let (left, outcome) = (impaired_packet.left, impaired_packet.outcome);
        let transit = PacketTransit { payload, bytes, offered, started, sent, left, outcome };
        self.insert(transit);
        if let Some(outcome) = outcome.of_duplicate().filter(|_| impaired_packet.duplicated) {
            self.copies += 1;
            self.insert(PacketTransit { outcome, ..transit });
        }
    }

    /// Keeps `inside` in order of `left`, looking from the back: only reordering, and drops from a
    /// queue that holds its packets, ever move anything, and only past what leaves later.
    fn insert(&mut self, transit: PacketTransit<P>) {
        self.next = self.next.min(transit.left);
        self.inside.insert(transit, |other| other.left > transit.left);
    }
}
