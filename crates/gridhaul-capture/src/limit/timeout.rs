//! Timeouts: the sender waits for its retransmission timer (RFC 6298), because too few
//! acknowledgements arrive to notice a loss.
//!
//! Of the causes of T-RAT, part of the congestion limited flows; separate here, because the remedy
//! is another: tail losses, short flows and outages.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Next, Wait};
use crate::quantity::{percent, seconds};

/// The whole wait before a retransmission that no acknowledgement caused.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    if matches!(wait.next, Next::TimerRetransmission) { remaining } else { Duration::ZERO }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    format!(
        "{} retransmissions followed a timer and not acknowledgements; these waits took {} of {}, \
         the longest {}",
        counters.timeouts,
        percent(facts.shares.of(Limit::Timeout)),
        seconds(facts.transfer_s),
        seconds(counters.timeout_longest_s),
    )
}
