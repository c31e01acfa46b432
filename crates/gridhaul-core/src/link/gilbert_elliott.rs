//! Loss in bursts: the channel of Gilbert (1960) and Elliott (1963).

use gridhaul_scenario::scenario;

use crate::random::{RandomStream, Threshold};

/// A two-state Markov chain that moves once before each packet; each state has a loss of its own.
#[derive(Debug, Clone)]
pub(super) struct GilbertElliott {
    bad: bool,
    good_to_bad: Threshold,
    bad_to_good: Threshold,
    loss_good: Threshold,
    loss_bad: Threshold,
    /// Moves of the chain, apart from the losses: changing a loss does not change the states.
    moves: RandomStream,
    losses: RandomStream,
}

impl GilbertElliott {
    /// A channel that starts in its stationary state.
    pub(super) fn new(
        channel: &scenario::GilbertElliott,
        mut moves: RandomStream,
        losses: RandomStream,
    ) -> Self {
        let (to_bad, to_good) = (channel.good_to_bad.ratio(), channel.bad_to_good.ratio());
        // Stationary probability of the bad state: p / (p + r) (Elliott 1963). A chain that
        // never moves stays good.
        let bad = moves.standard_uniform() * (to_bad + to_good) < to_bad;
        Self {
            bad,
            good_to_bad: channel.good_to_bad.into(),
            bad_to_good: channel.bad_to_good.into(),
            loss_good: channel.loss_good.into(),
            loss_bad: channel.loss_bad.into(),
            moves,
            losses,
        }
    }

    /// Moves the chain, then decides about the packet.
    pub(super) fn loses(&mut self) -> bool {
        let leaves = if self.bad { self.bad_to_good } else { self.good_to_bad };
        self.bad ^= self.moves.occurs(leaves);
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
    fn long_runs_lose_the_stationary_share() {
        for (p, r, good, bad) in
            [(0.01, 0.2, 0.0, 1.0), (0.05, 0.05, 0.01, 0.5), (0.9, 0.9, 0.0, 1.0)]
        {
            let packets = 400_000;
            let mut channel = channel(p, r, good, bad);
            let lost = (0..packets).filter(|_| channel.loses()).count() as f64;
            let share = p / (p + r);
            let loss = (1.0 - share) * good + share * bad;
            // Losses in bursts vary more than independent ones: the autocorrelation of the state
            // after k packets is (1 - p - r)^k, which stretches the binomial variance by at most
            // this factor.
            let memory = 1.0 - p - r;
            let stretch = ((1.0 + memory) / (1.0 - memory)).max(1.0);
            let deviation = (f64::from(packets) * loss * (1.0 - loss) * stretch).sqrt();
            let error = lost - f64::from(packets) * loss;
            assert!(error.abs() < 4.0 * deviation, "{p} {r}: {error} against {deviation}");
        }
    }

    #[test]
    fn mean_burst_is_one_over_the_way_back() {
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
    fn a_chain_that_never_moves_stays_good() {
        let mut channel = channel(0.0, 0.0, 0.0, 1.0);
        assert!((0..1000).all(|_| !channel.loses()));
    }

    #[test]
    fn it_begins_in_its_stationary_state() {
        // p = r = 0.01: half of the channels begin bad, and one packet changes little.
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
        // Four deviations of 16.
        assert!((436..=564).contains(&lost), "{lost} of 1000");
    }
}
