//! Burst losses: the channel of Gilbert (1960) and Elliott (1963).

use gridhaul_scenario::scenario;

use crate::random::{RandomStream, Threshold};

/// A two-state Markov chain with one transition before each packet; each state has its own loss probability.
#[derive(Debug, Clone)]
pub(super) struct GilbertElliott {
    bad: bool,
    good_to_bad: Threshold,
    bad_to_good: Threshold,
    loss_good: Threshold,
    loss_bad: Threshold,
    /// State transitions and losses have separate streams: a changed loss does not change the states.
    transitions: RandomStream,
    losses: RandomStream,
}

impl GilbertElliott {
    /// A channel that starts in its stationary state.
    pub(super) fn new(
        channel: &scenario::GilbertElliott,
        mut transitions: RandomStream,
        losses: RandomStream,
    ) -> Self {
        let (to_bad, to_good) = (channel.good_to_bad.ratio(), channel.bad_to_good.ratio());
        // Stationary probability of the bad state: p / (p + r) (Elliott 1963). A chain without
        // transitions stays good.
        let bad = transitions.standard_uniform() * (to_bad + to_good) < to_bad;
        Self {
            bad,
            good_to_bad: channel.good_to_bad.into(),
            bad_to_good: channel.bad_to_good.into(),
            loss_good: channel.loss_good.into(),
            loss_bad: channel.loss_bad.into(),
            transitions,
            losses,
        }
    }

    /// Advances the chain, then decides whether the packet is lost.
    pub(super) fn loses(&mut self) -> bool {
        let leaves = if self.bad { self.bad_to_good } else { self.good_to_bad };
        self.bad ^= self.transitions.occurs(leaves);
        let loss = if self.bad { self.loss_bad } else { self.loss_good };
        self.losses.occurs(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Probability;

    fn channel(to_bad: f64, to_good: f64, good: f64, bad: f64) -> GilbertElliott {
        let p = |ratio| Probability::new(ratio).unwrap();
        let channel = scenario::GilbertElliott {
            good_to_bad: p(to_bad),
            bad_to_good: p(to_good),
            loss_good: p(good),
            loss_bad: p(bad),
        };
        let random = |purpose| RandomStream::named(11, 0, "ge", 0, purpose);
        GilbertElliott::new(&channel, random("state"), random("loss"))
    }

    #[test]
    fn the_long_run_loss_is_the_stationary_one() {
        for (p, r, good, bad) in
            [(0.01, 0.2, 0.0, 1.0), (0.05, 0.05, 0.01, 0.5), (0.9, 0.9, 0.0, 1.0)]
        {
            let packets = 400_000;
            let mut channel = channel(p, r, good, bad);
            let lost = (0..packets).filter(|_| channel.loses()).count() as f64;
            let share = p / (p + r);
            let loss = (1.0 - share) * good + share * bad;
            // Burst losses vary more than independent ones: the autocorrelation of the state after k packets
            // is (1 - p - r)^k, which increases the binomial variance by at most this factor.
            let correlation = 1.0 - p - r;
            let variance_factor = ((1.0 + correlation) / (1.0 - correlation)).max(1.0);
            let deviation = (f64::from(packets) * loss * (1.0 - loss) * variance_factor).sqrt();
            let error = lost - f64::from(packets) * loss;
            assert!(error.abs() < 4.0 * deviation, "{p} {r}: {error} against {deviation}");
        }
    }

    #[test]
    fn the_mean_burst_length_is_the_reciprocal_of_the_bad_to_good_probability() {
        let mut channel = channel(0.01, 0.25, 0.0, 1.0);
        let (mut lost, mut bursts, mut before) = (0_u32, 0_u32, false);
        for _ in 0..400_000 {
            let now = channel.loses();
            lost += u32::from(now);
            bursts += u32::from(now && !before);
            before = now;
        }
        let mean = f64::from(lost) / f64::from(bursts);
        assert!((mean - 4.0).abs() < 0.15, "{mean}");
    }

    #[test]
    fn a_chain_without_transitions_stays_good() {
        let mut channel = channel(0.0, 0.0, 0.0, 1.0);
        assert!((0..1000).all(|_| !channel.loses()));
    }

    #[test]
    fn the_chain_starts_in_its_stationary_state() {
        // p = r = 0.01: half of the channels start in the bad state, and one packet changes little.
        let p = |ratio| Probability::new(ratio).unwrap();
        let keys = scenario::GilbertElliott {
            good_to_bad: p(0.01),
            bad_to_good: p(0.01),
            loss_good: p(0.0),
            loss_bad: p(1.0),
        };
        let first_lost = |seed| {
            let random = |purpose| RandomStream::named(seed, 0, "ge", 0, purpose);
            GilbertElliott::new(&keys, random("state"), random("loss")).loses()
        };
        let lost = (0..1_000).filter(|seed| first_lost(*seed)).count();
        // Four standard deviations of 16.
        assert!((436..=564).contains(&lost), "{lost} of 1000");
    }
}
