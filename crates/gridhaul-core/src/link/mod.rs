//! Links: queueing, transmission, impairments and propagation of packets between two nodes.
//!
//! A [`LinkDirection`] is one direction of a link. A packet passes these stages in order:
//!
//! 0. **Compression** determines the size of the packet on the link (`compression` of the
//!    scenario).
//! 1. **Shaper** of the sending node, which passes packets to the queue at its rate (`shaper`).
//! 2. **Queue**: drop-tail with a limit in packets or bytes (`queue`), active queue management
//!    (`aqm`), or a queue for each class of packets (`scheduler`).
//!    With `ecn`, queue management marks packets that permit it instead of dropping them (`ecn`).
//! 3. **Transmission** at the rate of the link (`transmitter`), which may change at stated times
//!    (`rate_changes`), or at the delivery opportunities of a trace (`opportunities`). An outage of
//!    mode `hold` stops the transmitter, also in the middle of a packet (`outage`).
//! 4. **Loss**: outages of mode `drop`, then attenuation (`shadowing`), noise bursts (`noise`), and
//!    Bernoulli, Gilbert–Elliott or listed losses (`loss`), and those of a trace
//!    (`variable_quality`). The first that applies is the cause.
//! 5. **Corruption**, then **duplication**: the duplicate of a corrupted packet is corrupted too.
//! 6. **Attacks** (`attack`): packets that would arrive are dropped, delayed or altered.
//! 7. **Propagation**: delay, jitter and load-dependent latency, which keep the order of packets,
//!    then the extra delay of reordered packets, which does not (`jitter`, `load_latency`,
//!    `reorder`).
//!
//! With drop-tail, RED and PIE the complete transit is computed on arrival: the time at which the
//! transmitter will be free is known, so that the start of a transmission is not an event. CoDel
//! and FQ-CoDel decide on dequeue: they store packets (`aqm::StoredPackets`) until the transmitter
//! is free, the end of each transmission is a deadline as well, and dropped packets leave as
//! `TransitOutcome::Lost`. The same applies to schedulers.
//!
//! With discontinuous reception (`drx`), a packet that finds the direction idle waits for its
//! receiver; packets are stored as with CoDel, because a packet of the device ends the wait.
//!
//! Directions may share a medium (`medium`): in time slots, or by contention. With contention,
//! packets wait in the direction until the medium transmits them.
//!
//! A plain direction (drop-tail and loss only) is served by `direction`, every other one by
//! `impaired_path`.
//!
//! A [`LinkSet`] holds the directions of a network with their counters and observers;
//! [`TimedLinks`] adds the deadlines.

mod account;
mod aqm;
mod attack;
mod change;
mod direction;
mod drx;
mod ecn;
mod gilbert_elliott;
mod impaired_path;
mod impairments;
mod jitter;
mod load_latency;
mod loss;
mod loss_cause;
mod medium;
mod member_keys;
mod noise;
mod opportunities;
mod outage;
mod path_counters;
mod queue;
mod radio;
mod rate_changes;
mod reorder;
mod ring_buffer;
mod route_change;
mod scheduler;
mod serializer;
mod set;
mod shadowing;
mod shaper;
mod timed;
mod trace;
mod transit;
mod transmitter;
mod variable_quality;
mod variable_rate;

#[cfg(test)]
mod tests;

use crate::random::{RandomStream, RandomStreamName};

pub use account::LinkAccount;
pub use attack::{FlowSelection, LinkAttack};
pub use change::DirectionChange;
pub use direction::LinkDirection;
pub use ecn::EcnCodePoint;
pub use loss_cause::{ClassificationCounts, ConfusionMatrix, LossCause, UnclassifiedLosses};
pub use path_counters::PathCounters;
pub use serializer::Serializer;
pub use set::{LinkEntry, LinkObserver, LinkSet};
pub use timed::TimedLinks;
pub use transit::{DropReason, LinkPayload, PacketTransit, TransitOutcome};

/// The random streams of one direction: one for each purpose, all independent.
#[derive(Debug, Clone, Copy)]
pub struct LinkRandomStreams(RandomStreamName);

impl LinkRandomStreams {
    /// The random streams of the direction `entity` (`"<link>.forward"` or `"<link>.reverse"`) of
    /// the group member `member`.
    #[must_use]
    pub fn named(seed: u64, replication: u32, entity: &str, member: u64) -> Self {
        // The stream name keeps the former spelling: another name would change the results of every
        // seed.
        let stream_name = entity.strip_suffix(".reverse").map(|link| format!("{link}.backward"));
        let entity = stream_name.as_deref().unwrap_or(entity);
        Self(RandomStreamName::new(seed, replication, entity, member))
    }

    fn stream(self, purpose: &str) -> RandomStream {
        self.0.stream(purpose)
    }

    fn numbered_stream(self, purpose: &str, number: u64) -> RandomStream {
        self.0.numbered_stream(purpose, number)
    }
}
