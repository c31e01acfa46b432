//! The round-trip time of a flow whose own window fills the queue of the bottleneck link.
//!
//! The throughput laws assume a constant round-trip time. Near the link rate this does not hold:
//! the top of the window's sawtooth is queued. Here the round-trip time is the mean over the rounds
//! of the sawtooth that the law assumes, from the window after a loss to the window at the next
//! loss.

/// Mean round-trip time in seconds while the window grows linearly from `kept * top` to `top`
/// segments, on a path with a base round-trip time of `rtt_s` and a bottleneck of `link` segments
/// per second.
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
    fn mean_rounds_by_hand() {
        // Bandwidth-delay product of ten: below it, the base round-trip time.
        assert_eq!(mean_round_s(0.1, 100.0, 10.0, 0.5), 0.1);
        // From 20 to 40: 30 on average, at 100 per second.
        assert!((mean_round_s(0.1, 100.0, 40.0, 0.5) - 0.3).abs() < 1e-12);
        // From 8 to 16: two rounds at 0.1 s, six at 0.13 s on average.
        assert!((mean_round_s(0.1, 100.0, 16.0, 0.5) - 0.1225).abs() < 1e-12);
        assert_eq!(mean_round_s(0.1, f64::INFINITY, 16.0, 0.5), 0.1);
    }
}
