//! Packets in a queue that decides when one is taken out.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Instant, QueueLimit};

use super::codel::Codel;
use super::fifo::{Fifo, StoredPacket};
use super::fq_codel::FqCodel;
use crate::link::queue::Limit;
use crate::link::{DropReason, LinkPayload};

/// Packets that wait, and when the next one is taken.
#[derive(Debug, Clone)]
pub(in crate::link) struct StoredPackets<P> {
    order: Order<P>,
    limit: Limit,
    /// When the wire takes the next packet; [`Instant::NEVER`] while none waits.
    wake: Instant,
    /// What the queue has dropped and nobody has been told of.
    dropped: Vec<StoredPacket<P>>,
}

#[derive(Debug, Clone)]
enum Order<P> {
    Codel(Codel, Fifo<P>),
    FqCodel(Box<FqCodel<P>>),
}

impl<P: LinkPayload> StoredPackets<P> {
    /// One queue with CoDel.
    pub(super) fn codel(keys: &scenario::Codel, limit: QueueLimit) -> Self {
        Self::new(Order::Codel(Codel::new(keys.target, keys.interval), Fifo::new()), limit)
    }

    /// A queue for each flow, with CoDel.
    pub(super) fn fq_codel(keys: &scenario::FqCodel, limit: QueueLimit, perturbation: u64) -> Self {
        Self::new(Order::FqCodel(Box::new(FqCodel::new(*keys, perturbation))), limit)
    }

    fn new(order: Order<P>, limit: QueueLimit) -> Self {
        let limit = Limit::new(limit);
        Self { order, limit, wake: Instant::NEVER, dropped: Vec::new() }
    }

    pub(in crate::link) const fn packets(&self) -> u32 {
        match &self.order {
            Order::Codel(_, fifo) => fifo.packets(),
            Order::FqCodel(queues) => queues.packets(),
        }
    }

    pub(in crate::link) const fn bytes(&self) -> u64 {
        match &self.order {
            Order::Codel(_, fifo) => fifo.bytes(),
            Order::FqCodel(queues) => queues.bytes(),
        }
    }

    /// When the wire takes the next packet.
    pub(in crate::link) const fn wake(&self) -> Instant {
        self.wake
    }

    /// The wire takes the next packet, if one waits, at this time.
    pub(in crate::link) const fn wake_at(&mut self, at: Instant) {
        self.wake = if self.packets() == 0 { Instant::NEVER } else { at };
    }

    /// Lets a packet in. One that need not wait has room in any queue.
    ///
    /// CoDel refuses what finds no room; FQ-CoDel takes it, and drops from its longest queue.
    ///
    /// # Errors
    /// The queue is full.
    pub(in crate::link) fn push(
        &mut self,
        packet: StoredPacket<P>,
        waits: bool,
    ) -> Result<(), DropReason> {
        match &mut self.order {
            Order::Codel(_, fifo) => {
                let bytes = fifo.bytes() + u64::from(packet.bytes);
                if waits && !self.limit.holds(fifo.packets() as usize + 1, bytes) {
                    return Err(DropReason::QueueFull);
                }
                fifo.push(packet);
            }
            Order::FqCodel(queues) => {
                queues.push(packet);
                while waits && !self.limit.holds(queues.packets() as usize, queues.bytes()) {
                    self.dropped.extend(queues.shed());
                }
                if queues.packets() == 0 {
                    // One too long for the whole queue takes all that waited with it.
                    self.wake = Instant::NEVER;
                }
            }
        }
        Ok(())
    }

    /// The packet that the wire takes at `now`.
    pub(in crate::link) fn take(&mut self, now: Instant) -> Option<StoredPacket<P>> {
        match &mut self.order {
            Order::Codel(codel, fifo) => codel.take(now, fifo, &mut self.dropped),
            Order::FqCodel(queues) => queues.take(now, &mut self.dropped),
        }
    }

    /// A packet that [`push`](Self::push) or [`take`](Self::take) has dropped.
    pub(in crate::link) fn pop_dropped(&mut self) -> Option<StoredPacket<P>> {
        if self.dropped.is_empty() { None } else { Some(self.dropped.remove(0)) }
    }
}
