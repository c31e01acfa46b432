//! Quality of a remote clock from exchanges with it, and whether one-way latencies are valid.

use std::fmt;

use gridhaul_scenario::units::{Duration, counted};

use super::{Bounds, Exchange, Synchronisation, segments};

/// Largest clock error, as a share of the median latency. Lateness of the generator is limited to
/// the same share.
const TOLERATED: f64 = 0.1;

/// Exchanges of the estimate of a whole run; of more, those with the least delay are used.
const EXCHANGES_MAX: usize = 10_000;

/// Quality of the times of a remote clock.
#[derive(Debug, Clone, PartialEq)]
pub struct ClockQuality {
    /// Number of exchanges.
    pub exchanges: usize,
    /// Least round-trip time of an exchange.
    pub min_round_trip: Duration,
    /// Largest error of a time stamp after conversion, for any asymmetry of the path; `None` if no
    /// time stamp was converted.
    pub error: Option<Duration>,
    /// Excess rate of the remote clock over the longest time without a step; `None` if the
    /// exchanges do not determine it.
    pub drift: Option<f64>,
    /// Bounds of the drift, infinite where the exchanges do not limit it.
    pub drift_bounds: Option<Bounds>,
    /// Steps of the clock, or changes of its rate: local time in nanoseconds and size in
    /// nanoseconds.
    pub steps: Vec<(i64, f64)>,
    /// Least step that the exchanges show.
    pub detectable_step: Duration,
    /// Messages next to a step, whose time of arrival is unknown.
    pub unknown: u64,
    /// Messages that arrived before they were sent, by the latest time that the exchanges permit.
    pub impossible: u64,
}

/// Why one-way latencies are not reported.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Unsupported {
    /// The error is not small against the median latency.
    Error {
        /// Largest error.
        error: Duration,
        /// Median of the one-way latency, which is not reported.
        median: Duration,
    },
    /// Messages arrived before they were sent: the clocks behave in a way that the estimate does
    /// not cover.
    Impossible(u64),
    /// No message arrived at a known time.
    NoTimes,
}

impl ClockQuality {
    /// The quality of the exchanges of a run. `error`, `unknown` and `impossible` are those of its
    /// messages. `None` of no exchanges.
    #[must_use]
    pub fn new(
        exchanges: &[Exchange],
        error: Option<Duration>,
        [unknown, impossible]: [u64; 2],
    ) -> Option<Self> {
        let best = least_delays(exchanges);
        let Synchronisation { segments: found, detectable_step, min_round_trip } = segments(&best)?;
        let longest = found.iter().max_by_key(|segment| segment.exchanges.len())?;
        let steps = found.windows(2).map(|pair| {
            let first = &best[pair[1].exchanges.start];
            let at = first.remote_received;
            (first.sent, pair[1].line.offset(at) - pair[0].line.offset(at))
        });
        Some(Self {
            exchanges: exchanges.len(),
            min_round_trip: duration(min_round_trip as f64),
            error,
            drift: longest.line.drift(),
            drift_bounds: longest.line.drift_bounds(),
            steps: steps.collect(),
            detectable_step: duration(detectable_step),
            unknown,
            impossible,
        })
    }

    /// Whether the clock error supports one-way latencies with this median: it is at most a tenth
    /// of the median, and no message arrived before it was sent.
    ///
    /// # Errors
    /// The reason why not.
    pub fn supports_one_way(&self, median: Option<Duration>) -> Result<(), Unsupported> {
        let (Some(error), Some(median)) = (self.error, median) else {
            return Err(Unsupported::NoTimes);
        };
        if self.impossible > 0 {
            Err(Unsupported::Impossible(self.impossible))
        } else if error > median.mul_f64(TOLERATED) {
            Err(Unsupported::Error { error, median })
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error { error, .. } => write!(
                f,
                "the clock error of up to {:.3} ms is more than 10 % of the median one-way latency",
                error.as_secs_f64() * 1e3
            ),
            Self::Impossible(messages) => write!(
                f,
                "{} arrived before the time of sending: a clock changes its rate faster than the \
                 exchanges follow",
                counted(*messages, "message")
            ),
            Self::NoTimes => f.write_str("no message arrived at a known time"),
        }
    }
}

/// The exchanges with the least delay of each group, at most [`EXCHANGES_MAX`].
fn least_delays(exchanges: &[Exchange]) -> Vec<Exchange> {
    let group = exchanges.len().div_ceil(EXCHANGES_MAX).max(1);
    let best =
        |group: &[Exchange]| group.iter().min_by_key(|exchange| exchange.round_trip()).copied();
    exchanges.chunks(group).filter_map(best).collect()
}

fn duration(nanos: f64) -> Duration {
    Duration::from_nanos(nanos.max(0.0) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::InjectedClock;

    const MS: i64 = 1_000_000;

    fn quality(clock: &InjectedClock, count: i64, error: Option<Duration>) -> ClockQuality {
        let exchange = |number: i64| {
            let sent = number * 50 * MS;
            let (arrived, answered) = (sent + 2 * MS, sent + 3 * MS);
            let (remote_received, remote_sent) = (clock.read(arrived), clock.read(answered));
            Exchange { sent, remote_received, remote_sent, received: answered + 2 * MS }
        };
        let exchanges: Vec<_> = (0..count).map(exchange).collect();
        ClockQuality::new(&exchanges, error, [0, 0]).unwrap()
    }

    #[test]
    fn drift_and_steps_of_a_run_are_reported() {
        let step = Some((12_000 * MS, 7 * MS));
        let clock = InjectedClock { offset: 900 * MS, drift: 30e-6, step };
        let found = quality(&clock, 600, None);
        let drift = found.drift.unwrap();
        assert!((drift - 30e-6).abs() < 2e-6, "{drift}");
        let [(at, size)] = found.steps[..] else { panic!("{:?}", found.steps) };
        assert!((at - 12_000 * MS).abs() < 100 * MS && (size - 7e6).abs() < 0.1e6, "{at} {size}");
        // The remote part of an exchange is read on a clock that is 30 ppm too fast.
        assert_eq!(found.min_round_trip, Duration::from_nanos(4 * MS as u64 - 30));
        // Of more exchanges than are needed, some are used; all are counted.
        assert_eq!(quality(&clock, 25_000, None).exchanges, 25_000);
    }

    #[test]
    fn the_error_decides_whether_one_way_latencies_are_reported() {
        let clock = InjectedClock { offset: 0, drift: 0.0, step: None };
        let found = quality(&clock, 50, Some(Duration::from_millis(2)));
        let supports = |millis| found.supports_one_way(Some(Duration::from_millis(millis)));
        assert_eq!(supports(20), Ok(()));
        let refused = supports(19).unwrap_err();
        assert!(matches!(refused, Unsupported::Error { .. }), "{refused:?}");
        assert!(refused.to_string().contains("2.000 ms"), "{refused}");
        assert_eq!(found.supports_one_way(None), Err(Unsupported::NoTimes));
        let impossible = ClockQuality { impossible: 3, ..found };
        let refused = impossible.supports_one_way(Some(Duration::from_secs(1)));
        assert_eq!(refused, Err(Unsupported::Impossible(3)));
    }
}
