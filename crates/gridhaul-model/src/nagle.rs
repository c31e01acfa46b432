//! Messages that Nagle's algorithm delays because an earlier one is unacknowledged (RFC 9293,
//! section 3.7.4).

/// Share of the messages from which a warning is given.
const DELAYED_MIN: f64 = 0.02;

/// Share of the messages that follow an earlier one within `outstanding_s` seconds. Messages have
/// constant distances or, if they are random, those of a Poisson process.
pub(crate) fn delayed_share(per_second: f64, outstanding_s: f64, is_random: bool) -> f64 {
    if is_random {
        -(-per_second * outstanding_s).exp_m1()
    } else {
        f64::from(u8::from(per_second * outstanding_s >= 1.0))
    }
}

/// The warning about a share of delayed messages.
pub(crate) fn warning(share: f64) -> Option<String> {
    (share > DELAYED_MIN).then(|| {
        format!(
            "{:.0} % of the messages follow an earlier one within a round trip, so that Nagle's \
                algorithm delays their last segment: the equations exclude this, and delays are \
                too short; set `nagle` to false, or use backend `sim`",
            share * 100.0
        )
    })
}
