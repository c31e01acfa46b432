//! Impulsive noise: bursts in time, independent of the traffic.

use gridhaul_scenario::scenario::{self, NoiseTiming};
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRandomStreams;
use crate::random::{BernoulliTrial, RandomStream};

/// All noise sources of a direction.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    sources: Vec<Source>,
}

/// One noise source.
#[derive(Debug, Clone)]
struct Source {
    bursts: Bursts,
    /// One trial for each burst that overlaps a packet, until one destroys the packet.
    loss: BernoulliTrial,
}

/// The burst process of one noise source.
#[derive(Debug, Clone)]
struct Bursts {
    /// The current burst, from `begin` (included) to `end` (excluded).
    begin: Instant,
    end: Instant,
    length: Duration,
    gap: Duration,
    timing: NoiseTiming,
    random: RandomStream,
}

impl Noise {
    /// The noise sources, each with its own random streams.
    pub(super) fn new(keys: &[scenario::Noise], random: LinkRandomStreams) -> Self {
        let source = |(number, keys): (u64, &scenario::Noise)| Source {
            bursts: Bursts::new(keys, random.numbered_stream("noise", number)),
            loss: BernoulliTrial::new(keys.loss, random.numbered_stream("noise loss", number)),
        };
        Self { sources: (0..).zip(keys).map(source).collect() }
    }

    /// Whether noise destroys a packet transmitted from `started` to `sent`. Calls must be in the
    /// order of transmissions.
    pub(super) fn destroys(&mut self, started: Instant, sent: Instant) -> bool {
        // All sources are evaluated, so that their random numbers do not depend on each other.
        self.sources.iter_mut().fold(false, |lost, source| source.destroys(started, sent) | lost)
    }
}

impl Source {
    fn destroys(&mut self, started: Instant, sent: Instant) -> bool {
        // A transmission that never ends is not delivered anyway.
        if sent == Instant::NEVER {
            return false;
        }
        self.bursts.skip_to(started);
        // A transmission of zero duration is destroyed by a burst that covers its instant.
        let until = sent.max(started + Duration::from_nanos(1));
        while self.bursts.begin < until {
            if self.loss.sample() {
                return true;
            }
            if self.bursts.end >= until {
                return false;
            }
            self.bursts.advance();
        }
        false
    }
}

impl Bursts {
    /// The process in its stationary state.
    fn new(keys: &scenario::Noise, mut random: RandomStream) -> Self {
        let scenario::Noise { length, gap, timing, .. } = *keys;
        let cycle = length + gap;
        let (begin, end) = match timing {
            NoiseTiming::Random => {
                // The process is in a burst with this probability, and the residual time of an
                // exponential burst or gap has the same distribution as the whole.
                let share = length.as_nanos() as f64 / cycle.as_nanos() as f64;
                let is_on = random.standard_uniform() < share;
                let wait = if is_on { Duration::ZERO } else { random.exponential(gap) };
                let begin = Instant::ZERO + wait;
                (begin, begin + random.exponential(length))
            }
            NoiseTiming::Periodic => {
                let phase = Duration::from_nanos(random.below(cycle.as_nanos()));
                match phase < length {
                    // A burst is in progress.
                    true => (Instant::ZERO, Instant::ZERO + (length - phase)),
                    false => {
                        let begin = Instant::ZERO + (cycle - phase);
                        (begin, begin + length)
                    }
                }
            }
        };
        Self { begin, end, length, gap, timing, random }
    }

    /// Advances to the next burst.
    fn advance(&mut self) {
        let (gap, length) = match self.timing {
            NoiseTiming::Random => {
                (self.random.exponential(self.gap), self.random.exponential(self.length))
            }
            NoiseTiming::Periodic => (self.gap, self.length),
        };
        self.begin = self.end + gap;
        self.end = self.begin + length;
    }

