//! Active queue management (RFC 7567).
//!
//! RED and PIE decide on arrival ([`EnqueueAqm`]) and otherwise use the drop-tail queue. CoDel and
//! FQ-CoDel decide on dequeue, and therefore store packets ([`StoredPackets`]). So does drop-tail
//! on a medium with contention, where the time of the dequeue is unknown.

mod codel;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod stored_packets;

use gridhaul_scenario::scenario::{Aqm, Direction};
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRandomStreams;
pub(super) use fifo::StoredPacket;
use pie::Pie;
use red::Red;
pub(super) use stored_packets::StoredPackets;

/// The queue discipline of a direction.
#[derive(Debug, Clone)]
pub(super) enum Discipline<P> {
    /// Drops only when the queue is full.
    DropTail,
    /// Drops on enqueue.
    Enqueue(EnqueueAqm),
    /// Drops on dequeue.
    Dequeue(StoredPackets<P>),
    /// Drops only when the queue is full; the medium dequeues.
    Contention(StoredPackets<P>),
}

/// Algorithms that drop on enqueue.
#[derive(Debug, Clone)]
pub(super) enum EnqueueAqm {
    Red(Red),
    Pie(Pie),
}

/// The state of the queue when a packet arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) now: Instant,
    /// Size of the arriving packet.
    pub(super) bytes: u32,
    /// End of the last transmission of the queued packets.
    pub(super) free_at: Instant,
    /// Whether the packet would be queued.
    pub(super) waits: bool,
    /// Queue length without the packet.
    pub(super) queue_packets: u32,
    pub(super) queue_bytes: u64,
}

/// Decision of an algorithm about an arriving packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    /// The packet is marked, or dropped if its sender does not support marks.
    Mark,
    Drop,
}

impl<P: super::LinkPayload> Discipline<P> {
    /// Drop-tail for a direction whose medium dequeues.
    pub(super) fn contention(direction: &Direction) -> Self {
        Self::Contention(StoredPackets::drop_tail(direction.queue))
    }

    /// The discipline of a direction whose transmitter dequeues.
    pub(super) fn new(direction: &Direction, random: LinkRandomStreams) -> Self {
        match &direction.aqm {
            // A packet of the receiver may end the wait of packets, so that it is not known.
            None if direction.drx.is_some() => {
                Self::Dequeue(StoredPackets::drop_tail(direction.queue))
            }
            None => Self::DropTail,
            Some(Aqm::Red(red)) => {
                Self::Enqueue(EnqueueAqm::Red(Red::new(red, direction.rate, random.stream("red"))))
            }
            Some(Aqm::Pie(pie)) => {
                Self::Enqueue(EnqueueAqm::Pie(Pie::new(pie, random.stream("pie"))))
            }
            Some(Aqm::Codel(codel)) => Self::Dequeue(StoredPackets::codel(codel, direction.queue)),
            Some(Aqm::FqCodel(keys)) => {
                let mut random = random.stream("flow queues");
                Self::Dequeue(StoredPackets::fq_codel(
                    keys,
                    direction.queue,
                    random.below(u64::MAX),
                ))
            }
        }
    }
}

impl EnqueueAqm {
    /// The decision about a packet. Called once for each arriving packet; uses one random number.
    pub(super) fn verdict(&mut self, arrival: &Arrival) -> Verdict {
        let (drops, marks) = match self {
            Self::Red(red) => (red.drops(arrival), red.marks()),
            Self::Pie(pie) => (pie.drops(arrival), pie.marks()),
        };
        match (drops, marks) {
            (false, _) => Verdict::Accept,
            (true, true) => Verdict::Mark,
            (true, false) => Verdict::Drop,
        }
    }

    /// The queue was full for a packet that the algorithm did not drop.
    pub(super) const fn on_full(&mut self) {
        match self {
            Self::Red(red) => red.on_full(),
            Self::Pie(_) => {}
        }
    }
}

impl Arrival {
    /// Queueing delay of the packet if it is accepted.
    fn wait(&self) -> Duration {
        self.free_at.since(self.now)
    }
}
