//! Probability and burst length of losses.

use gridhaul_scenario::units::Duration;

use super::interval::Interval;
use super::{Basis, Estimate};

/// Lost packets of a direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Losses {
    /// Lost packets, counted by their retransmissions.
    pub(crate) packets: u64,
    /// Groups of consecutive lost packets.
    pub(crate) runs: u64,
    /// Packets of these groups: lost packets that were sent for the first time.
    pub(crate) in_runs: u64,
}

/// Losses of a full buffer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Overflow {
    /// Lost packets.
    pub(super) packets: u64,
    /// Queueing delay before them: from the lower limit to the largest.
    pub(super) delays: Option<[Duration; 2]>,
}

/// Share of the largest queueing delay above which a loss is one of a full buffer: a drop-tail
/// queue loses packets only when it is full, and the segment before the lost one has queued almost
/// as long.
const FULL: f64 = 0.7;

/// Losses of a full buffer: most losses follow a long queueing delay, which other segments have
/// rarely.
pub(super) fn overflow(basis: &Basis<'_>, rate: Option<&Estimate>) -> Overflow {
    let (queueing, losses) = (basis.samples.queueing(), basis.samples.losses());
    let largest = queueing.max();
    // Fewer than four packets in the queue are its normal state behind a window that grows.
    let packet = basis.bytes as f64 / basis.packets.max(1) as f64 * 8.0;
    let shortest = rate.map_or(0.0, |rate| 4.0 * packet / rate.value);
    if rate.is_none() || largest.as_secs_f64() < shortest || losses.total() == 0 {
        return Overflow::default();
    }
    let limit = largest.mul_f64(FULL);
    let share = |above: u64, total: u64| above as f64 / total.max(1) as f64;
    let late_losses = losses.above(limit);
    let of_losses = share(late_losses, losses.total());
    let of_segments = share(queueing.above(limit), queueing.total());
    if of_losses < 0.6 || of_losses < 2.0 * of_segments {
        return Overflow::default();
    }
    let lost = lost(basis) as f64 * of_losses;
    Overflow { packets: lost.round() as u64, delays: Some([limit, losses.max()]) }
}

/// Lost packets, without those whose retransmission was unnecessary.
fn lost(basis: &Basis<'_>) -> u64 {
    basis.losses.packets.saturating_sub(basis.unnecessary)
}

/// The probability that a packet is lost, apart from a full buffer.
pub(super) fn probability(basis: &Basis<'_>, overflow: &Overflow) -> Option<Estimate> {
    let sent = basis.packets;
    if sent == 0 {
        return None;
    }
    let random = lost(basis).saturating_sub(overflow.packets);
    let trials = sent.saturating_sub(overflow.packets).max(random);
    let value = random as f64 / trials as f64;
    let effective = trials as f64 / variance_factor(&basis.losses, value);
    Some(Estimate { value, interval: Interval::of_shares(value * effective, effective) })
}

/// Factor by which the variance of the number of losses is larger than that of independent ones. In
/// a Markov chain of two states whose autocorrelation is r, it is (1 + r) / (1 - r).
fn variance_factor(losses: &Losses, probability: f64) -> f64 {
    if losses.in_runs == 0 {
        return 1.0;
    }
    let continued = (losses.in_runs - losses.runs) as f64 / losses.in_runs as f64;
    let correlation = (continued - probability).max(0.0) / (1.0 - probability).max(0.01);
    (1.0 + correlation) / (1.0 - correlation).max(0.01)
}

/// Mean number of consecutive lost packets: 1 / (1 - q), where q is the probability that the packet
/// after a lost one is lost too.
pub(super) fn burst(basis: &Basis<'_>, overflow: &Overflow) -> Option<Estimate> {
    let losses = basis.losses;
    if losses.in_runs == 0 || overflow.packets > 0 {
        return None;
    }
    let continued = losses.in_runs - losses.runs;
    let length = |q: f64| 1.0 / (1.0 - q).max(1.0 / losses.in_runs as f64 / 2.0);
    let q = continued as f64 / losses.in_runs as f64;
    let interval = Interval::of_proportion(continued, losses.in_runs).map(length);
    Some(Estimate { value: length(q), interval })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::{LinkSamples, RoundTrips};

    fn width(runs: u64) -> f64 {
        let basis = Basis {
            samples: &LinkSamples::default(),
            round_trips: &RoundTrips::default(),
            sender_side: Duration::ZERO,
            is_at_receiver: false,
            packets: 10_000,
            bytes: 15_000_000,
            losses: Losses { packets: 100, runs, in_runs: 100 },
            unnecessary: 0,
            time_unit_nanos: 1,
        };
        let estimate = probability(&basis, &Overflow::default()).unwrap();
        assert_eq!(estimate.value, 0.01);
        estimate.interval.high - estimate.interval.low
    }

    #[test]
    fn losses_in_bursts_have_a_wider_interval() {
        // Ten bursts of ten packets: a correlation of 0.9, and 19 times the variance.
        let ratio = width(10) / width(100);
        assert!((4.0..6.0).contains(&ratio), "{ratio}");
    }
}
