//! Losses by attenuation and noise happen where there is such a thing, and as it would.

use gridhaul_core::link::{DropReason, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRule;

/// Checks the causes that a direction names. While a level of attenuation stays, it stops all packets
/// that begin or none.
#[derive(Debug)]
pub(super) struct ChannelCheck {
    fades: bool,
    is_noisy: bool,
    /// How long a level stays.
    stays: Duration,
    /// The interval of the packet before, and whether its level was too low.
    last: Option<(u64, bool)>,
}

impl ChannelCheck {
    /// `None` for a direction with neither.
    pub(super) fn new(direction: &Direction) -> Option<Self> {
        let (shadowing, is_noisy) = (direction.shadowing, !direction.noise.is_empty());
        (shadowing.is_some() || is_noisy).then(|| Self {
            fades: shadowing.is_some(),
            is_noisy,
            stays: shadowing.and_then(|shadowing| shadowing.coherence).unwrap_or(Duration::MAX),
            last: None,
        })
    }

    /// A passage that is no copy comes out.
    pub(super) fn on_transit<P>(&mut self, passage: &PacketTransit<P>) -> Result<(), LinkRule> {
        let is_too_low = match passage.outcome {
            TransitOutcome::Lost(DropReason::Shadowing) => true,
            TransitOutcome::Lost(DropReason::Noise) if !self.is_noisy => {
                return Err(LinkRule::LossWithoutCause);
            }
            // An outage is named first, and what a queue drops never began.
            TransitOutcome::Lost(DropReason::Outage | DropReason::QueueFull | DropReason::Aqm) => {
                return Ok(());
            }
            _ => false,
        };
        if is_too_low && !self.fades {
            return Err(LinkRule::LossWithoutCause);
        }
        let since_start = passage.started.since(Instant::ZERO).as_nanos();
        let interval = since_start / self.stays.as_nanos().max(1);
        let last = self.last.replace((interval, is_too_low));
        match last {
            Some((before, was_too_low)) if before == interval && was_too_low != is_too_low => {
                Err(LinkRule::AttenuationInconsistent)
            }
            _ => Ok(()),
        }
    }
}
