//! Nagle's algorithm (RFC 9293, section 3.7.4; RFC 896): a short segment waits while data is
//! outstanding, in the worst case for a delayed acknowledgement.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Next, Wait};
use crate::quantity::{percent, seconds};

/// A short segment follows another as soon as the latter is acknowledged, without an answer of the
/// peer to which an application could react: applications do not see acknowledgements.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    let is_short = wait.after_short && matches!(wait.next, Next::New { is_short: true });
    let is_held_back = is_short
        && wait.all_acked
        && wait.idle.is_zero()
        && wait.is_prompt
        && !wait.received_data
        && !wait.is_permitted_by_window;
    if is_held_back { remaining } else { Duration::ZERO }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    let delayed = if counters.nagle_delayed_waits * 2 > counters.nagle_waits {
        format!(
            ", {} of them delayed acknowledgements ({} on average)",
            counters.nagle_delayed_waits,
            seconds(counters.delayed_ack_mean_s.unwrap_or(0.0)),
        )
    } else {
        String::new()
    };
    format!(
        "{} short segments waited for the acknowledgement of the one before{delayed}; these waits \
         took {} of {}",
        counters.nagle_waits,
        percent(facts.shares.of(Limit::Nagle)),
        seconds(facts.transfer_s),
    )
}
