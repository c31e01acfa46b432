//! The application: the sender has no data to send.
//!
//! T-RAT calls such flows application limited (Zhang et al. 2002, section 4.1: a gap between two
//! flights that begins after a packet smaller than the MSS). Siekkinen et al. (2005, section 3)
//! separate application-limited periods before all other analysis, by segments smaller than the MSS
//! and by idle times longer than a round trip with nothing outstanding.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Next, Wait};
use crate::quantity::{percent, seconds};

/// Nothing was outstanding, and nothing prevented a transmission: a sender with data would have
/// sent it. The time before, in which the last data was outstanding, belongs to the application
/// too, since the sender had no data when it could have sent. An answer of the peer that
/// acknowledges all data, followed by the next request at once, is an exchange of messages: the
/// sender waits for the answer.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    let is_new = matches!(wait.next, Next::New { .. });
    if !is_new || !wait.all_acked || wait.is_permitted_by_window {
        return Duration::ZERO;
    }
    let is_answered = wait.received_data;
    if !wait.idle.is_zero() || is_answered { remaining } else { Duration::ZERO }
}

/// The last segment was shorter than the MSS although the window had space: no more data was there.
pub(super) fn claim_after_short(wait: &Wait, remaining: Duration) -> Duration {
    let is_new = matches!(wait.next, Next::New { .. });
    let had_no_data = wait.after_short && is_new && !wait.is_recovering;
    if had_no_data { remaining } else { Duration::ZERO }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    let exchange = if counters.answered_waits * 2 > counters.waits {
        ", mostly for an answer of the peer"
    } else {
        ""
    };
    if facts.transfer_s <= 0.0 {
        return format!("all {} B were sent at once", counters.payload_byte);
    }
    format!(
        "the sender had no data to send in {} of the {} from its first to its last data{exchange}; \
         {} of {} segments are shorter than the {} B of a full one",
        percent(facts.shares.of(Limit::Application)),
        seconds(facts.transfer_s),
        counters.short_segments,
        counters.segments,
        counters.segment_byte,
    )
}
