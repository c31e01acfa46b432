//! Log-normal shadowing: attenuation that is constant within a coherence interval.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::Instant;

use super::LinkRandomStreams;

/// The attenuation of a line: one normal variable, in decibels, for each span and coherence
/// interval.
///
/// Intervals are counted from the start of the run, and each has its own random stream: the
/// attenuation at a time does not depend on the traffic before.
#[derive(Debug, Clone)]
pub(super) struct Shadowing {
    keys: scenario::Shadowing,
    random: LinkRandomStreams,
    /// The interval evaluated last, and whether its signal level is below the threshold.
    last: Option<(u64, bool)>,
}

impl Shadowing {
    /// Shadowing with its own random streams.
    pub(super) const fn new(keys: scenario::Shadowing, random: LinkRandomStreams) -> Self {
        Self { keys, random, last: None }
    }

    /// Whether the signal level on any span is below the receiver's threshold at `now`.
    pub(super) fn is_below(&mut self, now: Instant) -> bool {
        // Without a coherence time, one interval covers the whole run.
        let interval =
            self.keys.coherence.map_or(0, |time| now.as_nanos() / time.as_nanos().max(1));
        if let Some((last, is_below)) = self.last
            && last == interval
        {
            return is_below;
        }
        let margin = self.keys.margin.as_decibels();
        let deviation = self.keys.deviation.as_decibels();
        let mut levels = self.random.numbered_stream("fading", interval);
        let is_below = (0..self.keys.spans).any(|_| margin + deviation * levels.normal() < 0.0);
        self.last = Some((interval, is_below));
        is_below
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::{Decibel, Duration};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn shadowing(margin: i32, deviation: i32, coherence_s: Option<u64>, spans: u32) -> Shadowing {
        let keys = scenario::Shadowing {
            margin: Decibel::from_thousandths(margin),
            deviation: Decibel::from_thousandths(deviation),
            coherence: coherence_s.map(Duration::from_secs),
            spans,
        };
        Shadowing::new(keys, LinkRandomStreams::named(5, 0, "line.forward", 0))
    }

    /// Whether the signal level is below the threshold in each of `count` intervals of one second.
    fn intervals(shadowing: &mut Shadowing, count: u64) -> Vec<bool> {
        (0..count).map(|k| shadowing.is_below(Instant::from_nanos(k * SECOND))).collect()
    }

    #[test]
    fn the_share_of_intervals_below_the_threshold_is_the_normal_tail() {
        // Q(x): Abramowitz and Stegun 1964, table 26.1. With n spans: 1 - (1 - Q)^n.
        let cases = [
            (10_000, 4_000, 1, 0.006_210),
            (4_000, 4_000, 1, 0.158_655),
            (0, 4_000, 1, 0.5),
            (-4_000, 4_000, 1, 0.841_345),
            (10_000, 4_000, 13, 0.077_785),
        ];
        let count = 100_000;
        for (margin, deviation, spans, expected) in cases {
            let mut shadowing = shadowing(margin, deviation, Some(1), spans);
            let below =
                intervals(&mut shadowing, count).into_iter().filter(|is| *is).count() as f64;
            let deviation = (count as f64 * expected * (1.0 - expected)).sqrt();
            let error = below - count as f64 * expected;
            assert!(error.abs() < 4.0 * deviation, "{margin} {spans}: {error} of {deviation}");
        }
    }

    #[test]
    fn without_deviation_the_sign_of_the_margin_decides() {
        assert!(!intervals(&mut shadowing(0, 0, Some(1), 1), 100).contains(&true));
        assert!(!intervals(&mut shadowing(-1, 0, Some(1), 1), 100).contains(&false));
    }

    #[test]
    fn the_process_does_not_depend_on_the_sampling() {
        let all = intervals(&mut shadowing(2_000, 4_000, Some(1), 2), 400);
        let mut seldom = shadowing(2_000, 4_000, Some(1), 2);
        for k in (0..400).step_by(7) {
            // At any offset within the interval, and repeatedly.
            for offset in [0, SECOND / 2, SECOND - 1] {
                let now = Instant::from_nanos(k * SECOND + offset);
                assert_eq!(seldom.is_below(now), all[k as usize], "{k}");
            }
        }
    }

    #[test]
    fn without_coherence_a_run_has_one_level() {
        let level = |replication| {
            let mut shadowing = shadowing(0, 4_000, None, 1);
            shadowing.random = LinkRandomStreams::named(5, replication, "line.forward", 0);
            let samples = intervals(&mut shadowing, 50);
            assert!(samples.iter().all(|is_below| *is_below == samples[0]));
            samples[0]
        };
        let below = (0..400).filter(|replication| level(*replication)).count();
        assert!(below.abs_diff(200) < 40, "{below}");
    }
}
