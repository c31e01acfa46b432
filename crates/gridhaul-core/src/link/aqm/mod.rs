//! Queues that drop before they are full.
//!
//! RED and PIE decide when a packet arrives ([`Early`]): all else stays as under drop-tail. CoDel
//! and FQ-CoDel decide when one is taken out ([`StoredPackets`]), so they hold their packets.

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

/// How a queue decides what to drop.
#[derive(Debug, Clone)]
pub(super) enum Discipline<P> {
    /// Only what finds it full.
    DropTail,
    /// On arrival.
    Early(Early),
    /// On leaving the queue.
    StoredPackets(StoredPackets<P>),
}

/// Decides on arrival.
#[derive(Debug, Clone)]
pub(super) enum Early {
    Red(Red),
    Pie(Pie),
}

/// What a packet finds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Arrival {
    pub(super) now: Instant,
    /// Its own size.
    pub(super) bytes: u32,
    /// When the wire has sent all that came before it.
    pub(super) free_at: Instant,
    /// Whether it would have to wait.
    pub(super) waits: bool,
    /// What waits already.
    pub(super) queue_packets: u32,
    pub(super) queue_bytes: u64,
}

impl<P: super::LinkPayload> Discipline<P> {
    /// The discipline of a direction.
    pub(super) fn new(direction: &Direction, random: LinkRandomStreams) -> Self {
        match &direction.aqm {
            None => Self::DropTail,
            Some(Aqm::Red(red)) => {
                Self::Early(Early::Red(Red::new(red, direction.rate, random.stream("red"))))
            }
            Some(Aqm::Pie(pie)) => Self::Early(Early::Pie(Pie::new(pie, random.stream("pie")))),
            Some(Aqm::Codel(codel)) => {
                Self::StoredPackets(StoredPackets::codel(codel, direction.queue))
            }
            Some(Aqm::FqCodel(keys)) => {
                let mut random = random.stream("flow queues");
                Self::StoredPackets(StoredPackets::fq_codel(
                    keys,
                    direction.queue,
                    random.below(u64::MAX),
                ))
            }
        }
    }
}

impl Early {
    /// Whether the packet is dropped. Asked once for each packet that arrives, and draws once.
    pub(super) fn drops(&mut self, arrival: &Arrival) -> bool {
        match self {
            Self::Red(red) => red.drops(arrival),
            Self::Pie(pie) => pie.drops(arrival),
        }
    }

    /// The packet that it would have let in found no room.
    pub(super) const fn on_full(&mut self) {
        match self {
            Self::Red(red) => red.on_full(),
            Self::Pie(_) => {}
        }
    }
}

impl Arrival {
    /// How long the packet would wait.
    fn wait(&self) -> Duration {
        self.free_at.since(self.now)
    }
}
