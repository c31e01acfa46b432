//! The path of a packet through a direction that is not plain: impaired, or with a managed queue.

use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use super::aqm::{Arrival, Discipline, Held, Kept};
use super::impairments::{Impairments, Sent};
use super::{DropReason, Fate, LinkDirection, LinkRandomStreams, Passage, Payload};

/// Everything that a plain direction does without.
#[derive(Debug, Clone)]
pub(super) struct Apart<P> {
    impairments: Impairments,
    discipline: Discipline<P>,
}

impl<P: Payload> Apart<P> {
    /// What sets a direction apart; `None` for a plain one.
    pub(super) fn new(direction: &Direction, chance: LinkRandomStreams) -> Option<Box<Self>> {
        let plain = Impairments::is_none(direction) && direction.aqm.is_none();
        (!plain).then(|| {
            Box::new(Self {
                impairments: Impairments::new(direction, chance),
                discipline: Discipline::new(direction, chance),
            })
        })
    }

    pub(super) fn note_paired_use(&mut self, now: Instant) {
        self.impairments.note_paired_use(now);
    }

    /// The queue, if it holds its packets.
    pub(super) const fn kept(&self) -> Option<&Kept<P>> {
        match &self.discipline {
            Discipline::Kept(kept) => Some(kept),
            Discipline::DropTail | Discipline::Early(_) => None,
        }
    }

    fn kept_mut(&mut self) -> Option<&mut Kept<P>> {
        match &mut self.discipline {
            Discipline::Kept(kept) => Some(kept),
            Discipline::DropTail | Discipline::Early(_) => None,
        }
    }
}

impl<P: Payload> LinkDirection<P> {
    /// The same as [`handle_packet`](Self::handle_packet) with all that a plain link does not do.
    #[inline(never)]
    pub(super) fn handle_apart(
        &mut self,
        now: Instant,
        bytes: u32,
        payload: P,
    ) -> Result<(), DropReason> {
        let held = Held { payload, bytes, offered: now };
        self.settle(now);
        let Some(apart) = &mut self.apart else { return Ok(()) };
        let started = apart.impairments.outages.release(self.wire.free_at().max(now));
        let waits = started > now;
        match &mut apart.discipline {
            Discipline::Kept(kept) => {
                let waits = waits || kept.packets() > 0;
                if kept.packets() == 0 {
                    kept.push(held, waits)?;
                    kept.wake_at(started);
                } else {
                    kept.push(held, waits)?;
                }
                self.lose_dropped(now, DropReason::QueueFull);
                self.settle(now);
                return Ok(());
            }
            Discipline::Early(early) => {
                let arrival = Arrival {
                    now,
                    bytes,
                    free_at: self.wire.free_at(),
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
        self.transmit(started, held, now);
        Ok(())
    }

    /// Lets the wire take all packets whose turn comes by `now`, and forgets in drop-tail those
    /// that it has taken.
    pub(super) fn settle(&mut self, now: Instant) {
        self.queue.advance(now);
        while let Some(kept) = self.apart.as_mut().and_then(|apart| apart.kept_mut())
            && kept.packets() > 0
            && kept.wake() <= now
        {
            let started = kept.wake();
            let taken = kept.take(started);
            self.lose_dropped(started, DropReason::Aqm);
            if let Some(held) = taken {
                // Load-dependent latency looks at a packet when it leaves the queue: these times
                // are in order, those of arrival need not be.
                self.transmit(started, held, started);
            }
            let free_at = self.wire.free_at();
            if let Some(apart) = &mut self.apart {
                let next = apart.impairments.outages.release(free_at);
                if let Some(kept) = apart.kept_mut() {
                    kept.wake_at(next);
                }
            }
        }
        self.find_next();
    }

    /// When something leaves, or a packet is taken from the queue that holds its packets.
    pub(super) fn find_next(&mut self) {
        let wake = self.apart.as_ref().and_then(|apart| apart.kept()).map(Kept::wake);
        let left = self.inside.front().map(|first| first.left);
        self.next = left.into_iter().chain(wake).min().unwrap_or(Instant::NEVER);
    }

    /// What a queue that holds its packets has dropped at `now` leaves as lost.
    fn lose_dropped(&mut self, now: Instant, reason: DropReason) {
        while let Some(held) =
            self.apart.as_mut().and_then(|apart| apart.kept_mut()).and_then(Kept::pop_dropped)
        {
            let Held { payload, bytes, offered } = held;
            let fate = Fate::Lost(reason);
            let passage =
                Passage { payload, bytes, offered, started: now, sent: now, left: now, fate };
            self.insert(passage);
        }
    }

    /// The wire takes a packet at `started`. Load-dependent latency counts it at `counted`.
    fn transmit(&mut self, started: Instant, held: Held<P>, counted: Instant) {
        let Some(apart) = &mut self.apart else { return };
        let Held { payload, bytes, offered } = held;
        let busy = self.wire.charge(started, bytes);
        let sent = apart.impairments.outages.end_of_transmission(started, busy);
        self.wire.occupy_until(sent);
        let lost = self.loss.loses();
        let verdict =
            apart.impairments.judge(Sent { bytes, counted, started, sent, lost }, self.delay);
        let (left, fate) = (verdict.left, verdict.fate);
        let passage = Passage { payload, bytes, offered, started, sent, left, fate };
        self.insert(passage);
        if let Some(fate) = fate.of_copy().filter(|_| verdict.duplicated) {
            self.copies += 1;
            self.insert(Passage { fate, ..passage });
        }
    }

    /// Keeps `inside` in order of `left`, looking from the back: only reordering, and drops from a
    /// queue that holds its packets, ever move anything, and only past what leaves later.
    fn insert(&mut self, passage: Passage<P>) {
        self.next = self.next.min(passage.left);
        self.inside.insert(passage, |other| other.left > passage.left);
    }
}
