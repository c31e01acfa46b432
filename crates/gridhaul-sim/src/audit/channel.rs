//! Checks rates that change, and losses by attenuation and noise.

use std::sync::Arc;

use gridhaul_core::link::{DropReason, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{Direction, LinkTraceContent, RateSchedule};
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRule;
use super::opportunities::OpportunityCheck;

/// Checks that changing rates permit each transmission, and the reported causes of losses. During a
/// coherence interval the attenuation is constant, so either all packets that start in it are lost
/// or none.
#[derive(Debug, Clone)]
pub(super) struct ChannelCheck {
    has_shadowing: bool,
    has_noise: bool,
    /// The rates of a direction with `rate_change` or a trace of rates.
    rates: Option<RateSchedule>,
    /// The opportunities of a direction with such a trace.
    opportunities: Option<OpportunityCheck>,
    /// Coherence time of the shadowing.
    coherence: Duration,
    /// The interval of the previous packet, and whether shadowing lost it.
    previous: Option<(u64, bool)>,
}

impl ChannelCheck {
    /// `None` for a direction of constant rate without shadowing and noise.
    pub(super) fn new(direction: &Direction, trace: Option<&LinkTraceContent>) -> Option<Self> {
        let (shadowing, has_noise) = (direction.shadowing, !direction.noise.is_empty());
        let has_changes = !direction.rate_change.is_empty();
        let (rates, opportunities) = match trace {
            Some(LinkTraceContent::Steps(steps)) => {
                (Some(RateSchedule::of_steps(Arc::clone(steps))), None)
            }
            Some(LinkTraceContent::Deliveries(deliveries)) => {
                (None, Some(OpportunityCheck::new(Arc::clone(deliveries))))
            }
            None => (has_changes.then(|| RateSchedule::of(direction)), None),
        };
        let is_variable = rates.is_some() || opportunities.is_some();
        (shadowing.is_some() || has_noise || is_variable).then(|| Self {
            rates,
            opportunities,
            has_shadowing: shadowing.is_some(),
            has_noise,
            coherence: shadowing.and_then(|shadowing| shadowing.coherence).unwrap_or(Duration::MAX),
            previous: None,
        })
    }

    /// A packet that is not a copy leaves the direction. `in_order` states whether packets leave
    /// in the order of their transmission.
    pub(super) fn on_transit<P>(
        &mut self,
        transit: &PacketTransit<P>,
        in_order: bool,
    ) -> Result<(), LinkRule> {
        if let Some(rates) = &self.rates
            && !permits(rates, transit)
        {
            return Err(LinkRule::TransmissionTooShort);
        }
        if let Some(opportunities) = &mut self.opportunities
            && !is_dropped_by_queue(transit)
        {
            opportunities.check(transit, in_order)?;
        }
        let is_lost = match transit.outcome {
            TransitOutcome::Lost(DropReason::Shadowing) => true,
            TransitOutcome::Lost(DropReason::Noise) if !self.has_noise => {
                return Err(LinkRule::LossWithoutCause);
            }
            // Outages and collisions take precedence as the cause, and a packet dropped by the
            // queue was never transmitted.
            TransitOutcome::Lost(
                DropReason::Outage
                | DropReason::Collision
                | DropReason::QueueFull
                | DropReason::Aqm,
            ) => return Ok(()),
            _ => false,
        };
        if is_lost && !self.has_shadowing {
            return Err(LinkRule::LossWithoutCause);
        }
        let since_start = transit.started.since(Instant::ZERO).as_nanos();
        let interval = since_start / self.coherence.as_nanos().max(1);
        let previous = self.previous.replace((interval, is_lost));
        match previous {
            Some((previous, was_lost)) if previous == interval && was_lost != is_lost => {
                Err(LinkRule::AttenuationInconsistent)
            }
            _ => Ok(()),
        }
    }
}

/// Whether the queue dropped a packet, which was then never transmitted.
const fn is_dropped_by_queue<P>(transit: &PacketTransit<P>) -> bool {
    matches!(transit.outcome, TransitOutcome::Lost(reason) if reason.is_by_queue())
}

/// Whether the rates permit the transmission of a packet in its time. Times are whole nanoseconds,
/// so that the last bits may lack a nanosecond.
fn permits<P>(rates: &RateSchedule, transit: &PacketTransit<P>) -> bool {
    if is_dropped_by_queue(transit) {
        return true;
    }
    let mut possible = u128::from(rates.rate_max().as_bits_per_sec());
    let mut at = transit.started;
    while at < transit.sent {
        let until = rates.next_change(at).min(transit.sent);
        let nanos = u128::from(until.as_nanos() - at.as_nanos());
        possible += u128::from(rates.rate_at(at).as_bits_per_sec()) * nanos;
        at = until;
    }
    possible >= u128::from(transit.bytes) * 8_000_000_000
}
