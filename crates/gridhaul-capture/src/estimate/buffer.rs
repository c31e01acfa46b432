//! Buffer of the bottleneck.

use super::Estimate;
use super::interval::Interval;
use super::loss::Overflow;

/// The bytes that the bottleneck transmits during the queueing delay before losses of a full
/// buffer. The range is that of the delays before these losses, and of the rate; its confidence
/// level is unknown.
pub(super) fn estimate(overflow: Option<&Overflow>, rate: Option<&Estimate>) -> Option<Estimate> {
    let rate = rate?;
    let [low, high] = overflow?.delays.map(|delay| delay.as_secs_f64());
    let bytes = |delay: f64, rate: f64| delay * rate / 8.0;
    Some(Estimate {
        value: bytes(high, rate.value),
        interval: Interval {
            low: bytes(low, rate.interval.low),
            high: bytes(high, rate.interval.high),
            level: None,
        },
    })
}
