//! One direction of a link as a state machine.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::aqm::StoredPackets;
use super::impaired_path::ImpairedPath;
use super::loss::Loss;
use super::medium::MediumAccess;
use super::queue::DropTail;
use super::ring_buffer::RingBuffer;
use super::transmitter::Transmitter;
use super::{DropReason, LinkPayload, LinkRandomStreams, PacketTransit, TransitOutcome};

/// One direction of a link: queue, transmitter, impairments and propagation.
///
/// Call order: offer packets with [`handle_packet`](Self::handle_packet), with values of `now` that
/// never decrease. At [`next_deadline`](Self::next_deadline), take departing packets with
/// [`poll_output`](Self::poll_output) until it returns `None`, or read each one in place with
/// [`front`](Self::front) and remove it with [`drop_front`](Self::drop_front).
#[derive(Debug, Clone)]
pub struct LinkDirection<P> {
    pub(super) queue: DropTail,
    pub(super) transmitter: Transmitter,
    pub(super) delay: Duration,
    pub(super) loss: Loss,
    /// `None` for a plain direction, which then costs one branch.
    pub(super) impaired: Option<Box<ImpairedPath<P>>>,
    /// Accepted packets that have not departed, in order of `left`, without the packets stored in a
    /// CoDel or FQ-CoDel queue or in a scheduler, or waiting for the medium.
    pub(super) inside: RingBuffer<PacketTransit<P>>,
    /// The next departure or the next dequeue of a stored packet, whichever is earlier.
    pub(super) next: Instant,
    pub(super) copies: u64,
}

/// The times and the outcome of a packet in a plain direction.
struct TransitTimes {
    started: Instant,
    sent: Instant,
    left: Instant,
    outcome: TransitOutcome,
    /// Whether the packet is the next to depart.
    is_next: bool,
}

/// The result of an offer to a plain direction.
pub(super) enum Acceptance {
    QueueFull,
    /// The packet departs after others.
    BehindOthers,
    /// The packet departs next, at this time.
    Next(Instant),
}

impl<P: LinkPayload> LinkDirection<P> {
    /// An idle direction with a medium of its own.
    ///
    /// # Panics
    /// On a rate of zero, which no valid scenario has.
    #[must_use]
    pub fn new(direction: &scenario::Direction, random: LinkRandomStreams) -> Self {
        Self::with_access(direction, &MediumAccess::Own, random)
    }

    /// An idle direction with this access to its medium.
    pub(super) fn with_access(
        direction: &scenario::Direction,
        access: &MediumAccess,
        random: LinkRandomStreams,
    ) -> Self {
        Self {
            queue: DropTail::new(direction.queue),
            transmitter: Transmitter::new(direction.rate),
            delay: direction.delay,
            loss: Loss::new(direction.loss.as_ref(), random),
            impaired: ImpairedPath::new(direction, access, random),
            inside: RingBuffer::new(),
            next: Instant::NEVER,
            copies: 0,
        }
    }

    /// Size on the link of a packet of `bytes`, which differs with `compression` only.
    #[inline]
    #[must_use]
    pub fn link_bytes(&self, bytes: u32) -> u32 {
        self.impaired.as_ref().map_or(bytes, |impaired| impaired.link_bytes(bytes))
    }

    /// Offers a packet of `bytes`, headers included. [`PacketTransit::bytes`] is its size on the
    /// link.
    ///
    /// # Errors
    /// The reason for the drop: the queue is full, or active queue management drops the packet.
    #[inline]
    pub fn handle_packet(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: P,
    ) -> Result<(), DropReason> {
        self.handle_packet_with(now, bytes, || payload)
    }

    /// As [`handle_packet`](Self::handle_packet), with a payload that is constructed in place:
    /// moving the payload takes longer than most other steps of this function.
    ///
    /// # Errors
    /// As [`handle_packet`](Self::handle_packet).
    #[inline(always)]
    pub fn handle_packet_with(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: impl Fn() -> P,
    ) -> Result<(), DropReason> {
        if self.impaired.is_some() {
            return self.handle_impaired(now, bytes, payload());
        }
        let Some(times) = self.plan_transit(now, bytes) else {
            return Err(DropReason::QueueFull);
        };
        let TransitTimes { started, sent, left, outcome, .. } = times;
        // Written field by field: the compiler would build a complete `PacketTransit` first and
        // then copy it.
        let slot = self.inside.push_back_slot(|| PacketTransit {
            payload: payload(),
            bytes,
            offered: now,
            started,
            sent,
            left,
            outcome,
        });
        slot.payload = payload();
        (slot.bytes, slot.outcome) = (bytes, outcome);
        (slot.offered, slot.started) = (now, started);
        (slot.sent, slot.left) = (sent, left);
        Ok(())
    }

