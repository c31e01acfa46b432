//! One direction of a link as a state machine.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::apart::Apart;
use super::aqm::Kept;
use super::loss::Loss;
use super::queue::DropTail;
use super::ring::Ring;
use super::wire::Wire;
use super::{DropReason, Fate, LinkRandomStreams, Passage, Payload};

/// One direction of a link: a queue, then a wire, then the way to the other end.
///
/// Call order: hand packets in with [`handle_packet`](Self::handle_packet), never with a `now`
/// before an earlier one; at [`next_deadline`](Self::next_deadline) take what leaves with
/// [`poll_output`](Self::poll_output) until it returns `None`, or look at it where it is with
/// [`front`](Self::front) and then let go of it with [`drop_front`](Self::drop_front).
#[derive(Debug, Clone)]
pub struct LinkDirection<P> {
    pub(super) queue: DropTail,
    pub(super) wire: Wire,
    pub(super) delay: Duration,
    pub(super) loss: Loss,
    /// `None` for a plain link, which pays a branch for it.
    pub(super) apart: Option<Box<Apart<P>>>,
    /// Everything that was accepted and has not left, in order of `left`; but for what waits in a
    /// queue that holds its packets.
    pub(super) inside: Ring<Passage<P>>,
    /// When the first of them leaves, or such a queue lets a packet go, whichever comes first.
    pub(super) next: Instant,
    pub(super) copies: u64,
}

/// The times of a packet in a plain direction.
struct Transit {
    started: Instant,
    sent: Instant,
    left: Instant,
    fate: Fate,
}

impl<P: Payload> LinkDirection<P> {
    /// An idle direction.
    ///
    /// # Panics
    /// On a rate of zero, which no valid scenario has.
    #[must_use]
    pub fn new(direction: &scenario::Direction, chance: LinkRandomStreams) -> Self {
        Self {
            queue: DropTail::new(direction.queue),
            wire: Wire::new(direction.rate),
            delay: direction.delay,
            loss: Loss::new(direction.loss.as_ref(), chance),
            apart: Apart::new(direction, chance),
            inside: Ring::new(),
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
        if self.apart.is_some() {
            return self.handle_apart(now, bytes, payload());
        }
        let Some(Transit { started, sent, left, fate }) = self.plan_transit(now, bytes) else {
            return Err(DropReason::QueueFull);
        };
        // Written field by field into its place: a whole passage would be made first, then moved.
        let place = self.inside.claim_back(|| Passage {
            payload: payload(),
            bytes,
            offered: now,
            started,
            sent,
            left,
            fate,
        });
        place.payload = payload();
        (place.bytes, place.fate) = (bytes, fate);
        (place.offered, place.started) = (now, started);
        (place.sent, place.left) = (sent, left);
        Ok(())
    }

    /// Whether nothing impairs it: [`place_packet`](Self::place_packet) is for such a direction.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.apart.is_none()
    }

    /// The place of the next packet of a plain direction, with what was there before: the caller writes the
    /// packet and hands it in by [`accept_placed`](Self::accept_placed). `filler` is for new memory.
    #[inline]
    pub fn place_packet(&mut self, filler: impl FnOnce() -> P) -> &mut P {
        let place = self.inside.place_back(|| Passage {
            payload: filler(),
            bytes: 0,
            offered: Instant::ZERO,
            started: Instant::ZERO,
            sent: Instant::ZERO,
            left: Instant::ZERO,
            fate: Fate::Arrived,
        });
        &mut place.payload
    }

    /// As [`handle_packet`](Self::handle_packet), for the packet written in
    /// [`place_packet`](Self::place_packet). False where the queue is full.
    #[inline(always)]
    pub fn accept_placed(&mut self, now: Instant, bytes: u32) -> bool {
        let Some(Transit { started, sent, left, fate }) = self.plan_transit(now, bytes) else {
            return false;
        };
        if let Some(place) = self.inside.keep_back() {
            (place.bytes, place.fate) = (bytes, fate);
            (place.offered, place.started) = (now, started);
            (place.sent, place.left) = (sent, left);
        }
        true
    }

