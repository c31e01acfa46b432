//! Limits of the times of hybrid routers, in scenarios and in configurations of relays.

use crate::units::Duration;

/// Message about a detection time outside of its limits.
pub(crate) fn detection_time_error(time: Duration) -> Option<String> {
    limit_error(time, [300, 60_000])
}

/// Message about a hold time outside of its limits.
pub(crate) fn hold_time_error(time: Duration) -> Option<String> {
    limit_error(time, [1_000, 600_000])
}

/// Message about an interval of probes outside of its limits: some probes must be due within the
/// detection time.
pub(crate) fn probe_interval_error(interval: Duration, detection_time: Duration) -> Option<String> {
    let [least, largest] = [Duration::from_millis(20), detection_time / 5];
    let is_valid = (least..=largest).contains(&interval);
    (!is_valid).then(|| {
        format!("{interval} is not between {least} and a fifth of detection_time ({largest})")
    })
}

fn limit_error(time: Duration, limits_ms: [u64; 2]) -> Option<String> {
    let [least, largest] = limits_ms.map(Duration::from_millis);
    let is_valid = (least..=largest).contains(&time);
    (!is_valid).then(|| format!("{time} is not between {least} and {largest}"))
}
