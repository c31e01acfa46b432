//! Everything that a plain link does not do, behind one box.

use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::{Duration, Instant};

use super::jitter::Jitter;
use super::load_latency::LoadLatency;
use super::noise::Noise;
use super::outage::Outages;
use super::reorder::Reorder;
use super::shadowing::Shadowing;
use super::{DropReason, LinkRandomStreams, TransitOutcome};
use crate::random::BernoulliTrial;

/// What may happen to packets besides queue, wire, delay and loss.
///
/// Every stream of chance is drawn from once for each packet that the wire takes, whatever becomes
/// of it, so that one impairment does not shift another. What goes on in time (attenuation, noise)
/// does so whether there are packets or not.
#[derive(Debug, Clone)]
pub(super) struct Impairments {
    pub(super) outages: Outages,
    shadowing: Option<Shadowing>,
    noise: Noise,
    corrupt: Option<BernoulliTrial>,
    corrupt_undetected: Option<BernoulliTrial>,
    duplicate: Option<BernoulliTrial>,
    jitter: Option<Jitter>,
    load_latency: Option<LoadLatency>,
    reorder: Option<Reorder>,
    /// Latest arrival of a packet that is not held back; none behind it comes earlier.
    last_in_order: Instant,
}

/// A packet at the end of its transmission.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) bytes: u32,
    /// When load-dependent latency counts it.
    pub(super) counted: Instant,
    pub(super) started: Instant,
    pub(super) sent: Instant,
    /// Whether the way loses it.
    pub(super) lost: bool,
}

/// What becomes of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImpairedPacket {
    pub(super) left: Instant,
    pub(super) outcome: TransitOutcome,
    pub(super) duplicated: bool,
}

impl Impairments {
    /// Whether a direction has none.
    pub(super) const fn is_none(direction: &Direction) -> bool {
        direction.outage.is_empty()
            && direction.shadowing.is_none()
            && direction.noise.is_empty()
            && direction.corrupt.is_none()
            && direction.corrupt_undetected.is_none()
            && direction.duplicate.is_none()
            && direction.jitter.is_none()
            && direction.load_latency.is_none()
            && direction.reorder.is_none()
    }

    /// The impairments of a direction.
    pub(super) fn new(direction: &Direction, random: LinkRandomStreams) -> Self {
        let trial = |probability, purpose| BernoulliTrial::new(probability, random.stream(purpose));
        Self {
            outages: Outages::new(&direction.outage),
            shadowing: direction.shadowing.map(|keys| Shadowing::new(keys, random)),
            noise: Noise::new(&direction.noise, random),
            corrupt: direction.corrupt.map(|p| trial(p, "corrupt")),
            corrupt_undetected: direction.corrupt_undetected.map(|p| trial(p, "corrupt unnoticed")),
            duplicate: direction.duplicate.map(|p| trial(p, "duplicate")),
            jitter: direction.jitter.map(|keys| Jitter::new(&keys, random.stream("jitter"))),
            load_latency: direction
                .load_latency
                .as_ref()
                .map(|keys| LoadLatency::new(keys, random.stream("load latency"))),
            reorder: direction.reorder.map(|keys| Reorder::new(&keys, random)),
            last_in_order: Instant::ZERO,
        }
    }

    /// The paired direction carries a packet.
    pub(super) fn note_paired_use(&mut self, now: Instant) {
        if let Some(load_latency) = &mut self.load_latency {
            load_latency.note_paired_use(now);
        }
    }

    /// Decides about a packet whose transmission is over.
    pub(super) fn judge(&mut self, packet: Sent, delay: Duration) -> ImpairedPacket {
        let damaged = self.corrupt.as_mut().is_some_and(BernoulliTrial::sample);
        let garbled = self.corrupt_undetected.as_mut().is_some_and(BernoulliTrial::sample);
        let duplicated = self.duplicate.as_mut().is_some_and(BernoulliTrial::sample);
        let faded =
            self.shadowing.as_mut().is_some_and(|shadowing| shadowing.is_below(packet.started));
        let destroyed = self.noise.destroys(packet.started, packet.sent);
        let outcome = if self.outages.loses(packet.started, packet.sent) {
            TransitOutcome::Lost(DropReason::Outage)
        } else if faded {
            TransitOutcome::Lost(DropReason::Shadowing)
        } else if destroyed {
            TransitOutcome::Lost(DropReason::Noise)
        } else if packet.lost {
            TransitOutcome::Lost(DropReason::Loss)
        } else if damaged {
            TransitOutcome::Corrupted
        } else if garbled {
            TransitOutcome::CorruptedUndetected
        } else {
            TransitOutcome::Arrived
        };
        ImpairedPacket { left: self.arrival(packet, delay), outcome, duplicated }
    }

    /// When it arrives. Jitter and load latency keep the order; only reordering breaks it.
    fn arrival(&mut self, packet: Sent, delay: Duration) -> Instant {
        let mut delay = delay;
        if let Some(jitter) = &mut self.jitter {
            delay += jitter.addition();
        }
        if let Some(load_latency) = &mut self.load_latency {
            delay += load_latency.addition(packet.counted, packet.bytes);
        }
        self.last_in_order = self.last_in_order.max(packet.sent + delay);
        match self.reorder.as_mut().and_then(Reorder::hold_back) {
            Some(by) => self.last_in_order + by,
            None => self.last_in_order,
        }
    }
}
