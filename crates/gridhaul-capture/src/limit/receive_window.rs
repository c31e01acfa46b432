//! The receive window: the bytes in flight reach the window that the receiver advertises.
//!
//! T-RAT: flights that end within three segments of the advertised window (Zhang et al. 2002,
//! section 4.1). Siekkinen et al. 2005, section 4.3: the receiver window limitation score is the
//! share of time in which the outstanding bytes are within a few segments of the window. Here the
//! acknowledgement is known that made space for a segment, and the segment follows it at once,
//! which needs no tolerance in bytes.

use gridhaul_scenario::units::Duration;

use super::{Facts, Limit, Next, Wait};
use crate::quantity::{percent, seconds};

/// The wait ends when an acknowledgement makes space for the data that is sent then: before, the
/// window was full. A receiver that closes its window after data was sent drops this data, so that
/// its retransmissions are probes of the window.
pub(super) fn claim(wait: &Wait, remaining: Duration) -> Duration {
    let is_refused = matches!(wait.next, Next::Refused);
    if wait.is_permitted_by_window || is_refused { remaining } else { Duration::ZERO }
}

pub(super) fn evidence(facts: &Facts<'_>) -> String {
    let counters = facts.counters;
    let window =
        counters.window_max_byte.map_or(String::new(), |window| format!(" of at most {window} B"));
    let zero = match counters.zero_windows {
        0 => String::new(),
        count => format!(
            "; {count} windows of zero: the receiving application, or a proxy, reads more slowly \
             than data arrives"
        ),
    };
    format!(
        "the bytes in flight filled the receive window{window} in {} of the {} from the first to \
         the last data{zero}",
        percent(facts.shares.of(Limit::ReceiveWindow)),
        seconds(facts.transfer_s),
    )
}
