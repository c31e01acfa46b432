//! Packet transit through a direction that is not plain: with impairments, compression, active
//! queue management or a scheduler.

use gridhaul_scenario::scenario::{Compression, Direction};
use gridhaul_scenario::units::Instant;

use super::aqm::{Arrival, Discipline, StoredPacket, StoredPackets, Verdict};
use super::attack::{AttackedPacket, Attacks};
use super::change::Failures;
use super::drx::Drx;
use super::impairments::{ImpairedPacket, Impairments, Sent};
use super::loss::Loss;
use super::medium::MediumAccess;
use super::radio::Radio;
use super::scheduler::Scheduler;
use super::shaper::Shaper;
use super::variable_quality::VariableQuality;
use super::variable_rate::VariableRate;
use super::{
    DropReason, LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit, TransitOutcome,
};

/// The state that a plain direction does without.
#[derive(Debug, Clone)]
pub(super) struct ImpairedPath<P> {
    pub(super) impairments: Impairments,
    discipline: Discipline<P>,
    /// Replaces the discipline in a direction whose packets have classes.
    pub(super) scheduler: Option<Box<Scheduler<P>>>,
    compression: Option<Compression>,
    /// The shaper before the queue.
    pub(super) shaper: Option<Box<Shaper<P>>>,
    /// `None` for a direction whose rate does not change.
    pub(super) rate: Option<VariableRate>,
    /// Discontinuous reception of the receiving device.
    pub(super) drx: Option<Drx>,
    /// Blocks and grants of a radio interface.
    radio: Option<Box<Radio>>,
    /// `None` for a direction without a trace of delays and losses.
    pub(super) quality: Option<Box<VariableQuality>>,
    /// Failures that a caller has caused during the run (`change`).
    pub(super) failures: Failures,
    pub(super) attacks: Attacks,
}

/// The times of a transmission.
#[derive(Debug, Clone, Copy)]
struct Transmission {
    started: Instant,
    sent: Instant,
    /// When load-dependent latency counts the packet.
    counted: Instant,
    collided: bool,
}

impl<P: LinkPayload> ImpairedPath<P> {
    /// The impairments and the queue discipline of a direction; `None` for a plain one.
    pub(super) fn new(
        direction: &Direction,
        access: &MediumAccess,
        random: LinkRandomStreams,
    ) -> Option<Box<Self>> {
        let plain = matches!(access, MediumAccess::Own)
            && Impairments::is_none(direction)
            && direction.aqm.is_none()
            && direction.scheduler.is_none()
            && direction.active_shaper().is_none()
            && direction.compression.is_none()
            && direction.rate_change.is_empty()
            && direction.drx.is_none()
            && direction.radio.is_none()
            && !Loss::delays(direction.loss.as_ref());
        (!plain).then(|| Box::new(Self::of(direction, access, random)))
    }

    /// The state of a direction, which may be plain.
    pub(super) fn of(
        direction: &Direction,
        access: &MediumAccess,
        random: LinkRandomStreams,
    ) -> Self {
        let mut impairments = Impairments::new(direction, random);
        if let MediumAccess::TimeSlots(slots) = access {
            impairments.outages.pause_outside(slots);
        }
        let discipline = match access {
            MediumAccess::Contention => Discipline::contention(direction),
            MediumAccess::Own | MediumAccess::TimeSlots(_) => Discipline::new(direction, random),
        };
        Self {
            impairments,
            discipline,
            scheduler: Scheduler::new(direction, random).map(Box::new),
            compression: direction.compression,
            shaper: Shaper::new(direction).map(Box::new),
            rate: VariableRate::of_changes(direction),
            drx: direction.drx.map(|keys| Drx::new(keys, random)),
            radio: direction.radio.map(|keys| Box::new(Radio::new(&keys, random))),
            quality: None,
            failures: Failures::default(),
            attacks: Attacks::default(),
        }
    }

    /// The paired direction carries a packet; the transmitter is free from `free_at` on.
    pub(super) fn note_paired_use(&mut self, now: Instant, free_at: Instant) {
        self.impairments.note_paired_use(now);
        let Some(drx) = &mut self.drx else { return };
        let woken = drx.wake(now).max(free_at);
        let start = self.radio.as_ref().map_or(woken, |radio| radio.start_of_slot(woken));
        let start = self.impairments.outages.release(start);
        if let Discipline::Dequeue(stored) = &mut self.discipline
            && start < stored.next_dequeue()
        {
            stored.schedule_dequeue(start);
        }
    }

    /// When the transmission of a packet that arrives at `now` begins if the transmitter is free
    /// from `free_at` on.
    pub(super) fn start_of_arrival(&self, now: Instant, free_at: Instant) -> Instant {
        match &self.rate {
            Some(VariableRate::Opportunities(opportunities)) => opportunities.start_of_arrival(now),
            Some(VariableRate::Changes(_)) | None => {
                if free_at > now {
                    return self.impairments.outages.release(free_at);
                }
                let start = self.drx.as_ref().map_or(now, |drx| drx.start(now));
                let start = self.radio.as_ref().map_or(start, |radio| radio.start(start));
                self.impairments.outages.release(start)
            }
        }
    }

