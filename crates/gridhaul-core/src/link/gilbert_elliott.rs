//! Burst losses: the channel of Gilbert (1960) and Elliott (1963), with transitions in time or with
//! each packet.

use gridhaul_scenario::scenario::{self, ChannelTransitions};
use gridhaul_scenario::units::{Duration, Instant};

use crate::random::{RandomStream, Threshold};

/// A two-state Markov chain; each state has its own loss probability.
#[derive(Debug, Clone)]
pub(super) struct GilbertElliott {
    bad: bool,
    steps: Steps,
    loss_good: Threshold,
    loss_bad: Threshold,
    /// Additional delay in the bad state.
    delay_bad: Duration,
    /// State transitions and losses have separate streams: a changed loss does not change the
    /// states.
    transitions: RandomStream,
    losses: RandomStream,
}

/// The transitions between the states.
#[derive(Debug, Clone)]
enum Steps {
    /// A transition is possible before each packet.
    PerPacket { good_to_bad: Threshold, bad_to_good: Threshold },
    /// The states last for exponentially distributed times; the current one until `until`.
    InTime { mean_good: Duration, mean_bad: Duration, until: Instant },
}

/// Number of cycles of both states after which the states of an idle link are not followed one by
/// one.
const CYCLES_MAX: u64 = 5_000;

impl GilbertElliott {
    /// A channel that starts in its stationary state.
    pub(super) fn new(
        channel: &scenario::GilbertElliott,
        mut transitions: RandomStream,
        losses: RandomStream,
    ) -> Self {
        // The first random number decides with the weights of the states: with the probabilities of
        // a chain per packet, p / (p + r) (Elliott 1963).
        let draw = transitions.standard_uniform();
        let (bad, steps) = match channel.transitions() {
            ChannelTransitions::PerPacket { good_to_bad, bad_to_good } => {
                let (to_bad, to_good) = (good_to_bad.ratio(), bad_to_good.ratio());
                let (good_to_bad, bad_to_good) = (good_to_bad.into(), bad_to_good.into());
                // A chain without transitions stays good.
                let bad = draw * (to_bad + to_good) < to_bad;
                (bad, Steps::PerPacket { good_to_bad, bad_to_good })
            }
            ChannelTransitions::InTime { mean_good, mean_bad } => {
                let bad = draw < channel.bad_share();
                // The rest of an exponentially distributed time has the same distribution as the
                // whole.
                let rest = transitions.exponential(if bad { mean_bad } else { mean_good });
                (bad, Steps::InTime { mean_good, mean_bad, until: Instant::ZERO + rest })
            }
        };
        Self {
            bad,
            steps,
            loss_good: channel.loss_good.into(),
            loss_bad: channel.loss_bad.into(),
            delay_bad: channel.delay_bad,
            transitions,
            losses,
        }
    }

    /// Advances the chain to the packet whose transmission ends at `sent`, then decides whether the
    /// packet is lost. Calls must be in the order of transmissions.
    pub(super) fn loses(&mut self, sent: Instant) -> bool {
        match &mut self.steps {
            Steps::PerPacket { good_to_bad, bad_to_good } => {
                let leaves = if self.bad { *bad_to_good } else { *good_to_bad };
                self.bad ^= self.transitions.occurs(leaves);
            }
            // A transmission that never ends is not delivered anyway.
            Steps::InTime { .. } if sent == Instant::NEVER => {}
            Steps::InTime { mean_good, mean_bad, until } => {
                if sent.since(*until) > (*mean_good + *mean_bad) * CYCLES_MAX {
                    // The state has become independent of the previous one.
                    let share = mean_bad.as_secs_f64() / (*mean_good + *mean_bad).as_secs_f64();
                    self.bad = self.transitions.standard_uniform() < share;
                    let mean = if self.bad { *mean_bad } else { *mean_good };
                    *until = sent + self.transitions.exponential(mean).max(Duration::from_nanos(1));
                }
                while *until <= sent {
                    self.bad = !self.bad;
                    let mean = if self.bad { *mean_bad } else { *mean_good };
                    // At least a nanosecond, so that the loop ends.
                    *until += self.transitions.exponential(mean).max(Duration::from_nanos(1));
                }
            }
        }
        let loss = if self.bad { self.loss_bad } else { self.loss_good };
        self.losses.occurs(loss)
    }