    /// Advances to the first burst that ends after `now`.
    fn skip_to(&mut self, now: Instant) {
        if self.timing == NoiseTiming::Periodic && self.end <= now {
            let cycle = self.length + self.gap;
            self.end += cycle * (now.since(self.end).as_nanos() / cycle.as_nanos());
            self.begin = Instant::ZERO + self.end.since(Instant::ZERO + self.length);
        }
        while self.end <= now {
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Probability;

    use super::*;

    const US: u64 = 1_000;

    fn keys(length_us: u64, gap_us: u64, loss: f64, timing: NoiseTiming) -> scenario::Noise {
        let (length, gap) = (Duration::from_micros(length_us), Duration::from_micros(gap_us));
        scenario::Noise { length, gap, loss: Probability::new(loss).unwrap(), timing }
    }

    fn noise(keys: &[scenario::Noise], seed: u64) -> Noise {
        Noise::new(keys, LinkRandomStreams::named(seed, 0, "line.forward", 0))
    }

    /// Whether each of `count` packets of this length is destroyed, with one transmission per step.
    fn destroyed(noise: &mut Noise, step_us: u64, length_us: u64, count: u64) -> Vec<bool> {
        let at = |us: u64| Instant::from_nanos(us * US);
        let sent = |k| (at(k * step_us), at(k * step_us + length_us));
        (0..count).map(sent).map(|(started, end)| noise.destroys(started, end)).collect()
    }

    fn share(lost: &[bool]) -> f64 {
        lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
    }

    #[test]
    fn the_loss_by_random_bursts_matches_the_formula() {
        // Probability of an overlap: 1 - g / (g + l) exp(-T / g). Packets are so far apart that
        // they are nearly independent.
        for (length, gap, packet) in [(100, 1_000, 1), (100, 1_000, 500), (1_000, 4_000, 3_000)] {
            let mut noise = noise(&[keys(length, gap, 1.0, NoiseTiming::Random)], 3);
            let lost = destroyed(&mut noise, 20_000, packet, 40_000);
            let [l, g, t] = [length, gap, packet].map(|us| us as f64);
            let expected = 1.0 - g / (g + l) * (-t / g).exp();
            let deviation = (expected * (1.0 - expected) / 40_000.0).sqrt();
            let error = share(&lost) - expected;
            assert!(error.abs() < 4.0 * deviation, "{length} {gap} {packet}: {error}");
        }
    }

    #[test]
    fn the_loss_by_periodic_bursts_matches_the_formula() {
        // Bursts of 1 ms every 10 ms. A packet of length T overlaps (T + 1 ms) / 10 ms bursts on
        // average, rounded up or down, and survives each with probability 1/2. Steps of 9.37 ms
        // (mod 10 ms) cover all phases evenly.
        for (packet, expected) in
            [(2_000, 0.3 * 0.5), (9_000, 0.5), (12_000, 0.7 * 0.5 + 0.3 * 0.75)]
        {
            let mut noise = noise(&[keys(1_000, 9_000, 0.5, NoiseTiming::Periodic)], 4);
            let lost = destroyed(&mut noise, 29_370, packet, 40_000);
            let deviation = (expected * (1.0 - expected) / 40_000.0_f64).sqrt();
            let error = share(&lost) - expected;
            assert!(error.abs() < 4.0 * deviation, "{packet}: {error}");
        }
    }

    #[test]
    fn burst_lengths_do_not_depend_on_the_packet_rate() {
        // Short packets at two rates sample the same noise: bursts of 10 ms, gaps of 40 ms on
        // average.
        let runs = |step: u64| {
            let mut noise = noise(&[keys(10_000, 40_000, 1.0, NoiseTiming::Random)], 9);
            let lost = destroyed(&mut noise, step, 1, 200_000_000 / step);
            let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            let time = lost.iter().filter(|lost| **lost).count() as f64 * step as f64;
            (lost, time / bursts)
        };
        let (often, long) = runs(100);
        let (seldom, longer) = runs(500);
        assert!((long / 10_000.0 - 1.0).abs() < 0.05, "{long}");
        // Packets spaced by 0.5 ms miss the shortest bursts: of an exponential length, 5 % at most.
        assert!((longer / long - 1.0).abs() < 0.06, "{long} and {longer}");
        // Both runs sample the same bursts.
        let sampled: Vec<bool> = often.iter().step_by(5).copied().collect();
        assert_eq!(sampled, seldom);
    }

    #[test]
    fn a_burst_includes_its_start_and_excludes_its_end() {
        let mut noise = noise(&[keys(30, 70, 1.0, NoiseTiming::Periodic)], 1);
        let begin = noise.sources[0].bursts.begin.as_nanos();
        let (length, cycle) = (30 * US, 100 * US);
        let begin = if noise.sources[0].bursts.end.as_nanos() - begin < length { 0 } else { begin };
        let end = noise.sources[0].bursts.end.as_nanos();
        let at = Instant::from_nanos;
        if begin > 0 {
            assert!(!noise.destroys(at(begin - 5), at(begin)));
        }
        assert!(noise.destroys(at(begin), at(begin + 1)));
        assert!(noise.destroys(at(end - 1), at(end + 5)));
        assert!(!noise.destroys(at(end), at(end)));
        // Many cycles later, and across a whole burst.
        let later = 1_000_000 * cycle;
        assert!(!noise.destroys(at(later + end - length - 5), at(later + end - length)));
        assert!(noise.destroys(at(later + end - length - 5), at(later + end + 5)));
        assert!(!noise.destroys(at(later + end), at(later + end + 70 * US)));
        assert!(!noise.destroys(at(later + end + cycle), Instant::NEVER));
    }

    #[test]
    fn noise_sources_are_independent() {
        let random = keys(100, 2_000, 1.0, NoiseTiming::Random);
        let mains = keys(50, 9_950, 0.3, NoiseTiming::Periodic);
        let mut alone = noise(&[random], 6);
        let mut both = noise(&[random, mains], 6);
        let (alone, both) =
            (destroyed(&mut alone, 500, 200, 20_000), destroyed(&mut both, 500, 200, 20_000));
        assert!(alone.iter().zip(&both).all(|(alone, both)| *both || !*alone));
        assert!(share(&both) > share(&alone));
    }
}
