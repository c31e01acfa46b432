//! Delayed acknowledgements (RFC 9293, section 3.8.6.3): the sender waits for the acknowledgement
//! of a single segment, which the receiver delays.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Wait};
use crate::quantity::{percent, seconds};

/// The time by which the acknowledgement for which the sender waited was late.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    match wait.delayed_ack {
        Some(delay) if wait.is_prompt => delay.min(remaining),
        _ => Duration::ZERO,
    }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    format!(
        "{} acknowledgements of single segments came {} late on average, and the sender waited for \
         them in {} of {}",
        counters.delayed_acks,
        seconds(counters.delayed_ack_mean_s.unwrap_or(0.0)),
        percent(facts.shares.of(Limit::DelayedAck)),
        seconds(facts.transfer_s),
    )
}
