//! Probability and burst length of losses.

use gridhaul_scenario::units::Duration;

use super::interval::Interval;
use super::{Basis, DelayHistogram, Estimate, LossSamples};

/// Packets that were transmitted in some states of the queue.
#[derive(Debug, Clone, Copy)]
struct Counts {
    sent: f64,
    lost: f64,
    /// Lost packets that were sent for the first time, and the groups of consecutive ones.
    first_lost: u64,
    runs: u64,
}

/// Losses, divided by the queueing delay before them.
#[derive(Debug)]
pub(super) struct DividedLosses {
    /// Before a full queue: these losses are those of the link.
    apart: Counts,
    all: Counts,
    overflow: Option<Overflow>,
}

/// Losses of a full buffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Overflow {
    /// Lost packets.
    pub(super) packets: u64,
    /// Queueing delay before them: from the lower limit to the largest.
    pub(super) delays: [Duration; 2],
}

/// Critical value of twice the logarithm of a likelihood ratio: a level of 1 % for 100 limits of
/// the queueing delay (Bonferroni), by the chi-squared distribution with one degree of freedom.
const CRITICAL: f64 = 15.1;

/// Share of the largest queueing delay from which on a queue may be full, if there are too few
/// losses to see the limit: before a drop, a queue of four or more packets had this delay.
const FULL: f64 = 0.7;

/// Divides losses by the queueing delay before them.
///
/// Random losses do not depend on the queue, and a drop-tail queue loses packets only while it is
/// full. The limit between both is the delay above which losses are more frequent, where the
/// likelihood of two probabilities of loss is largest. Groups of consecutive losses count once,
/// because losses in bursts are not independent. Without a significant limit, all long delays are
/// left out: the losses of the rest are random in any case.
pub(super) fn divide(basis: &Basis<'_>, rate: Option<&Estimate>) -> DividedLosses {
    let samples = basis.losses;
    let all = counts(basis, &|histogram| histogram.total());
    let significant = limit(samples);
    let class = match significant {
        // Of the packets below the limit, those whose delay is uncertain are left out.
        Some(class) => {
            let packet_s = rate.map_or(0.0, |rate| basis.packet_time_s(rate.value));
            let limit = DelayHistogram::lower_limit(class);
            let certain = limit.saturating_sub(Duration::from_secs_f64(packet_s));
            DelayHistogram::class_of(certain).min(class)
        }
        None => DelayHistogram::class_of(basis.samples.queueing().max().mul_f64(FULL)),
    };
    let class = class.max(1);
    let apart = counts(basis, &|histogram| histogram.below(class));
    let overflow = significant.map(|class| {
        let random = apart.lost / apart.sent.max(1.0) * (all.sent - apart.sent);
        Overflow {
            packets: (all.lost - apart.lost - random).max(0.0).round() as u64,
            delays: [DelayHistogram::lower_limit(class), samples.lost.max()],
        }
    });
    DividedLosses { apart, all, overflow }
}

/// The class of delays from which on losses are significantly more frequent.
fn limit(samples: &LossSamples) -> Option<usize> {
    let total = (samples.runs.total() as f64, samples.sent.total() as f64);
    let mut best = (CRITICAL, None);
    for class in 1..samples.sent.classes() {
        let (hits, trials) = (samples.runs.below(class) as f64, samples.sent.below(class) as f64);
        let (hits_above, trials_above) = (total.0 - hits, total.1 - trials);
        if trials == 0.0 || trials_above == 0.0 || hits_above * trials <= hits * trials_above {
            continue;
        }
        let divided = log_likelihood(hits, trials) + log_likelihood(hits_above, trials_above);
        let ratio = 2.0 * (divided - log_likelihood(total.0, total.1));
        // Of equal ratios, the longest delay.
        if ratio >= best.0 {
            best = (ratio, Some(class));
        }
    }
    best.1
}

/// The logarithm of the largest likelihood of independent trials.
fn log_likelihood(hits: f64, trials: f64) -> f64 {
    let term = |count: f64| if count > 0.0 { count * (count / trials).ln() } else { 0.0 };
    term(hits) + term(trials - hits)
}

/// Packets of some classes of delays, without those whose retransmission was unnecessary.
fn counts(basis: &Basis<'_>, weight: &dyn Fn(&DelayHistogram) -> u64) -> Counts {
    let samples = basis.losses;
    let lost = samples.lost.total() as f64;
    // Duplicates that the receiver reports, apart from those that the time of an acknowledgement
    // has shown already.
    let unnecessary = basis.unnecessary.saturating_sub(samples.spurious) as f64;
    let necessary = if lost > 0.0 { (1.0 - unnecessary / lost).max(0.0) } else { 1.0 };
    Counts {
        sent: weight(&samples.sent) as f64,
        lost: weight(&samples.lost) as f64 * necessary,
        first_lost: weight(&samples.first_lost),
        runs: weight(&samples.runs),
    }
}

impl DividedLosses {
    /// Losses of a full buffer, if there are any.
    pub(super) const fn overflow(&self) -> Option<&Overflow> {
        self.overflow.as_ref()
    }

