//! Long-term bandwidth: the rate of a policer (Linux; not in the draft). A token bucket accepts
//! more at first than in the long term. If losses are frequent in two intervals with the same rate,
//! that rate is used for a while and not exceeded. A full queue followed by many losses looks the
//! same.

use gridhaul_scenario::units::Instant;

use crate::tcp::rules::BbrRules;

/// `bbr_lt_intvl_min_rtts`: an interval lasts at least four round trips, and at most four times as
/// many.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 4 * MIN_ROUNDS;
/// `bbr_lt_loss_thresh`: bytes lost for each byte delivered.
const LOSS_THRESHOLD: f64 = 50.0 / 256.0;
/// `bbr_lt_bw_ratio` and `bbr_lt_bw_diff`: rates are equal if they differ by at most this share, or
/// by at most 4 kbit/s.
const MAX_RELATIVE_DIFFERENCE: f64 = 1.0 / 8.0;
const MAX_DIFFERENCE: f64 = 4000.0 / 8.0;
/// `bbr_lt_bw_max_rtts`: a rate is used for this number of round trips.
const RATE_VALID_ROUNDS: u32 = 48;

/// Progress of a connection: total bytes delivered and lost at a time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Progress {
    pub at: Instant,
    pub delivered: u64,
    pub lost: u64,
}

/// An acknowledgement or a timeout.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathEvent {
    pub progress: Progress,
    /// Losses were detected.
    pub lost: bool,
    /// A round trip starts.
    pub begins_round: bool,
    /// The sender was application-limited.
    pub app_limited: bool,
    /// The state is `ProbeBW`.
    pub probing: bool,
}

/// Detection of a policer. Rates in bytes per second.
#[derive(Debug, Clone)]
pub(super) struct LongTermBandwidth {
    phase: Phase,
    /// Round trips of the phase.
    rounds: u32,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    /// Waiting for the first loss.
    WaitingForLoss,
    /// Measuring an interval: its start, and the rate of the previous interval.
    Sampling(Progress, Option<f64>),
    /// A policer was detected, with this rate.
    UsingRate(f64),
}

impl LongTermBandwidth {
    pub(super) const fn new() -> Self {
        Self { phase: Phase::WaitingForLoss, rounds: 0 }
    }

    /// The rate of the policer, if one is detected.
    #[inline]
    pub(super) const fn rate(&self) -> Option<f64> {
        match self.phase {
            Phase::UsingRate(rate) => Some(rate),
            _ => None,
        }
    }

    /// Linux, `bbr_lt_bw_sampling`. Returns whether a rate has expired, so that probing restarts.
    pub(super) fn update(&mut self, event: &PathEvent) -> bool {
        if let Phase::UsingRate(_) = self.phase {
            self.rounds += u32::from(event.probing && event.begins_round);
            let over = self.rounds >= RATE_VALID_ROUNDS;
            if over {
                *self = Self::new();
            }
            return over;
        }
        if matches!(self.phase, Phase::WaitingForLoss) && event.lost {
            self.begin(event.progress, None);
        }
        if let Phase::Sampling(since, before) = self.phase {
            self.measure(event, since, before);
        }
        false
    }

    fn begin(&mut self, since: Progress, before: Option<f64>) {
        (self.phase, self.rounds) = (Phase::Sampling(since, before), 0);
    }

    fn measure(&mut self, event: &PathEvent, since: Progress, before: Option<f64>) {
        self.rounds += u32::from(event.begins_round && !event.app_limited);
        if event.app_limited || self.rounds > MAX_ROUNDS {
            *self = Self::new();
            return;
        }
        // An interval ends with a loss: before it, tokens may be left.
        if self.rounds < MIN_ROUNDS || !event.lost {
            return;
        }
        let Progress { at, delivered, lost } = event.progress;
        let delivered = (delivered - since.delivered) as f64;
        // After a timeout all data in flight counts as lost, although Linux may find some of it too
        // recent later.
        let lost = lost.saturating_sub(since.lost) as f64;
        let time = at.since(since.at).as_secs_f64();
        if delivered == 0.0 || lost < LOSS_THRESHOLD * delivered || time < 1e-3 {
            return;
        }
        let rate = delivered / time;
        match before {
            Some(before) if is_same(rate, before) => {
                (self.phase, self.rounds) = (Phase::UsingRate((rate + before) / 2.0), 0);
            }
            _ => self.begin(event.progress, Some(rate)),
        }
    }
}

