//! Bandwidth probing: a cycle of eight gains, each for about the minimum RTT (section 4.3.4).

use gridhaul_scenario::units::{Duration, Instant};

/// Section 4.3.4.2: up by a quarter to probe, down by a quarter to drain, six phases to cruise.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The phase of the cycle.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeBw {
    /// `BBR.cycle_index`.
    phase: usize,
    /// `BBR.cycle_stamp`.
    since: Instant,
}

/// Conditions for the end of a phase. Sizes in bytes.
pub(super) struct CycleConditions {
    pub now: Instant,
    /// The pacing gain in use.
    pub gain: f64,
    pub min_rtt: Duration,
    /// Whether the acknowledgement detected losses.
    pub lost: bool,
    pub prior_in_flight: f64,
    /// `BBRInflight` at that gain, and at 1.
    pub at_gain: f64,
    pub at_one: f64,
}

impl ProbeBw {
    /// Section 4.3.4.3, `BBREnterProbeBW`: any phase but the draining phase may be the first, as
    /// there is no queue to drain. The draft chooses it at random; here it is derived from the
    /// time, so that runs are reproducible.
    pub(super) fn enter(now: Instant) -> Self {
        let choice = (mix64(now.as_nanos()) % 7) as usize;
        let phase = if choice == 0 { 0 } else { choice + 1 };
        Self { phase, since: now }
    }

    /// At the start of a phase that began at time zero.
    #[cfg(test)]
    pub(super) const fn at_phase(phase: usize) -> Self {
        Self { phase, since: Instant::ZERO }
    }

    #[inline]
    pub(super) const fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// `BBRIsNextCyclePhase` and `BBRAdvanceCyclePhase`.
    #[inline]
    pub(super) fn next(self, conditions: &CycleConditions) -> Self {
        let full_length = conditions.now.since(self.since) > conditions.min_rtt;
        let gain = conditions.gain;
        let over = if gain > 1.0 {
            // Until the data in flight reaches the target of the gain, or losses occur.
            full_length && (conditions.lost || conditions.prior_in_flight >= conditions.at_gain)
        } else if gain < 1.0 {
            full_length || conditions.prior_in_flight <= conditions.at_one
        } else {
            full_length
        };
        if over {
            Self { phase: (self.phase + 1) % GAINS.len(), since: conditions.now }
        } else {
            self
        }
    }
}

/// A hash of 64 bits by odd multiplications and shifts (Steele, Lea and Flood, "Fast splittable
/// pseudorandom number generators", 2014: the finaliser of SplitMix64).
const fn mix64(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_first_phases_except_drain_are_equally_frequent() {
        let mut counts = [0; 8];
        for ms in 0..7000 {
            counts[ProbeBw::enter(Instant::from_nanos(ms * 1_000_000)).phase] += 1;
        }
        assert_eq!(counts[1], 0);
        for (phase, &count) in counts.iter().enumerate().filter(|&(phase, _)| phase != 1) {
            assert!((900..1100).contains(&count), "phase {phase}: {count} of 7000");
        }
    }

    #[test]
    fn the_first_phase_is_reproducible() {
        let now = Instant::from_nanos(1_234_567_890);
        assert_eq!(ProbeBw::enter(now).phase, ProbeBw::enter(now).phase);
    }

    /// The first numbers of SplitMix64 with the seed 1234567.
    #[test]
    fn the_hash_is_that_of_split_mix() {
        let output = |step: u64| mix64(1_234_567 + step.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973];
        assert_eq!([output(1), output(2)], expected);
    }
}
