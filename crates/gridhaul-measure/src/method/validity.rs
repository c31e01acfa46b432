//! Whether the lateness of the generator could explain a result.

use std::fmt;

use gridhaul_scenario::units::Duration;

use super::summary::Summary;

/// Largest 98th percentile of the lateness, as a share of the median latency or of the interval
/// between messages.
const TOLERATED: f64 = 0.1;

/// Lateness that invalidates no latency, however small its median. The smallest limit of an
/// application class is 0.6 ms: this is a sixth of it, and no more than the time in which a
/// receiving thread wakes up.
const NEGLIGIBLE: Duration = Duration::from_micros(100);

/// A reason for which a part of the result is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Latency from the schedule contains lateness of the generator that is not small against it.
    LatencyFromSchedule {
        /// 98th percentile of the lateness.
        lateness: Duration,
        /// Median latency.
        median: Duration,
    },
    /// The messages did not leave at the intended intervals: the load was not the intended one.
    Load {
        /// 98th percentile of the lateness.
        lateness: Duration,
        /// Interval between messages.
        interval: Duration,
    },
}

/// The parts of a result that lateness of the generator could explain.
#[must_use]
pub fn findings(summary: &Summary) -> Vec<Finding> {
    let Some(lateness) = summary.lateness.quantile(0.98).map(|quantile| quantile.value) else {
        return Vec::new();
    };
    let exceeds = |limit: Duration| lateness > limit.mul_f64(TOLERATED);
    let median = summary.from_schedule.quantile(0.5).map(|quantile| quantile.value);
    let latency = median.filter(|median| exceeds(*median) && lateness > NEGLIGIBLE);
    let interval = summary.interval;
    latency
        .map(|median| Finding::LatencyFromSchedule { lateness, median })
        .into_iter()
        .chain(exceeds(interval).then_some(Finding::Load { lateness, interval }))
        .collect()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |duration: Duration| duration.as_secs_f64() * 1e3;
        match self {
            Self::LatencyFromSchedule { lateness, median } => write!(
                f,
                "the latency from the schedule is invalid: the generator was up to {:.3} ms late \
                 (98th percentile), more than \
                 10 % of the median latency of {:.3} ms",
                millis(*lateness),
                millis(*median)
            ),
            Self::Load { lateness, interval } => write!(
                f,
                "the load is invalid: the generator was up to {:.3} ms late (98th percentile), \
                 more than 10 % of the interval \
                 of {:.3} ms between messages",
                millis(*lateness),
                millis(*interval)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::method::{Message, Schedule};
    use gridhaul_scenario::units::Instant;

    /// Findings for messages at 100/s with the same latency and lateness.
    fn found(latency_millis: u64, lateness_micros: u64) -> Vec<Finding> {
        found_at(Duration::from_millis(latency_millis), lateness_micros)
    }

    fn found_at(latency: Duration, lateness_micros: u64) -> Vec<Finding> {
        let mut summary = Summary::new(&Schedule::new(100.0, 10));
        let sent = Instant::ZERO + Duration::from_micros(lateness_micros);
        summary.add(&Message {
            sequence: 0,
            intended: Instant::ZERO,
            sent: Some(sent),
            received: Some(Instant::ZERO + latency),
            copies: 1,
            corrupt_copies: 0,
            reordered: false,
            phase: crate::method::Phase::Measured,
            ..Message::default()
        });
        findings(&summary)
    }

    #[test]
    fn lateness_invalidates_what_it_could_explain() {
        assert_eq!(found(20, 900), []);
        assert!(matches!(found(5, 900)[..], [Finding::LatencyFromSchedule { .. }]));
        assert!(matches!(found(20, 1_100)[..], [Finding::Load { .. }]));
        assert_eq!(found(5, 1_100).len(), 2);
    }

    #[test]
    fn lateness_of_some_microseconds_invalidates_no_latency() {
        let micros = Duration::from_micros;
        // On the loopback device: 16 µs, of which 10 µs are the lateness.
        assert_eq!(found_at(micros(16), 10), []);
        assert_eq!(found_at(micros(16), 95), []);
        assert!(matches!(found_at(micros(500), 120)[..], [Finding::LatencyFromSchedule { .. }]));
    }
}
