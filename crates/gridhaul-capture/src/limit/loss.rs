//! Losses: the sender repairs a loss, or its congestion window is small because of one.
//!
//! T-RAT: congestion limited flows (Zhang et al. 2002, section 4.1); Siekkinen et al. 2005, section
//! 4.3: the retransmission score. Here only while the bottleneck is not busy: a loss that leaves
//! packets in its queue costs no throughput, and the rate of the link is the limit.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Next, Wait};
use crate::quantity::{percent, seconds};

/// The repair of a loss, and the waits for acknowledgements after it.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    let is_repair = matches!(wait.next, Next::FastRetransmission) || wait.is_recovering;
    let is_reduced = wait.is_after_loss && !wait.is_unprompted;
    if is_repair || is_reduced { remaining } else { Duration::ZERO }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    let rate = counters.lost_packets as f64 / counters.packets.max(1) as f64;
    format!(
        "{} of {} packets were lost ({:.2} %); their repair and the congestion window after them \
         took {} of {}, in which the link was not busy",
        counters.lost_packets,
        counters.packets,
        100.0 * rate,
        percent(facts.shares.of(Limit::Loss)),
        seconds(facts.transfer_s),
    )
}