    /// The transit of a packet through a plain direction; `None` if the queue is full.
    #[inline(always)]
    fn plan_transit(&mut self, now: Instant, bytes: u32) -> Option<Transit> {
        let mut started = now;
        if self.wire.is_free(now) {
            self.queue.clear();
        } else {
            self.queue.advance(now);
            started = self.wire.free_at();
            if !self.queue.wait(started, bytes) {
                return None;
            }
        }
        let sent = started + self.wire.charge(started, bytes);
        self.wire.occupy_until(sent);
        let fate = if self.loss.loses() { Fate::Lost(DropReason::Loss) } else { Fate::Arrived };
        let left = sent + self.delay;
        self.next = self.next.min(left);
        Some(Transit { started, sent, left, fate })
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
    pub fn poll_output(&mut self, now: Instant) -> Option<Passage<P>> {
        let first = self.front(now).copied();
        if first.is_some() {
            self.drop_front();
        }
        first
    }

    /// What [`poll_output`](Self::poll_output) would return, left where it is.
    #[inline]
    #[must_use]
    pub fn front(&mut self, now: Instant) -> Option<&Passage<P>> {
        if self.next > now {
            return None;
        }
        if self.apart.is_some() {
            return self.front_apart(now);
        }
        self.inside.front()
    }

    /// Lets go of what [`front`](Self::front) shows.
    #[inline]
    pub fn drop_front(&mut self) {
        self.inside.drop_front();
        if self.apart.is_some() {
            self.find_next();
            return;
        }
        self.next = self.inside.front().map_or(Instant::NEVER, |first| first.left);
    }

    /// Packets that waited for the wire when one was last handed in, that one included.
    #[inline]
    #[must_use]
    pub fn queued_at_last(&self) -> u32 {
        match &self.apart {
            None => self.queue.packets(),
            Some(_) => self.queued_apart(),
        }
    }

    /// Packets that wait for the wire at `now`; the one on the wire does not count.
    pub fn queue_packets(&mut self, now: Instant) -> u32 {
        self.settle(now);
        self.queued_apart()
    }

    /// Bytes that wait for the wire at `now`; the packet on the wire does not count.
    pub fn queue_bytes(&mut self, now: Instant) -> u64 {
        self.settle(now);
        self.kept().map_or(self.queue.bytes(), Kept::bytes)
    }

    /// Passages that [`poll_output`](Self::poll_output) has yet to return: what waits, is on the
    /// wire or on the way, lost and dropped packets and second copies included.
    ///
    /// At every instant, accepted packets + [`copies`](Self::copies) = returned passages + inside.
    #[must_use]
    pub fn inside(&self) -> usize {
        self.inside.len() + self.kept().map_or(0, |kept| kept.packets() as usize)
    }

    /// Bytes that the transmitter has sent by `now` of the packets that have not left yet: all bytes
    /// of a packet in propagation, and the share of time of the packet in transmission (an outage
    /// within that packet is spread evenly over it).
    #[must_use]
    pub fn sent_inside(&self, now: Instant) -> u64 {
        self.inside.iter().map(|passage| passage.sent_by(now)).sum()
    }

    /// Second copies that duplication has made since the beginning.
    #[must_use]
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// The direction that this one is paired with carries a packet (see `load_latency`).
    #[inline]
    pub fn note_paired_use(&mut self, now: Instant) {
        if let Some(apart) = &mut self.apart {
            apart.note_paired_use(now);
        }
    }

    /// [`front`](Self::front) of a direction that is not plain.
    #[inline(never)]
    fn front_apart(&mut self, now: Instant) -> Option<&Passage<P>> {
        self.settle(now);
        if self.next > now { None } else { self.inside.front() }
    }

    #[inline(never)]
    fn queued_apart(&self) -> u32 {
        self.kept().map_or(self.queue.packets(), Kept::packets)
    }

    fn kept(&self) -> Option<&Kept<P>> {
        self.apart.as_ref().and_then(|apart| apart.kept())
    }
}
