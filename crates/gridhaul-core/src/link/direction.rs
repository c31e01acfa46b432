//! One direction of a link as a state machine.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::aqm::StoredPackets;
use super::impaired_path::ImpairedPath;
use super::loss::Loss;
use super::queue::DropTail;
use super::ring_buffer::RingBuffer;
use super::transmitter::Transmitter;
use super::{DropReason, LinkPayload, LinkRandomStreams, PacketTransit, TransitOutcome};

/// One direction of a link: a queue, then a wire, then the way to the other end.
///
/// Call order: hand packets in with [`handle_packet`](Self::handle_packet), never with a `now`
/// before an earlier one; at [`next_deadline`](Self::next_deadline) take what leaves with
/// [`poll_output`](Self::poll_output) until it returns `None`, or look at it where it is with
/// [`front`](Self::front) and then let go of it with [`drop_front`](Self::drop_front).
#[derive(Debug, Clone)]
pub struct LinkDirection<P> {
    pub(super) queue: DropTail,
    pub(super) transmitter: Transmitter,
    pub(super) delay: Duration,
    pub(super) loss: Loss,
    /// `None` for a plain link, which pays a branch for it.
    pub(super) impaired: Option<Box<ImpairedPath<P>>>,
    /// Everything that was accepted and has not left, in order of `left`; but for what waits in a
    /// queue that holds its packets.
    pub(super) inside: RingBuffer<PacketTransit<P>>,
    /// When the first of them leaves, or such a queue lets a packet go, whichever comes first.
    pub(super) next: Instant,
    pub(super) copies: u64,
}

/// The times of a packet in a plain direction.
struct TransitTimes {
    started: Instant,
    sent: Instant,
    left: Instant,
    outcome: TransitOutcome,
}

impl<P: LinkPayload> LinkDirection<P> {
    /// An idle direction.
    ///
    /// # Panics
    /// On a rate of zero, which no valid scenario has.
    #[must_use]
    pub fn new(direction: &scenario::Direction, random: LinkRandomStreams) -> Self {
        Self {
            queue: DropTail::new(direction.queue),
            transmitter: Transmitter::new(direction.rate),
            delay: direction.delay,
            loss: Loss::new(direction.loss.as_ref(), random),
            impaired: ImpairedPath::new(direction, random),
            inside: RingBuffer::new(),
            next: Instant::NEVER,
            copies: 0,
        }
    }

    /// Hands in a packet of `bytes`, headers included.
    ///
    /// # Errors
    /// Says why the packet did not get in: the queue has no room for it, or drops it early.
    #[inline]
    pub fn handle_packet(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: P,
    ) -> Result<(), DropReason> {
        self.handle_packet_with(now, bytes, || payload)
    }

