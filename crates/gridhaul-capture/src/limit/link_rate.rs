//! The rate of the link: the bottleneck transmits without a pause.
//!
//! T-RAT: bandwidth limited flows, with equally spaced packets (Zhang et al. 2002, section 4.1);
//! Siekkinen et al. 2005, section 4.3: unshared bottleneck limited, throughput near the capacity.
//! Here the queueing delay decides: packets wait in the queue of the bottleneck, or the connection
//! alone uses its rate.

use super::{Facts, Limit};
use crate::quantity::{bit_rate, percent, seconds};

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let queueing = seconds(facts.queueing_mean_s);
    let rate = match (facts.rate_bit_per_s, facts.utilisation) {
        (Some(rate), Some(utilisation)) => format!(
            "the connection used {} of the {} at which packets leave the bottleneck; ",
            percent(utilisation.min(1.0)),
            bit_rate(rate),
        ),
        _ => String::new(),
    };
    format!(
        "{rate}packets waited in its queue in {} of {}, {queueing} on average",
        percent(facts.shares.of(Limit::LinkRate)),
        seconds(facts.transfer_s),
    )
}
