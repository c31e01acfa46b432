//! The round trip of a flow whose own window waits in the queue of its narrowest link.
//!
//! The laws take the round trip for given. Near the rate of the link that is not so: the top of the
//! window's sawtooth waits. Here the round trip is the mean over the rounds of the sawtooth that the
//! law itself assumes, from the window after a loss to the window at the next one.

/// Mean round trip in seconds while the window grows evenly from `kept * top` to `top` segments, on
/// a path of `rtt_s` without waiting behind a link of `link` segments a second.
#[must_use]
pub(super) fn mean_round_s(rtt_s: f64, link: f64, top: f64, kept: f64) -> f64 {
    let (bottom, pipe) = (kept * top, rtt_s * link);
    if top <= pipe || !pipe.is_finite() {
        return rtt_s;
    }
    if bottom >= pipe {
        return (bottom + top) / 2.0 / link;
    }
    let filling = (pipe - bottom) * rtt_s;
    let waiting = (top * top - pipe * pipe) / (2.0 * link);
    (filling + waiting) / (top - bottom)
}

#[cfg(test)]
mod tests {
    use super::mean_round_s;

    #[test]
    fn rounds_by_hand() {
        // A pipe of ten: below it, the bare round trip.
        assert_eq!(mean_round_s(0.1, 100.0, 10.0, 0.5), 0.1);
        // From 20 to 40: 30 on average, at 100 a second.
        assert!((mean_round_s(0.1, 100.0, 40.0, 0.5) - 0.3).abs() < 1e-12);
        // From 8 to 16: two rounds of eight at 0.1 s, six that wait 0.13 s on average.
        assert!((mean_round_s(0.1, 100.0, 16.0, 0.5) - 0.1225).abs() < 1e-12);
        assert_eq!(mean_round_s(0.1, f64::INFINITY, 16.0, 0.5), 0.1);
    }
}
