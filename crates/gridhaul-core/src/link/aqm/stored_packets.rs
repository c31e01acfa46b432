//! Packets stored in a queue that decides about drops on dequeue.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Instant, QueueLimit};

use super::codel::Codel;
use super::fifo::{Fifo, StoredPacket};
use super::fq_codel::FqCodel;
use crate::link::queue::QueueCapacity;
use crate::link::{DropReason, LinkPayload};

/// The stored packets, and the time of the next dequeue.
#[derive(Debug, Clone)]
pub(in crate::link) struct StoredPackets<P> {
    discipline: DequeueAqm<P>,
    capacity: QueueCapacity,
    /// When the transmitter takes the next packet; [`Instant::NEVER`] while the queue is empty.
    next_dequeue: Instant,
    /// Dropped packets that have not been reported yet.
    dropped: Vec<StoredPacket<P>>,
}

#[derive(Debug, Clone)]
enum DequeueAqm<P> {
    DropTail(Fifo<P>),
    Codel(Codel, Fifo<P>),
    FqCodel(Box<FqCodel<P>>),
}

impl<P: LinkPayload> StoredPackets<P> {
    /// A single queue without active management.
    pub(in crate::link) fn drop_tail(limit: QueueLimit) -> Self {
        Self::new(DequeueAqm::DropTail(Fifo::new()), limit)
    }

    /// A single queue with CoDel.
    pub(in crate::link) fn codel(keys: &scenario::Codel, limit: QueueLimit) -> Self {
        Self::new(
            DequeueAqm::Codel(Codel::new(keys.target, keys.interval, keys.ecn), Fifo::new()),
            limit,
        )
    }

    /// A queue with CoDel for each flow.
    pub(in crate::link) fn fq_codel(
        keys: &scenario::FqCodel,
        limit: QueueLimit,
        perturbation: u64,
    ) -> Self {
        Self::new(DequeueAqm::FqCodel(Box::new(FqCodel::new(*keys, perturbation))), limit)
    }

    fn new(discipline: DequeueAqm<P>, limit: QueueLimit) -> Self {
        let capacity = QueueCapacity::new(limit);
        Self { discipline, capacity, next_dequeue: Instant::NEVER, dropped: Vec::new() }
    }

    pub(in crate::link) const fn packets(&self) -> u32 {
        match &self.discipline {
            DequeueAqm::DropTail(fifo) | DequeueAqm::Codel(_, fifo) => fifo.packets(),
            DequeueAqm::FqCodel(queues) => queues.packets(),
        }
    }

    pub(in crate::link) const fn bytes(&self) -> u64 {
        match &self.discipline {
            DequeueAqm::DropTail(fifo) | DequeueAqm::Codel(_, fifo) => fifo.bytes(),
            DequeueAqm::FqCodel(queues) => queues.bytes(),
        }
    }

    /// Sum of the waits of all packets by `now`, in nanoseconds.
    pub(in crate::link) fn waited_by(&self, now: Instant) -> u64 {
        match &self.discipline {
            DequeueAqm::DropTail(fifo) | DequeueAqm::Codel(_, fifo) => fifo.waited_by(now),
            DequeueAqm::FqCodel(queues) => queues.waited_by(now),
        }
    }

    /// The time of the next dequeue.
    pub(in crate::link) const fn next_dequeue(&self) -> Instant {
        self.next_dequeue
    }

    /// Schedules the next dequeue, if a packet is stored.
    pub(in crate::link) const fn schedule_dequeue(&mut self, at: Instant) {
        self.next_dequeue = if self.packets() == 0 { Instant::NEVER } else { at };
    }

    /// Enqueues a packet. The limit does not apply to a packet that need not wait.
    ///
    /// When the queue is full, drop-tail and CoDel drop the new packet; FQ-CoDel accepts it and
    /// drops from its longest queue.
    ///
    /// # Errors
    /// The queue is full.
    pub(in crate::link) fn push(
        &mut self,
        packet: StoredPacket<P>,
        waits: bool,
    ) -> Result<(), DropReason> {
        match &mut self.discipline {
            DequeueAqm::DropTail(fifo) | DequeueAqm::Codel(_, fifo) => {
                let bytes = fifo.bytes() + u64::from(packet.bytes);
                if waits && !self.capacity.admits(fifo.packets() as usize + 1, bytes) {
                    return Err(DropReason::QueueFull);
                }
                fifo.push(packet);
            }
            DequeueAqm::FqCodel(queues) => {
                queues.push(packet);
                while waits && !self.capacity.admits(queues.packets() as usize, queues.bytes()) {
                    self.dropped.extend(queues.drop_from_longest());
                }
                if queues.packets() == 0 {
                    // A packet larger than the limit of the queue evicts all packets, itself
                    // included.
                    self.next_dequeue = Instant::NEVER;
                }
            }
        }
        Ok(())
    }

    /// The packet to transmit at `now`.
    pub(in crate::link) fn take(&mut self, now: Instant) -> Option<StoredPacket<P>> {
        match &mut self.discipline {
            DequeueAqm::DropTail(fifo) => fifo.pop(),
            DequeueAqm::Codel(codel, fifo) => codel.take(now, fifo, &mut self.dropped),
            DequeueAqm::FqCodel(queues) => queues.take(now, &mut self.dropped),
        }
    }

    /// Size of the first packet of a drop-tail queue.
    pub(in crate::link) fn first_bytes(&self) -> Option<u32> {
        match &self.discipline {
            DequeueAqm::DropTail(fifo) => fifo.first_bytes(),
            DequeueAqm::Codel(..) | DequeueAqm::FqCodel(_) => None,
        }
    }

    /// A packet that [`push`](Self::push) or [`take`](Self::take) has dropped.
    pub(in crate::link) fn pop_dropped(&mut self) -> Option<StoredPacket<P>> {
        if self.dropped.is_empty() { None } else { Some(self.dropped.remove(0)) }
    }
}
