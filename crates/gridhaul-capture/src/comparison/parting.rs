//! The time at which the sequence curves of a capture and of its simulation part.

use serde::Serialize;

use super::reason;
use super::side::Side;
use super::track::Track;

/// Where the acknowledged bytes of a capture and of its simulation differ for the first time by
/// more than the tolerance.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parting {
    /// Time since the first segment of the capture in s.
    pub at_s: f64,
    /// Time from which on the difference has grown.
    pub since_s: f64,
    /// The one with fewer acknowledged bytes.
    pub behind: Side,
    /// Difference of the acknowledged bytes.
    pub by_byte: f64,
    /// The likely reason in plain words, if the waits of the sender show one.
    pub reason: Option<String>,
}

/// Permitted difference.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tolerance {
    pub(super) bytes: f64,
    pub(super) time_s: f64,
}

/// Finds the first time at which one of the two lacks more than the permitted bytes, also after the
/// permitted time.
pub(super) fn find(measured: &Track, simulated: &Track, tolerance: &Tolerance) -> Option<Parting> {
    let mut times: Vec<f64> =
        measured.points().iter().chain(simulated.points()).map(|point| point.time_s).collect();
    times.sort_by(f64::total_cmp);
    let lacking = |behind: &Track, ahead: &Track, time_s: f64| {
        ahead.bytes_at(time_s) - behind.bytes_at(time_s + tolerance.time_s)
    };
    let excess = |time_s: f64| {
        let by_measured = lacking(measured, simulated, time_s);
        let by_simulated = lacking(simulated, measured, time_s);
        if by_measured > by_simulated {
            (Side::Measured, by_measured)
        } else {
            (Side::Simulated, by_simulated)
        }
    };
    let index = times.iter().position(|&time_s| excess(time_s).1 > tolerance.bytes)?;
    let (side, by_byte) = excess(times[index]);
    // The difference has grown since it was a quarter of the tolerance.
    let since = times[..index].iter().rposition(|&time_s| {
        let (other, bytes) = excess(time_s);
        other != side || bytes <= tolerance.bytes / 4.0
    });
    let since_s = times[since.unwrap_or(0)];
    let at_s = times[index];
    let (behind, ahead) = match side {
        Side::Measured => (measured, simulated),
        Side::Simulated => (simulated, measured),
    };
    let reason = reason::likely(side, behind, ahead, &reason::Span { since_s, at_s });
    Some(Parting { at_s, since_s, behind: side, by_byte, reason })
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::{Duration, Instant};

    use super::*;
    use crate::Limit;
    use crate::connection::{Checkpoint, History};

    /// An acknowledgement of 1 kB each 10 ms, with a pause for a limit after some of them.
    fn track(count: u64, pause: Option<(u64, Limit, Duration)>) -> Track {
        let mut history = History::default();
        history.begin(Instant::ZERO, 0);
        let mut at = Instant::ZERO;
        let mut limits = [Duration::ZERO; Limit::ALL.len()];
        for number in 1..=count {
            at += Duration::from_millis(10);
            if let Some((after, limit, time)) = pause
                && number == after
            {
                at += time;
                limits[limit as usize] += time;
            }
            let checkpoint = Checkpoint { at, bytes: 0, retransmissions: 0, limits };
            history.add(1_000 * number, checkpoint);
        }
        Track::new(&history, Instant::ZERO).unwrap()
    }

    const TOLERANCE: Tolerance = Tolerance { bytes: 10_000.0, time_s: 0.04 };

    #[test]
    fn equal_curves_and_those_within_the_tolerance_do_not_part() {
        let whole = track(100, None);
        assert_eq!(find(&whole, &whole, &TOLERANCE), None);
        // A pause of 90 ms is 9 kB, of which 40 ms are permitted.
        let late = track(100, Some((50, Limit::Application, Duration::from_millis(90))));
        assert_eq!(find(&whole, &late, &TOLERANCE), None);
    }

    #[test]
    fn curves_part_when_the_tolerance_is_exceeded_and_the_longer_wait_is_the_reason() {
        let whole = track(200, None);
        let late = track(200, Some((50, Limit::Timeout, Duration::from_secs(1))));
        let parting = find(&late, &whole, &TOLERANCE).unwrap();
        assert_eq!(parting.behind, Side::Measured);
        // The pause begins at 0.49 s; 10 kB more are acknowledged after 0.1 s, and 0.04 s may pass.
        assert!((0.58..0.68).contains(&parting.at_s), "{parting:?}");
        assert!((0.40..0.60).contains(&parting.since_s), "{parting:?}");
        let reason = parting.reason.unwrap();
        assert!(reason.contains("the capture waits 1.00 s longer"), "{reason}");
        assert!(reason.contains("retransmission timeouts"), "{reason}");
        let other = find(&whole, &late, &TOLERANCE).unwrap();
        assert_eq!((other.behind, other.at_s), (Side::Simulated, parting.at_s));
    }

    #[test]
    fn a_curve_that_ends_early_has_no_further_acknowledgement() {
        let parting = find(&track(50, None), &track(200, None), &TOLERANCE).unwrap();
        let reason = parting.reason.unwrap();
        assert!(reason.contains("no further data is acknowledged in the capture"), "{reason}");
    }
}
