//! The congestion window: the sender has data, the receive window has space, and no loss has
//! happened yet.
//!
//! T-RAT: transport limited or opportunity limited flows, which are in slow start or end before
//! they leave it (Zhang et al. 2002, section 4.1). No packet shows the congestion window; this rule
//! therefore has what the others leave.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Wait};
use crate::quantity::{percent, seconds};

/// The time until an acknowledgement permitted the transmission. A transmission without an
/// acknowledgement is one that pacing or the application delayed, which packets do not distinguish.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    if wait.is_unprompted { Duration::ZERO } else { remaining }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    let short = facts.round_trip_s.is_some_and(|round_trip| facts.transfer_s < 20.0 * round_trip);
    let phase = if short { "slow start of a short transfer: " } else { "" };
    let flight = format!("{} B were in flight at most", counters.in_flight_max_byte);
    let window = counters
        .window_max_byte
        .map_or(String::new(), |window| format!(" with a receive window of {window} B"));
    format!(
        "{phase}the sender waited for acknowledgements in {} of {}, although it had data and no \
         loss had occurred; {flight}{window}",
        percent(facts.shares.of(Limit::CongestionWindow)),
        seconds(facts.transfer_s),
    )
}