fn is_same(rate: f64, before: f64) -> bool {
    let off = (rate - before).abs();
    off <= MAX_RELATIVE_DIFFERENCE * before || off * BbrRules::LINUX_PACING_MARGIN <= MAX_DIFFERENCE
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Round trips of 100 ms with these deliveries and losses; the losses of the first round are
    /// detected.
    fn after(rounds: impl IntoIterator<Item = (u64, u64)>) -> LongTermBandwidth {
        let mut term = LongTermBandwidth::new();
        let (mut delivered, mut all_lost) = (0, 0);
        for (index, (more, lost)) in (0..).zip(rounds) {
            delivered += more;
            all_lost += lost;
            let at = Instant::from_nanos(index * 100_000_000);
            let progress = Progress { at, delivered, lost: all_lost };
            let (lost, begins_round) = (lost > 0, true);
            term.update(&PathEvent {
                progress,
                lost,
                begins_round,
                app_limited: false,
                probing: true,
            });
        }
        term
    }

    #[test]
    fn two_lossy_intervals_at_the_same_rate_indicate_a_policer() {
        // The round of the first loss counts for the first interval, but its delivered data does
        // not: three rounds of 10 kB each in 0.3 s, then four in 0.4 s.
        assert_eq!(after([(10_000, 2_500); 7]).rate(), None);
        assert_eq!(after([(10_000, 2_500); 8]).rate(), Some(100_000.0));
    }

    #[test]
    fn few_losses_or_changing_rates_do_not_indicate_a_policer() {
        assert_eq!(after([(10_000, 1_500); 40]).rate(), None, "15 %");
        let slower = [(10_000, 2_500); 4].into_iter().chain([(8_000, 2_500); 4]);
        assert_eq!(after(slower.clone()).rate(), None, "a fifth less");
        let same = after(slower.chain([(8_000, 2_500); 4])).rate();
        assert_eq!(same, Some(80_000.0), "equal in the following intervals");
    }

    #[test]
    fn an_interval_without_loss_is_discarded() {
        let quiet = |rounds| [(10_000, 2_500); 4].into_iter().chain(vec![(10_000, 0); rounds]);
        // With the next loss the loss ratio over ten rounds is high enough; over more rounds it is
        // not.
        let after_quiet = |rounds| after(quiet(rounds).chain([(10_000, 50_000)])).rate();
        assert_eq!(after_quiet(10), Some(100_000.0));
        assert_eq!(after_quiet(20), None, "more than 16 rounds");
    }

    #[test]
    fn a_rate_is_used_for_48_rounds() {
        let believed = |rounds| after([(10_000, 2_500); 8].into_iter().chain(vec![(1, 0); rounds]));
        assert_eq!(believed(47).rate(), Some(100_000.0));
        assert_eq!(believed(48).rate(), None);
    }

    /// `bbr_lt_bw_sampling`: only rounds of `ProbeBW` count, and each once.
    #[test]
    fn a_rate_does_not_expire_while_the_bandwidth_is_not_probed() {
        let mut term = after([(10_000, 2_500); 8]);
        let progress = Progress { at: Instant::ZERO, delivered: 0, lost: 0 };
        for (probing, begins_round) in [(true, false), (false, true)] {
            let (lost, app_limited) = (false, false);
            let event = PathEvent { progress, lost, begins_round, app_limited, probing };
            (0..100).for_each(|_| assert!(!term.update(&event)));
        }
        assert_eq!(term.rate(), Some(100_000.0));
    }

    #[test]
    fn rates_are_equal_within_an_eighth_or_4_kbit_per_second() {
        assert!(is_same(90_000.0, 80_000.0) && is_same(70_000.0, 80_000.0));
        assert!(!is_same(90_001.0, 80_000.0) && !is_same(69_999.0, 80_000.0));
        // 500 B/s, of which the pacing rate is 99 %.
        assert!(is_same(1_505.0, 1_000.0) && !is_same(1_506.0, 1_000.0));
    }

    #[test]
    fn a_policer_loses_50_of_256_bytes_delivered() {
        assert_eq!(after([(2_560, 500); 8]).rate(), Some(25_600.0));
        assert_eq!(after([(2_560, 499); 8]).rate(), None);
    }

    /// `bbr_lt_bw_interval_done`: "interval is too small for us to handle".
    #[test]
    fn an_interval_below_a_millisecond_is_not_used() {
        let rate = |round_us: u64| {
            let mut term = LongTermBandwidth::new();
            for round in 0..8 {
                let at = Instant::from_nanos(round * round_us * 1_000);
                let progress = Progress { at, delivered: 1_000 * round, lost: 500 * round };
                let (lost, begins_round, app_limited, probing) = (true, true, false, true);
                term.update(&PathEvent { progress, lost, begins_round, app_limited, probing });
            }
            term.rate()
        };
        assert!(rate(1_000).is_some());
        assert_eq!(rate(10), None);
    }
}