    /// The probability that a packet is lost, apart from a full buffer.
    pub(super) fn probability(&self) -> Option<Estimate> {
        if self.all.sent == 0.0 {
            return None;
        }
        let apart = self.apart.probability();
        // With few packets apart from long delays, and without a sign that the queue was full, the
        // losses of all packets are as likely to be random.
        if self.overflow.is_some() || self.apart.sent * 3.0 >= self.all.sent {
            return Some(apart);
        }
        let all = self.all.probability();
        let interval = Interval {
            low: apart.interval.low.min(all.interval.low),
            high: apart.interval.high.max(all.interval.high),
            level: apart.interval.level,
        };
        Some(Estimate { value: all.value, interval })
    }

    /// Mean number of consecutive lost packets: 1 / (1 - q), where q is the probability that the
    /// packet after a lost one is lost too.
    pub(super) fn burst(&self) -> Option<Estimate> {
        let Counts { first_lost: lost, runs, .. } = self.apart;
        if lost == 0 {
            return None;
        }
        let continued = lost - runs.min(lost);
        let length = |q: f64| 1.0 / (1.0 - q).max(1.0 / lost as f64 / 2.0);
        let q = continued as f64 / lost as f64;
        let interval = Interval::of_proportion(continued, lost).map(length);
        Some(Estimate { value: length(q), interval })
    }
}

impl Counts {
    fn probability(&self) -> Estimate {
        let trials = self.sent.max(self.lost);
        let value = if trials > 0.0 { self.lost / trials } else { 0.0 };
        let effective = trials / self.variance_factor(value);
        Estimate { value, interval: Interval::of_shares(value * effective, effective) }
    }

    /// Factor by which the variance of the number of losses is larger than that of independent
    /// ones. In a Markov chain of two states whose autocorrelation is r, it is (1 + r) / (1 - r).
    fn variance_factor(&self, probability: f64) -> f64 {
        if self.first_lost == 0 {
            return 1.0;
        }
        let lost = self.first_lost as f64;
        let continued = (lost - self.runs as f64).max(0.0) / lost;
        let correlation = (continued - probability).max(0.0) / (1.0 - probability).max(0.01);
        (1.0 + correlation) / (1.0 - correlation).max(0.01)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Position;
    use crate::estimate::FirstTransmission;
    use crate::estimate::collected::Collected;

    /// Groups of packets: each has a queueing delay, a number of packets, and losses in runs.
    struct Group {
        queueing_ms: u64,
        packets: u32,
        runs: u32,
        run_packets: u32,
    }

    fn divided(groups: &[Group]) -> DividedLosses {
        let mut collected = Collected::default();
        for group in groups {
            let samples = &mut collected.losses;
            samples.set_before(Duration::from_millis(group.queueing_ms));
            collected.samples.add_queueing(Duration::from_millis(group.queueing_ms));
            let delivered = FirstTransmission { packets: 1, is_lost: false, queueing: None };
            for _ in 0..group.runs {
                let packets = group.run_packets;
                samples.add_first(&FirstTransmission { packets, is_lost: true, queueing: None });
                samples.add_first(&delivered);
            }
            let packets = group.packets - group.runs * (group.run_packets + 1);
            samples.add_first(&FirstTransmission { packets, ..delivered });
        }
        let (packets, bytes) = (10_000, 15_000_000);
        let position = Position::Sender;
        divide(&Basis { position, packets, bytes, ..collected.basis() }, None)
    }

    fn width(runs: u32) -> f64 {
        let run_packets = 100 / runs;
        let group = Group { queueing_ms: 0, packets: 10_000, runs, run_packets };
        let estimate = divided(&[group]).probability().unwrap();
        assert_eq!(estimate.value, 0.01);
        estimate.interval.high - estimate.interval.low
    }

    #[test]
    fn losses_in_bursts_have_a_wider_interval() {
        // Ten bursts of ten packets: a correlation of 0.9, and 19 times the variance.
        let ratio = width(10) / width(100);
        assert!((4.0..6.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn losses_of_a_full_queue_are_not_those_of_the_link() {
        let link = Group { queueing_ms: 20, packets: 8_000, runs: 40, run_packets: 1 };
        let full = Group { queueing_ms: 90, packets: 2_000, runs: 110, run_packets: 1 };
        let divided = divided(&[link, full]);
        let loss = divided.probability().unwrap();
        assert_eq!(loss.value, 0.005);
        // 110 losses, of which 0.5 % of 2,000 packets are random.
        let overflow = divided.overflow().unwrap();
        assert_eq!(overflow.packets, 100);
        assert_eq!(overflow.delays[1], Duration::from_millis(90));
        assert!(overflow.delays[0] > Duration::from_millis(20));
    }

    #[test]
    fn losses_that_do_not_depend_on_the_queue_are_those_of_the_link() {
        let short = Group { queueing_ms: 5, packets: 6_000, runs: 33, run_packets: 1 };
        let long = Group { queueing_ms: 50, packets: 3_000, runs: 12, run_packets: 1 };
        let divided = divided(&[short, long]);
        assert!(divided.overflow().is_none());
        assert_eq!(divided.probability().unwrap().value, 33.0 / 6_000.0);
        // A single loss at the longest delay may be one of a full queue.
        let empty = Group { queueing_ms: 5, packets: 2_000, runs: 0, run_packets: 1 };
        let full = Group { queueing_ms: 50, packets: 1_500, runs: 1, run_packets: 1 };
        let interval = super::tests::divided(&[empty, full]).probability().unwrap().interval;
        assert_eq!(interval.low, 0.0);
    }
}
