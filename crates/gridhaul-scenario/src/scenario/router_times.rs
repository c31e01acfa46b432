//! Limits of the times of hybrid routers, in scenarios and in configurations of relays.

use crate::units::Duration;

/// Limits of a detection time in milliseconds.
const DETECTION_MS: [u64; 2] = [300, 60_000];

/// Message about a detection time outside of its limits.
pub(crate) fn detection_time_error(time: Duration) -> Option<String> {
    limit_error(time, DETECTION_MS)
}

/// Message about a hold time outside of its limits.
pub(crate) fn hold_time_error(time: Duration) -> Option<String> {
    limit_error(time, [1_000, 600_000])
}

/// Message about an interval of probes outside of its limits: some probes must be due within the
/// detection time.
pub(crate) fn probe_interval_error(interval: Duration, detection_time: Duration) -> Option<String> {
    let [least, largest] = [PROBE_INTERVAL_MIN, detection_time / 5];
    let is_valid = (least..=largest).contains(&interval);
    (!is_valid).then(|| {
        format!("{interval} is not between {least} and a fifth of detection_time ({largest})")
    })
}

/// The largest interval of probes at a detection time, for a remedy: that of the nearest permitted
/// detection time.
pub(crate) fn probe_interval_max(detection_time: Duration) -> Duration {
    let [least, largest] = DETECTION_MS.map(Duration::from_millis);
    detection_time.clamp(least, largest) / 5
}

/// Shortest interval of probes.
const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(20);

fn limit_error(time: Duration, limits_ms: [u64; 2]) -> Option<String> {
    let [least, largest] = limits_ms.map(Duration::from_millis);
    let is_valid = (least..=largest).contains(&time);
    (!is_valid).then(|| format!("{time} is not between {least} and {largest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_the_remedy_is_permitted() {
        assert_eq!(probe_interval_max(Duration::from_millis(500)), Duration::from_millis(100));
        for detection_time in DETECTION_MS.map(Duration::from_millis) {
            let interval = probe_interval_max(detection_time);
            assert_eq!(probe_interval_error(interval, detection_time), None);
        }
    }
}