    /// [`handle_packet`](Self::handle_packet) with a payload that is made in its place: to move it
    /// there takes longer than most of what is done here.
    ///
    /// # Errors
    /// The same.
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
        let Some(TransitTimes { started, sent, left, outcome }) = self.plan_transit(now, bytes)
        else {
            return Err(DropReason::QueueFull);
        };
        // Written field by field into its place: a whole transit would be made first, then moved.
        let place = self.inside.push_back_slot(|| PacketTransit {
            payload: payload(),
            bytes,
            offered: now,
            started,
            sent,
            left,
            outcome,
        });
        place.payload = payload();
        (place.bytes, place.outcome) = (bytes, outcome);
        (place.offered, place.started) = (now, started);
        (place.sent, place.left) = (sent, left);
        Ok(())
    }

    /// Whether nothing impairs it: [`next_slot`](Self::next_slot) is for such a direction.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.impaired.is_none()
    }

    /// The place of the next packet of a plain direction, with what was there before: the caller writes the
    /// packet and hands it in by [`accept_slot`](Self::accept_slot). `filler` is for new memory.
    #[inline]
    pub fn next_slot(&mut self, filler: impl FnOnce() -> P) -> &mut P {
        let place = self.inside.back_slot(|| PacketTransit {
            payload: filler(),
            bytes: 0,
            offered: Instant::ZERO,
            started: Instant::ZERO,
            sent: Instant::ZERO,
            left: Instant::ZERO,
            outcome: TransitOutcome::Arrived,
        });
        &mut place.payload
    }

    /// As [`handle_packet`](Self::handle_packet), for the packet written in
    /// [`next_slot`](Self::next_slot). False where the queue is full.
    #[inline(always)]
    pub fn accept_slot(&mut self, now: Instant, bytes: u32) -> bool {
        let Some(TransitTimes { started, sent, left, outcome }) = self.plan_transit(now, bytes)
        else {
            return false;
        };
        if let Some(place) = self.inside.accept_back_slot() {
            (place.bytes, place.outcome) = (bytes, outcome);
            (place.offered, place.started) = (now, started);
            (place.sent, place.left) = (sent, left);
        }
        true
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
            if !self.queue.wait(started, bytes) {
                return None;
            }
        }
        let sent = started + self.transmitter.charge(started, bytes);
        self.transmitter.occupy_until(sent);
        let outcome = if self.loss.loses() {
            TransitOutcome::Lost(DropReason::Loss)
        } else {
            TransitOutcome::Arrived
        };
        let left = sent + self.delay;
        self.next = self.next.min(left);
        Some(TransitTimes { started, sent, left, outcome })
    }

    /// When [`poll_output`](Self::poll_output) is next to be called; [`Instant::NEVER`] while
    /// nothing is inside, or nothing that could ever leave. It then returns something, unless the
    /// queue holds its packets (CoDel, FQ-CoDel): the end of a transmission is a deadline too.
    #[inline]
    #[must_use]
    pub const fn next_deadline(&self) -> Instant {
        self.next
    }

    /// What leaves at or before `now`, lost packets included, one by one in order of time; at
    /// equal times in the order in which it was handed in.
    #[inline]
    pub fn poll_output(&mut self, now: Instant) -> Option<PacketTransit<P>> {
        let first = self.front(now).copied();
        if first.is_some() {
            self.drop_front();
        }
        first
    }

    /// What [`poll_output`](Self::poll_output) would return, left where it is.
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

    /// Lets go of what [`front`](Self::front) shows.
    #[inline]
    pub fn drop_front(&mut self) {
        self.inside.drop_front();
        if self.impaired.is_some() {
            self.find_next();
            return;
        }
        self.next = self.inside.front().map_or(Instant::NEVER, |first| first.left);
    }

    /// Packets that waited for the wire when one was last handed in, that one included.
    #[inline]
    #[must_use]
    pub fn queued_at_last(&self) -> u32 {
        match &self.impaired {
            None => self.queue.packets(),
            Some(_) => self.queued_of_impaired(),
        }
    }

    /// Packets that wait for the wire at `now`; the one on the wire does not count.
    pub fn queue_packets(&mut self, now: Instant) -> u32 {
        self.settle(now);
        self.queued_of_impaired()
    }

    /// Bytes that wait for the wire at `now`; the packet on the wire does not count.
    pub fn queue_bytes(&mut self, now: Instant) -> u64 {
        self.settle(now);
        self.stored().map_or(self.queue.bytes(), StoredPackets::bytes)
    }

    /// Passages that [`poll_output`](Self::poll_output) has yet to return: what waits, is on the
    /// wire or on the way, lost and dropped packets and second copies included.
    ///
    /// At every instant, accepted packets + [`copies`](Self::copies) = returned transits + inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.inside.len() + self.stored().map_or(0, |stored| stored.packets() as usize)
    }

    /// Bytes that the transmitter has sent by `now` of the packets that have not left yet: all bytes
    /// of a packet in propagation, and the share of time of the packet in transmission (an outage
    /// within that packet is spread evenly over it).
    #[must_use]
    pub fn sent_inside(&self, now: Instant) -> u64 {
        self.inside.iter().map(|transit| transit.sent_by(now)).sum()
    }

    /// Second copies that duplication has made since the beginning.
    #[must_use]
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// The direction that this one is paired with carries a packet (see `load_latency`).
    #[inline]
    pub fn note_paired_use(&mut self, now: Instant) {
        if let Some(impaired) = &mut self.impaired {
            impaired.note_paired_use(now);
        }
    }

    /// [`front`](Self::front) of a direction that is not plain.
    #[inline(never)]
    fn front_of_impaired(&mut self, now: Instant) -> Option<&PacketTransit<P>> {
        self.settle(now);
        if self.next > now { None } else { self.inside.front() }
    }

    #[inline(never)]
    fn queued_of_impaired(&self) -> u32 {
        self.stored().map_or(self.queue.packets(), StoredPackets::packets)
    }

    fn stored(&self) -> Option<&StoredPackets<P>> {
        self.impaired.as_ref().and_then(|impaired| impaired.stored())
    }
}
