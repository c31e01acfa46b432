//! Checks rates that change, and losses by attenuation and noise.

use gridhaul_core::link::{DropReason, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{Direction, RateSchedule};
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRule;

/// Checks that changing rates permit each transmission, and the reported causes of losses. During a
/// coherence interval the attenuation is constant, so either all packets that start in it are lost
/// or none.
#[derive(Debug, Clone)]
pub(super) struct ChannelCheck {
    has_shadowing: bool,
    has_noise: bool,
    /// The rates of a direction with `rate_change`.
    rates: Option<RateSchedule>,
    /// Coherence time of the shadowing.
    coherence: Duration,
    /// The interval of the previous packet, and whether shadowing lost it.
    previous: Option<(u64, bool)>,
}

impl ChannelCheck {
    /// `None` for a direction of constant rate without shadowing and noise.
    pub(super) fn new(direction: &Direction) -> Option<Self> {
        let (shadowing, has_noise) = (direction.shadowing, !direction.noise.is_empty());
        let has_changes = !direction.rate_change.is_empty();
        (shadowing.is_some() || has_noise || has_changes).then(|| Self {
            rates: has_changes.then(|| RateSchedule::of(direction)),
            has_shadowing: shadowing.is_some(),
            has_noise,
            coherence: shadowing.and_then(|shadowing| shadowing.coherence).unwrap_or(Duration::MAX),
            previous: None,
        })
    }

    /// A packet that is not a copy leaves the direction.
    pub(super) fn on_transit<P>(&mut self, transit: &PacketTransit<P>) -> Result<(), LinkRule> {
        if let Some(rates) = &self.rates
            && !permits(rates, transit)
        {
            return Err(LinkRule::TransmissionTooShort);
        }
        let is_lost = match transit.outcome {
            TransitOutcome::Lost(DropReason::Shadowing) => true,
            TransitOutcome::Lost(DropReason::Noise) if !self.has_noise => {
                return Err(LinkRule::LossWithoutCause);
            }
            // An outage takes precedence as the cause, and a packet dropped by the queue was never
            // transmitted.
            TransitOutcome::Lost(DropReason::Outage | DropReason::QueueFull | DropReason::Aqm) => {
                return Ok(());
            }
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

/// Whether the rates permit the transmission of a packet in its time. Times are whole nanoseconds,
/// so that the last bits may lack a nanosecond. A packet that the queue dropped was never
/// transmitted.
fn permits<P>(rates: &RateSchedule, transit: &PacketTransit<P>) -> bool {
    if matches!(transit.outcome, TransitOutcome::Lost(reason) if reason.is_by_queue()) {
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