    /// When the transmission of a packet that has waited begins, at the earliest at `from`.
    pub(super) fn start_from(&self, from: Instant) -> Instant {
        match &self.rate {
            Some(VariableRate::Opportunities(opportunities)) => opportunities.start_from(from),
            Some(VariableRate::Changes(_)) | None => self.impairments.outages.release(from),
        }
    }

    /// Size on the link of a packet of `bytes`.
    pub(super) fn link_bytes(&self, bytes: u32) -> u32 {
        self.compression.map_or(bytes, |compression| compression.link_bytes(bytes))
    }

    /// The stored packets of CoDel and FQ-CoDel, and those that wait for the medium.
    pub(super) const fn stored(&self) -> Option<&StoredPackets<P>> {
        match &self.discipline {
            Discipline::Dequeue(stored) | Discipline::Contention(stored) => Some(stored),
            Discipline::DropTail | Discipline::Enqueue(_) => None,
        }
    }

    /// Packets and bytes that are stored in a shaper, a scheduler or a managed queue.
    pub(super) fn stored_length(&self) -> (u32, u64) {
        let shaper = self.shaper.as_ref().map(|shaper| (shaper.packets(), shaper.bytes()));
        let classes = self.scheduler.as_ref().map(|classes| (classes.packets(), classes.bytes()));
        let stored = self.stored().map(|stored| (stored.packets(), stored.bytes()));
        let lengths = [shaper, classes, stored].into_iter().flatten();
        lengths.fold((0, 0), |sum, length| (sum.0 + length.0, sum.1 + length.1))
    }

    /// Sum of the waits by `now` of the packets that are stored, in nanoseconds.
    pub(super) fn stored_waits(&self, now: Instant) -> u64 {
        let shaper = self.shaper.as_ref().map(|shaper| shaper.waited_by(now));
        let classes = self.scheduler.as_ref().map(|classes| classes.waited_by(now));
        let stored = self.stored().map(|stored| stored.waited_by(now));
        [shaper, classes, stored].into_iter().flatten().sum()
    }

    /// When the next packet leaves the shaper, or the transmitter takes the next stored packet.
    fn next_dequeue(&self) -> Option<Instant> {
        let shaper = self.shaper.as_ref().map(|shaper| shaper.next_release());
        let classes = self.scheduler.as_ref().map(|classes| classes.next_dequeue());
        let stored = self.stored().map(StoredPackets::next_dequeue);
        [shaper, classes, stored].into_iter().flatten().min()
    }

    /// The stored packets that the transmitter dequeues.
    fn stored_mut(&mut self) -> Option<&mut StoredPackets<P>> {
        match &mut self.discipline {
            Discipline::Dequeue(stored) => Some(stored),
            Discipline::DropTail | Discipline::Enqueue(_) | Discipline::Contention(_) => None,
        }
    }

    /// Removes the first packet that waits for the medium.
    fn take_waiting(&mut self, now: Instant) -> Option<StoredPacket<P>> {
        match &mut self.discipline {
            Discipline::Contention(stored) => stored.take(now),
            Discipline::DropTail | Discipline::Enqueue(_) | Discipline::Dequeue(_) => None,
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
        let packet = StoredPacket::new(payload, bytes, now);
        self.dequeue_due(now);
        match self.impaired.as_ref().is_some_and(|impaired| impaired.shaper.is_some()) {
            true => self.handle_shaped(now, packet),
            false => self.enqueue(now, packet),
        }
    }

    /// A packet enters the queue of the link.
    pub(super) fn enqueue(
        &mut self,
        now: Instant,
        packet: StoredPacket<P>,
    ) -> Result<(), DropReason> {
        let (bytes, mut packet) = (packet.bytes, StoredPacket { enqueued: now, ..packet });
        let Some(impaired) = &mut self.impaired else { return Ok(()) };
        if impaired.scheduler.is_some() {
            return self.handle_scheduled(packet);
        }
        let started = impaired.start_of_arrival(now, self.transmitter.free_at());
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
                self.dequeue_stored(now);
                return Ok(());
            }
            Discipline::Contention(stored) => return stored.push(packet, true),
            Discipline::Enqueue(aqm) => {
                let arrival = Arrival {
                    now,
                    bytes,
                    free_at: self.transmitter.free_at(),
                    waits,
                    queue_packets: self.queue.packets(),
                    queue_bytes: self.queue.bytes(),
                };
                let is_dropped = match aqm.verdict(&arrival) {
                    Verdict::Accept => false,
                    Verdict::Mark => !packet.mark(),
                    Verdict::Drop => true,
                };
                if is_dropped {
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

    /// Passes packets from the shaper to the queue, and dequeues all packets whose transmission
    /// starts by `now`.
    pub(super) fn dequeue_due(&mut self, now: Instant) {
        self.release_shaped(now);
        self.dequeue_stored(now);
    }

    /// Dequeues all packets whose transmission starts by `now`. For drop-tail, only removes them
    /// from the queue length.
    pub(super) fn dequeue_stored(&mut self, now: Instant) {
        self.queue.advance(now);
        self.dequeue_scheduled(now);
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
                let next = impaired.start_from(free_at);
                if let Some(stored) = impaired.stored_mut() {
                    stored.schedule_dequeue(next);
                }
            }
        }
        self.update_next();
    }

    /// Sets the next departure or dequeue time.
    pub(super) fn update_next(&mut self) {
        let next_dequeue = self.impaired.as_ref().and_then(|impaired| impaired.next_dequeue());
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
            self.emit_dropped_packet(now, packet, reason);
        }
    }

