//! Impairments: the optional behaviour of a direction, in one allocation.

use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::{Duration, Instant};

use super::jitter::Jitter;
use super::load_latency::LoadLatency;
use super::noise::Noise;
use super::outage::Outages;
use super::reorder::Reorder;
use super::route_change::RouteChange;
use super::shadowing::Shadowing;
use super::{DropReason, LinkRandomStreams, TransitOutcome};
use crate::random::BernoulliTrial;

/// Impairments of a direction besides queueing, delay and loss.
///
/// Each random stream is advanced once for each transmitted packet, lost or not, so that
/// impairments do not influence each other's random numbers. Processes in time (attenuation, noise)
/// are independent of the traffic.
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
    route_change: Option<RouteChange>,
    /// Latest arrival time of a packet that was not reordered; later packets do not arrive before
    /// it.
    pub(super) last_in_order: Instant,
}

/// A packet at the end of its transmission.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) bytes: u32,
    /// When load-dependent latency counts the packet.
    pub(super) counted: Instant,
    pub(super) started: Instant,
    pub(super) sent: Instant,
    /// Whether the loss process of the direction drops the packet.
    pub(super) lost: bool,
}

/// The outcome of the impairments for a packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct ImpairedPacket {
    pub(super) left: Instant,
    pub(super) outcome: TransitOutcome,
    pub(super) duplicated: bool,
}

impl Impairments {
    /// Whether a direction has no impairments.
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
            && direction.route_change.is_none()
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
            route_change: direction.route_change.as_ref().map(RouteChange::new),
            last_in_order: Instant::ZERO,
        }
    }

    /// The paired direction carries a packet.
    pub(super) fn note_paired_use(&mut self, now: Instant) {
        if let Some(load_latency) = &mut self.load_latency {
            load_latency.note_paired_use(now);
        }
    }

    /// Applies all impairments to a transmitted packet.
    pub(super) fn apply(&mut self, packet: Sent, delay: Duration) -> ImpairedPacket {
        let corrupted = self.corrupt.as_mut().is_some_and(BernoulliTrial::sample);
        let corrupted_undetected =
            self.corrupt_undetected.as_mut().is_some_and(BernoulliTrial::sample);
        let duplicated = self.duplicate.as_mut().is_some_and(BernoulliTrial::sample);
        let shadowed =
            self.shadowing.as_mut().is_some_and(|shadowing| shadowing.is_below(packet.started));
        let destroyed = self.noise.destroys(packet.started, packet.sent);
        let outcome = if self.outages.loses(packet.started, packet.sent) {
            TransitOutcome::Lost(DropReason::Outage)
        } else if shadowed {
            TransitOutcome::Lost(DropReason::Shadowing)
        } else if destroyed {
            TransitOutcome::Lost(DropReason::Noise)
        } else if packet.lost {
            TransitOutcome::Lost(DropReason::Loss)
        } else if corrupted {
            TransitOutcome::Corrupted
        } else if corrupted_undetected {
            TransitOutcome::CorruptedUndetected
        } else {
            TransitOutcome::Arrived
        };
        ImpairedPacket { left: self.arrival(packet, delay), outcome, duplicated }
    }

    /// Arrival time. Jitter, load latency and route changes keep the order of packets; only
    /// reordering changes it.
    fn arrival(&mut self, packet: Sent, delay: Duration) -> Instant {
        let mut delay = delay;
        if let Some(jitter) = &mut self.jitter {
            delay += jitter.addition();
        }
        if let Some(load_latency) = &mut self.load_latency {
            delay += load_latency.addition(packet.counted, packet.bytes);
        }
        if let Some(route_change) = &self.route_change {
            delay += route_change.addition(packet.sent);
        }
        self.last_in_order = self.last_in_order.max(packet.sent + delay);
        match self.reorder.as_mut().and_then(Reorder::extra_delay) {
            Some(extra_delay) => self.last_in_order + extra_delay,
            None => self.last_in_order,
        }
    }
}
