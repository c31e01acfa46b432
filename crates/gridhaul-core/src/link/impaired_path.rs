//! Packet transit through a direction that is not plain: with impairments, compression or active
//! queue management.

use gridhaul_scenario::scenario::{Compression, Direction};
use gridhaul_scenario::units::Instant;

use super::aqm::{Arrival, Discipline, StoredPacket, StoredPackets};
use super::impairments::{Impairments, Sent};
use super::{
    DropReason, LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit, TransitOutcome,
};

/// The state that a plain direction does without.
#[derive(Debug, Clone)]
pub(super) struct ImpairedPath<P> {
    impairments: Impairments,
    discipline: Discipline<P>,
    compression: Option<Compression>,
}

impl<P: LinkPayload> ImpairedPath<P> {
    /// The impairments and the queue discipline of a direction; `None` for a plain one.
    pub(super) fn new(direction: &Direction, random: LinkRandomStreams) -> Option<Box<Self>> {
        let plain = Impairments::is_none(direction)
            && direction.aqm.is_none()
            && direction.compression.is_none();
        (!plain).then(|| {
            Box::new(Self {
                impairments: Impairments::new(direction, random),
                discipline: Discipline::new(direction, random),
                compression: direction.compression,
            })
        })
    }

    pub(super) fn note_paired_use(&mut self, now: Instant) {
        self.impairments.note_paired_use(now);
    }

    /// Size on the link of a packet of `bytes`.
    pub(super) fn link_bytes(&self, bytes: u32) -> u32 {
        self.compression.map_or(bytes, |compression| compression.link_bytes(bytes))
    }

    /// The stored packets of CoDel and FQ-CoDel.
    pub(super) const fn stored(&self) -> Option<&StoredPackets<P>> {
        match &self.discipline {
            Discipline::Dequeue(stored) => Some(stored),
            Discipline::DropTail | Discipline::Enqueue(_) => None,
        }
    }

    fn stored_mut(&mut self) -> Option<&mut StoredPackets<P>> {
        match &mut self.discipline {
            Discipline::Dequeue(stored) => Some(stored),
            Discipline::DropTail | Discipline::Enqueue(_) => None,
        }
    }
}

impl<P: LinkPayload> LinkDirection<P> {
    /// [`handle_packet`](Self::handle_packet) for a direction that is not plain.
    #[inline(never)]
    pub(super) fn handle_impaired(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: P,
    ) -> Result<(), DropReason> {
        let bytes = self.link_bytes(bytes);
        let packet = StoredPacket { payload, bytes, offered: now };
        self.dequeue_due(now);
        let Some(impaired) = &mut self.impaired else { return Ok(()) };
        let started = impaired.impairments.outages.release(self.transmitter.free_at().max(now));
        let waits = started > now;
        match &mut impaired.discipline {
            Discipline::Dequeue(stored) => {
                let waits = waits || stored.packets() > 0;
                if stored.packets() == 0 {
                    stored.push(packet, waits)?;
                    stored.schedule_dequeue(started);
                } else {
                    stored.push(packet, waits)?;
                }
                self.emit_dropped(now, DropReason::QueueFull);
                self.dequeue_due(now);
                return Ok(());
            }
            Discipline::Enqueue(aqm) => {
                let arrival = Arrival {
                    now,
                    bytes,
                    free_at: self.transmitter.free_at(),
                    waits,
                    queue_packets: self.queue.packets(),
                    queue_bytes: self.queue.bytes(),
                };
                if aqm.drops(&arrival) {
                    return Err(DropReason::Aqm);
                }
                if waits && !self.queue.enqueue(started, bytes) {
                    aqm.on_full();
                    return Err(DropReason::QueueFull);
                }
            }
            Discipline::DropTail => {
                if waits && !self.queue.enqueue(started, bytes) {
                    return Err(DropReason::QueueFull);
                }
            }
        }
        self.transmit(started, packet, now);
        Ok(())
    }

    /// Dequeues all packets whose transmission starts by `now`. For drop-tail, only removes them
    /// from the queue length.
    pub(super) fn dequeue_due(&mut self, now: Instant) {
        self.queue.advance(now);
        while let Some(stored) = self.impaired.as_mut().and_then(|impaired| impaired.stored_mut())
            && stored.packets() > 0
            && stored.next_dequeue() <= now
        {
            let started = stored.next_dequeue();
            let taken = stored.take(started);
            self.emit_dropped(started, DropReason::Aqm);
            if let Some(packet) = taken {
                // Load-dependent latency is evaluated at dequeue: these times are in order, the
                // arrival times of FQ-CoDel's packets need not be.
                self.transmit(started, packet, started);
            }
            let free_at = self.transmitter.free_at();
            if let Some(impaired) = &mut self.impaired {
                let next = impaired.impairments.outages.release(free_at);
                if let Some(stored) = impaired.stored_mut() {
                    stored.schedule_dequeue(next);
                }
            }
        }
        self.update_next();
    }

    /// Sets the next departure or dequeue time.
    pub(super) fn update_next(&mut self) {
        let next_dequeue = self
            .impaired
            .as_ref()
            .and_then(|impaired| impaired.stored())
            .map(StoredPackets::next_dequeue);
        let left = self.inside.front().map(|first| first.left);
        self.next = left.into_iter().chain(next_dequeue).min().unwrap_or(Instant::NEVER);
    }

    /// Packets that CoDel or FQ-CoDel dropped at `now` depart as lost.
    fn emit_dropped(&mut self, now: Instant, reason: DropReason) {
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

    /// Transmits a packet from `started` on. Load-dependent latency counts the packet at `counted`.
    fn transmit(&mut self, started: Instant, packet: StoredPacket<P>, counted: Instant) {
        let Some(impaired) = &mut self.impaired else { return };
        let StoredPacket { payload, bytes, offered } = packet;
        let busy = self.transmitter.charge(started, bytes);
        let sent = impaired.impairments.outages.end_of_transmission(started, busy);
        self.transmitter.occupy_until(sent);
        let lost = self.loss.loses(sent);
        let impaired_packet =
            impaired.impairments.apply(Sent { bytes, counted, started, sent, lost }, self.delay);
        let (left, outcome) = (impaired_packet.left, impaired_packet.outcome);
        let transit = PacketTransit { payload, bytes, offered, started, sent, left, outcome };
        self.insert(transit);
        if let Some(outcome) = outcome.of_duplicate().filter(|_| impaired_packet.duplicated) {
            self.copies += 1;
            self.insert(PacketTransit { outcome, ..transit });
        }
    }

    /// Inserts a packet in order of `left`, searching from the back: only reordering and AQM drops
    /// ever insert a packet before others.
    fn insert(&mut self, transit: PacketTransit<P>) {
        self.next = self.next.min(transit.left);
        self.inside.insert(transit, |other| other.left > transit.left);
    }
}