    /// Whether packets may be written into the buffer of the direction, because it is plain.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.impaired.is_none()
    }

    /// The buffer slot of the next packet of a plain direction, with its previous content. The
    /// caller writes the packet and offers it with [`accept_slot`](Self::accept_slot). `filler`
    /// initialises new memory.
    #[inline(always)]
    pub(super) fn next_slot(&mut self, filler: impl FnOnce() -> P) -> &mut P {
        let slot = self.inside.back_slot(|| PacketTransit {
            payload: filler(),
            bytes: 0,
            offered: Instant::ZERO,
            started: Instant::ZERO,
            sent: Instant::ZERO,
            left: Instant::ZERO,
            outcome: TransitOutcome::Arrived,
        });
        &mut slot.payload
    }

    /// As [`handle_packet`](Self::handle_packet), for the packet written to
    /// [`next_slot`](Self::next_slot).
    #[inline(always)]
    pub(super) fn accept_slot(&mut self, now: Instant, bytes: u32) -> Acceptance {
        let Some(times) = self.plan_transit(now, bytes) else { return Acceptance::QueueFull };
        let TransitTimes { started, sent, left, outcome, is_next } = times;
        if let Some(slot) = self.inside.accept_back_slot() {
            (slot.bytes, slot.outcome) = (bytes, outcome);
            (slot.offered, slot.started) = (now, started);
            (slot.sent, slot.left) = (sent, left);
        }
        if is_next { Acceptance::Next(left) } else { Acceptance::BehindOthers }
    }

    /// The transit of a packet through a plain direction; `None` if the queue is full.
    #[inline(always)]
    fn plan_transit(&mut self, now: Instant, bytes: u32) -> Option<TransitTimes> {
        let mut started = now;
        if self.transmitter.is_free(now) {
            self.queue.clear();
        } else {
            self.queue.advance(now);
            started = self.transmitter.free_at();
            if !self.queue.enqueue(started, bytes) {
                return None;
            }
        }
        let sent = started + self.transmitter.charge(started, bytes);
        self.transmitter.occupy_until(sent);
        let outcome = if self.loss.loses(sent) {
            TransitOutcome::Lost(DropReason::Loss)
        } else {
            TransitOutcome::Arrived
        };
        let left = sent + self.delay;
        let is_next = left < self.next;
        if is_next {
            self.next = left;
        }
        Some(TransitTimes { started, sent, left, outcome, is_next })
    }

    /// When [`poll_output`](Self::poll_output) is to be called next; [`Instant::NEVER`] while no
    /// packet is inside that can ever depart. The call then returns a packet, except with CoDel,
    /// FQ-CoDel and schedulers, where the end of a transmission is a deadline as well.
    #[inline]
    #[must_use]
    pub const fn next_deadline(&self) -> Instant {
        self.next
    }

    /// The next packet that departs at or before `now`, lost packets included, in order of
    /// departure; at equal times in the order in which the packets were offered.
    #[inline]
    pub fn poll_output(&mut self, now: Instant) -> Option<PacketTransit<P>> {
        let first = self.front(now).copied();
        if first.is_some() {
            self.drop_front();
        }
        first
    }

    /// The packet that [`poll_output`](Self::poll_output) would return, without removing it.
    #[inline]
    #[must_use]
    pub fn front(&mut self, now: Instant) -> Option<&PacketTransit<P>> {
        if self.next > now {
            return None;
        }
        if self.impaired.is_some() {
            return self.front_of_impaired(now);
        }
        self.inside.front()
    }

    /// Removes the packet that [`front`](Self::front) returns.
    #[inline]
    pub fn drop_front(&mut self) {
        if self.impaired.is_some() {
            self.drop_front_of_impaired();
            return;
        }
        self.inside.drop_front();
        let next = self.inside.front().map_or(Instant::NEVER, |first| first.left);
        assert!(next >= self.next, "packets leave in the order of their times");
        self.next = next;
    }

    /// Length of the queue in packets after the last offered packet was enqueued.
    #[inline]
    #[must_use]
    pub fn queued_at_last(&self) -> u32 {
        match &self.impaired {
            None => self.queue.packets(),
            Some(_) => self.queued_of_impaired(),
        }
    }

    /// Queue length in packets and in bytes at `now`, without the packet in transmission.
    #[inline]
    pub fn queue_length(&mut self, now: Instant) -> (u32, u64) {
        if self.impaired.is_none() {
            self.queue.advance(now);
            return (self.queue.packets(), self.queue.bytes());
        }
        self.dequeue_due(now);
        let (packets, bytes) = self.stored_length();
        (self.queue.packets() + packets, self.queue.bytes() + bytes)
    }

    /// Queue length in packets at `now`, without the packet in transmission.
    pub fn queue_packets(&mut self, now: Instant) -> u32 {
        self.queue_length(now).0
    }

    /// Whether more than half of the queue limit is in use at `now`; never with CoDel, FQ-CoDel,
    /// schedulers and contention.
    pub fn is_more_than_half_full(&mut self, now: Instant) -> bool {
        self.dequeue_due(now);
        self.queue.is_more_than_half_full()
    }

    /// Queue length in bytes at `now`, without the packet in transmission.
    pub fn queue_bytes(&mut self, now: Instant) -> u64 {
        self.queue_length(now).1
    }

    /// Number of packets that [`poll_output`](Self::poll_output) has yet to return: queued, in
    /// transmission or in propagation, lost packets and duplicates included.
    ///
    /// Invariant: accepted packets + [`copies`](Self::copies) = returned packets + inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.inside.len() + self.stored_length().0 as usize
    }

    /// Bytes transmitted by `now` of the packets that have not departed yet: all bytes of a packet
    /// in propagation, and a share proportional to time of the packet in transmission (an outage
    /// within that transmission is spread evenly over it).
    #[must_use]
    pub fn sent_inside(&self, now: Instant) -> u64 {
        self.inside.iter().map(|transit| transit.sent_by(now)).sum()
    }

    /// Sum of the waits in the queue by `now` of the packets that have not departed yet, in
    /// nanoseconds.
    pub(super) fn waited_inside(&self, now: Instant) -> u64 {
        let stored = self.impaired.as_ref().map_or(0, |impaired| impaired.stored_waits(now));
        stored + self.inside.iter().map(|transit| transit.waited_by(now)).sum::<u64>()
    }

    /// Number of packets that wait in the queue at `now`, found without a change of the direction.
    pub(super) fn waiting_at(&self, now: Instant) -> u32 {
        let inside = self.inside.iter().filter(|transit| transit.waits_at(now)).count();
        self.stored_length().0 + inside as u32
    }

    /// Duplicates made since the start.
    #[must_use]
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// The paired direction carries a packet (see `load_latency`).
    #[inline]
    pub fn note_paired_use(&mut self, now: Instant) {
        let free_at = self.transmitter.free_at();
        if let Some(impaired) = &mut self.impaired {
            impaired.note_paired_use(now, free_at);
            self.update_next();
        }
    }

    /// [`front`](Self::front) of a direction that is not plain.
    #[inline(never)]
    fn front_of_impaired(&mut self, now: Instant) -> Option<&PacketTransit<P>> {
        self.dequeue_due(now);
        if self.next > now {
            return None;
        }
        self.apply_failures();
        self.inside.front()
    }

    #[inline(never)]
    fn drop_front_of_impaired(&mut self) {
        self.count_in_class();
        self.inside.drop_front();
        self.update_next();
    }

    #[inline(never)]
    fn queued_of_impaired(&self) -> u32 {
        self.queue.packets() + self.stored_length().0
    }

    fn stored_length(&self) -> (u32, u64) {
        self.impaired.as_ref().map_or((0, 0), |impaired| impaired.stored_length())
    }

    pub(super) fn stored(&self) -> Option<&StoredPackets<P>> {
        self.impaired.as_ref().and_then(|impaired| impaired.stored())
    }
}