    /// A packet that a queue dropped at `now` departs as lost.
    pub(super) fn emit_dropped_packet(
        &mut self,
        now: Instant,
        packet: StoredPacket<P>,
        reason: DropReason,
    ) {
        let StoredPacket { payload, bytes, offered, .. } = packet;
        let outcome = TransitOutcome::Lost(reason);
        let (started, sent, left) = (now, now, now);
        self.insert(PacketTransit { payload, bytes, offered, started, sent, left, outcome });
    }

    /// End of the transmission of the first packet that waits for the medium, if its first bit is
    /// sent at `first_bit`. `None` if no packet waits.
    pub(super) fn end_of_waiting(&mut self, first_bit: Instant) -> Option<Instant> {
        let bytes = self.stored()?.first_bytes()?;
        Some(self.end_of_transmission(first_bit, bytes))
    }

    /// Transmits the first packet that waits for the medium, from `started` to `sent`. A packet
    /// that `collided` is lost.
    pub(super) fn transmit_waiting(&mut self, started: Instant, sent: Instant, collided: bool) {
        let taken = self.impaired.as_mut().and_then(|impaired| impaired.take_waiting(started));
        let Some(packet) = taken else { return };
        self.finish(packet, Transmission { started, sent, counted: started, collided });
    }

    /// Transmits a packet from `started` on. Load-dependent latency counts the packet at `counted`.
    pub(super) fn transmit(&mut self, started: Instant, packet: StoredPacket<P>, counted: Instant) {
        let sent = self.end_of_transmission(started, packet.bytes);
        self.finish(packet, Transmission { started, sent, counted, collided: false });
    }

    fn end_of_transmission(&mut self, started: Instant, bytes: u32) -> Instant {
        let Some(impaired) = &mut self.impaired else { return started };
        let outages = &impaired.impairments.outages;
        match &mut impaired.rate {
            Some(rate) => rate.end_of_transmission(outages, started, bytes),
            None => outages.end_of_transmission(started, self.transmitter.charge(started, bytes)),
        }
    }

    /// The packet leaves the transmitter.
    fn finish(&mut self, packet: StoredPacket<P>, transmission: Transmission) {
        let Some(impaired) = &mut self.impaired else { return };
        let StoredPacket { payload, bytes, offered, is_marked, .. } = packet;
        let Transmission { started, sent, counted, collided } = transmission;
        self.transmitter.occupy_until(sent);
        if let Some(drx) = &mut impaired.drx {
            drx.note_reception(sent);
        }
        let mut lost = self.loss.loses(sent);
        let mut delay = self.delay + self.loss.delay();
        if let Some(radio) = &mut impaired.radio {
            let carried = radio.carry(&impaired.impairments.outages, started, sent);
            lost |= carried.lost;
            delay += carried.received.since(sent);
            self.transmitter.occupy_until(sent + carried.repetitions);
        }
        if let Some(quality) = &mut impaired.quality {
            lost |= quality.loses(sent);
            delay += quality.delay(sent);
        }
        let ImpairedPacket { mut left, mut outcome, duplicated } =
            impaired.impairments.apply(Sent { bytes, counted, started, sent, lost }, delay);
        if collided {
            outcome = TransitOutcome::Lost(DropReason::Collision);
        }
        let (flow, has_payload) = (payload.flow(), payload.has_payload());
        let packet = AttackedPacket { flow, has_payload, sent };
        impaired.attacks.apply(&packet, &mut left, &mut outcome);
        if is_marked && outcome == TransitOutcome::Arrived {
            outcome = TransitOutcome::Marked;
        }
        let transit = PacketTransit { payload, bytes, offered, started, sent, left, outcome };
        self.insert(transit);
        if let Some(outcome) = outcome.of_duplicate().filter(|_| duplicated) {
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
