//! Links: what happens to a packet between two nodes.
//!
//! A [`LinkDirection`] is one direction. In the order in which a packet meets them:
//!
//! 1. **queue**: drop-tail, limited in packets or bytes that wait (`queue`), or one that drops before
//!    it is full (`aqm`);
//! 2. **wire**: each packet takes its own time at the link's rate (`wire`); an outage that holds
//!    stops the wire, also within a packet (`outage`);
//! 3. **loss**: outages that lose, then attenuation (`shadowing`), bursts of noise (`noise`), and
//!    Bernoulli, Gilbert–Elliott or listed packets (`loss`); the first of them is the cause;
//! 4. **damage**, then **duplication**: the copy of a damaged packet is damaged too;
//! 5. **way**: delay, jitter and load-dependent latency, which keep the order, then packets that
//!    are held back, which does not (`jitter`, `load_latency`, `reorder`).
//!
//! Drop-tail, RED and PIE let all of this be decided on arrival: the time at which the wire will be
//! free is known, so there is no event when a transmission begins. CoDel and FQ-CoDel decide when a
//! packet is taken out: they hold their packets (`aqm::StoredPackets`) until the wire is free, so that the
//! end of each transmission is a deadline as well, and what they drop leaves as `TransitOutcome::Lost`.
//!
//! A plain direction (drop-tail and loss) is served by `direction`, everything else by `apart`.
//!
//! A [`LinkSet`] holds the directions of a network with their counters and observers; [`TimedLinks`] adds
//! the deadlines.

mod account;
mod aqm;
mod direction;
mod gilbert_elliott;
mod impaired_path;
mod impairments;
mod jitter;
mod load_latency;
mod loss;
mod loss_cause;
mod noise;
mod outage;
mod path_counters;
mod queue;
mod reorder;
mod ring_buffer;
mod serializer;
mod set;
mod shadowing;
mod timed;
mod transit;
mod transmitter;

#[cfg(test)]
mod tests;

use crate::random::{RandomStream, RandomStreamName};

pub use account::LinkAccount;
pub use direction::LinkDirection;
pub use loss_cause::{ClassificationCounts, ConfusionMatrix, LossCause, UnclassifiedLosses};
pub use path_counters::PathCounters;
pub use serializer::Serializer;
pub use set::{LinkEntry, LinkObserver, LinkSet};
pub use timed::TimedLinks;
pub use transit::{DropReason, LinkPayload, PacketTransit, TransitOutcome};

/// The chance of one direction: a stream for each purpose, all independent of each other.
#[derive(Debug, Clone, Copy)]
pub struct LinkRandomStreams(RandomStreamName);

impl LinkRandomStreams {
    /// The chance of the direction `entity` (`"<link>.forward"` or `"<link>.reverse"`) of the
    /// member `member` of a group.
    #[must_use]
    pub fn named(seed: u64, replication: u32, entity: &str, member: u64) -> Self {
        // A stream is found by its name: with another one, every answer to a seed would change.
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