    /// Additional delay of the packet of the latest call of [`loses`](Self::loses).
    pub(super) const fn delay(&self) -> Duration {
        if self.bad { self.delay_bad } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::units::Probability;

    fn channel(to_bad: f64, to_good: f64, good: f64, bad: f64) -> GilbertElliott {
        let p = |ratio| Probability::new(ratio).unwrap();
        let channel = scenario::GilbertElliott {
            mean_good: None,
            mean_bad: None,
            good_to_bad: Some(p(to_bad)),
            bad_to_good: Some(p(to_good)),
            loss_good: p(good),
            loss_bad: p(bad),
            delay_bad: Duration::ZERO,
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
            let lost = (0..packets).filter(|_| channel.loses(Instant::ZERO)).count() as f64;
            let share = p / (p + r);
            let loss = (1.0 - share) * good + share * bad;
            // Burst losses vary more than independent ones: the autocorrelation of the state after
            // k packets is (1 - p - r)^k, which increases the binomial variance by at most this
            // factor.
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
            let now = channel.loses(Instant::ZERO);
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
        assert!((0..1000).all(|_| !channel.loses(Instant::ZERO)));
    }

    #[test]
    fn the_chain_starts_in_its_stationary_state() {
        // p = r = 0.01: half of the channels start in the bad state, and one packet changes little.
        let p = |ratio| Probability::new(ratio).unwrap();
        let keys = scenario::GilbertElliott {
            mean_good: None,
            mean_bad: None,
            good_to_bad: Some(p(0.01)),
            bad_to_good: Some(p(0.01)),
            loss_good: p(0.0),
            loss_bad: p(1.0),
            delay_bad: Duration::ZERO,
        };
        let first_lost = |seed| {
            let random = |purpose| RandomStream::named(seed, 0, "ge", 0, purpose);
            GilbertElliott::new(&keys, random("state"), random("loss")).loses(Instant::ZERO)
        };
        let lost = (0..1_000).filter(|seed| first_lost(*seed)).count();
        // Four standard deviations of 16.
        assert!((436..=564).contains(&lost), "{lost} of 1000");
    }

    fn in_time(
        good_ms: u64,
        bad_ms: u64,
        loss_good: f64,
        loss_bad: f64,
        seed: u64,
    ) -> GilbertElliott {
        let mean = |ms| Some(Duration::from_millis(ms));
        let channel = scenario::GilbertElliott {
            mean_good: mean(good_ms),
            mean_bad: mean(bad_ms),
            good_to_bad: None,
            bad_to_good: None,
            loss_good: Probability::new(loss_good).unwrap(),
            loss_bad: Probability::new(loss_bad).unwrap(),
            delay_bad: Duration::ZERO,
        };
        let random = |purpose| RandomStream::named(seed, 0, "ge", 0, purpose);
        GilbertElliott::new(&channel, random("state"), random("loss"))
    }

    /// Whether each of `count` packets with this interval is lost.
    fn lost(channel: &mut GilbertElliott, every_us: u64, count: u64) -> Vec<bool> {
        let at = |packet| Instant::ZERO + Duration::from_micros(packet * every_us);
        (0..count).map(|packet| channel.loses(at(packet))).collect()
    }

    #[test]
    fn in_time_the_long_run_loss_is_the_stationary_one_for_all_packet_rates() {
        for every_us in [1_000, 20_000, 500_000] {
            for (good, bad, loss_good, loss_bad) in [(1_000, 200, 0.0, 1.0), (300, 700, 0.05, 0.6)]
            {
                let count = 200_000_000 / every_us.min(2_000);
                let mut channel = in_time(good, bad, loss_good, loss_bad, 3);
                let found =
                    lost(&mut channel, every_us, count).iter().filter(|is_lost| **is_lost).count()
                        as f64;
                let share = bad as f64 / (good + bad) as f64;
                let loss = share * loss_bad + (1.0 - share) * loss_good;
                // The correlation of the states decreases with the rate 1/g + 1/b.
                let rate = 1.0 / good as f64 + 1.0 / bad as f64;
                let correlation = (-rate * every_us as f64 / 1e3).exp();
                let factor = (1.0 + correlation) / (1.0 - correlation);
                let deviation = (loss * (1.0 - loss) * factor / count as f64).sqrt();
                let error = found / count as f64 - loss;
                assert!(
                    error.abs() < 4.0 * deviation,
                    "{every_us} {good} {bad}: {error} {deviation}"
                );
            }
        }
    }

    #[test]
    fn in_time_bursts_do_not_depend_on_the_packet_rate() {
        // 200 ms on average, observed every 1 ms and every 10 ms: the same bursts, apart from those
        // between packets.
        let mut channels = [in_time(2_000, 200, 0.0, 1.0, 8), in_time(2_000, 200, 0.0, 1.0, 8)];
        let often = lost(&mut channels[0], 1_000, 2_000_000);
        let seldom = lost(&mut channels[1], 10_000, 200_000);
        let sampled: Vec<bool> = often.iter().step_by(10).copied().collect();
        assert_eq!(sampled, seldom);
        let mean_ms = |lost: &[bool], every_ms: f64| {
            let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
            lost.iter().filter(|lost| **lost).count() as f64 * every_ms / bursts
        };
        let (short, long) = (mean_ms(&often, 1.0), mean_ms(&seldom, 10.0));
        // About 900 bursts: four standard deviations are 13 %. Packets spaced by 10 ms miss bursts
        // below 10 ms.
        assert!((short / 200.0 - 1.0).abs() < 0.13, "{short}");
        assert!((long / short - 1.0).abs() < 0.06, "{short} {long}");
    }

    #[test]
    fn in_time_an_idle_link_forgets_its_state() {
        // Hourly packets and bursts of 36 packets in the form per packet; here a burst of 200 ms
        // concerns one at most.
        let mut channel = in_time(1_800, 200, 0.0, 1.0, 5);
        let hour = 3_600_000_000;
        let lost = lost(&mut channel, hour, 10_000);
        let both = lost.windows(2).filter(|pair| pair[0] && pair[1]).count() as f64;
        // Independent losses of 10 %: 1 % of the pairs, with a standard deviation of 10 of 10,000.
        assert!((both - 100.0).abs() < 45.0, "{both}");
        assert!(!channel.loses(Instant::NEVER) || channel.bad);
    }

    #[test]
    fn in_time_the_channel_starts_in_its_stationary_state() {
        let first = |seed| in_time(1_000, 1_000, 0.0, 1.0, seed).loses(Instant::ZERO);
        let lost = (0..1_000).filter(|seed| first(*seed)).count();
        // Four standard deviations of 16.
        assert!((436..=564).contains(&lost), "{lost} of 1000");
    }
}
