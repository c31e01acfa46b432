//! Time that a meter's segment spends in retransmission timeouts until it arrives.
//!
//! A window of two segments cannot cause three duplicate acknowledgements, so that nearly every
//! loss needs a timeout, and each further loss one of twice the length (RFC 6298, 5.5).

use super::refined::{FirstTransmission, first_transmissions};
use super::{Conditions, Demand, MeterTcp, Timer};
use crate::chain::Elimination;
use crate::time_distribution::TimeDistribution;

/// Distribution of the time that a meter's segments wait for timeouts. `None` if nothing is sent or
/// nothing ever arrives.
///
/// The back-off at the time of a first transmission is that of the chain: without timestamps it
/// persists after a retransmission (Karn's algorithm). `more` is taken from the solution.
pub(crate) fn timer_wait(
    tcp: &MeterTcp,
    demand: &Demand,
    conditions: &Conditions,
    more: f64,
    elimination: &mut Elimination,
) -> Option<TimeDistribution> {
    let arriving = 1.0 - conditions.loss;
    if arriving < DELIVERY_MIN {
        return None;
    }
    let starts = first_transmissions(tcp, demand, conditions, more, elimination);
    let all: f64 = starts.iter().map(|start| start.share).sum();
    let mut values = Vec::new();
    for start in starts {
        let share = start.share / all;
        values.push((0.0, share * (1.0 - start.delayed_share)));
        let series = BackoffSeries { timer: tcp.timer, rtt: conditions.rtt, loss: conditions.loss };
        let part = share * start.delayed_share / start.waits.len().max(1) as f64;
        for &first in &start.waits {
            series.add(&mut values, first, start.doublings + 1, part);
        }
    }
    TimeDistribution::of(values)
}

/// As [`timer_wait`], for single segments of a sender without back-off, which retransmits a segment
/// `fast` seconds after a loss if its timer has not expired by then.
pub(crate) fn single_segment_timer_wait(
    timer: Timer,
    rtt: f64,
    fast: f64,
    loss: f64,
) -> Option<TimeDistribution> {
    if 1.0 - loss < DELIVERY_MIN {
        return None;
    }
    let mut values = vec![(0.0, 1.0 - loss)];
    BackoffSeries { timer, rtt, loss }.add(&mut values, timer.after(0, rtt).min(fast), 1, loss);
    TimeDistribution::of(values)
}

/// Delivery probability below which no segment is assumed to arrive.
const DELIVERY_MIN: f64 = 1e-9;
/// Probability below which the series is cut off.
const NEGLIGIBLE: f64 = 1e-12;

struct BackoffSeries {
    timer: Timer,
    rtt: f64,
    loss: f64,
}

impl BackoffSeries {
    /// Adds the delays of all retransmissions: the first is sent after `first` seconds and starts a
    /// timeout with `doublings` doublings.
    fn add(&self, values: &mut Vec<(f64, f64)>, first: f64, doublings: u32, weight: f64) {
        let (p, q) = (self.loss, 1.0 - self.loss);
        let top = self.timer.doublings(self.rtt);
        let (mut at, mut left, mut doublings) = (first, weight, doublings);
        while doublings < top && left > NEGLIGIBLE {
            values.push((at, left * q));
            at += self.timer.after(doublings, self.rtt);
            left *= p;
            doublings += 1;
        }
        // From here on the timeout is constant: retransmissions are grouped, and the group size
        // doubles.
        let (timeout, mut count) = (self.timer.after(top, self.rtt), 1.0);
        while left > NEGLIGIBLE && count < 1e12 {
            let lost = (count * p.ln()).exp();
            // Mean of a geometric random variable below `count`.
            let mean_losses = if count * q < 1e-4 {
                (count - 1.0) / 2.0
            } else {
                p / q - count * lost / (1.0 - lost)
            };
            values.push((at + mean_losses * timeout, left * (1.0 - lost)));
            at += count * timeout;
            left *= lost;
            count *= 2.0;
        }
    }
}

impl FirstTransmission {
    /// A first transmission that starts the timer.
    pub(super) fn timed(share: f64, delayed_share: f64, doublings: u32, wait: f64) -> Self {
        Self { share, delayed_share, doublings, waits: vec![wait] }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Restart;
    use super::*;

    const TIMER: Timer = Timer { min: 1.0, max: 60.0, floor_on_variance: false, timestamps: true };

    fn timer_wait(
        tcp: &MeterTcp,
        demand: &Demand,
        conditions: &Conditions,
        more: f64,
    ) -> Option<TimeDistribution> {
        super::timer_wait(tcp, demand, conditions, more, &mut Elimination::default())
    }

    fn meter(vegas: bool, restart: Restart) -> MeterTcp {
        MeterTcp { vegas, window: 1, timer: TIMER, restart }
    }

    fn at(loss: f64) -> Conditions {
        Conditions { loss, rtt: 0.1, pairing: 0.0, variation: 0.0, window_closed: 0.0 }
    }

    #[test]
    fn a_message_of_one_segment_waits_for_doubled_timeouts() {
        // With timestamps, every message starts without back-off: 1, 3, 7, 15, 31, 63 s, then 60 s
        // more each: Σ pⁱ RTO(i) = 0.5·1 + 0.25·2 + ... + 0.5⁶·32 = 3, then 0.5⁷·60·2 = 0.9375.
        let demand = Demand::Messages { per_second: 1e-6, segments: 1 };
        let waits = timer_wait(&meter(false, Restart::Never), &demand, &at(0.5), 0.0).unwrap();
        assert!((waits.mean() / 3.9375 - 1.0).abs() < 1e-4, "{}", waits.mean());
        for (seconds, share) in [(0.9, 0.5), (1.1, 0.75), (3.3, 0.875), (7.5, 0.9375)] {
            assert!((waits.within(seconds) - share).abs() < 1e-4, "{seconds}");
        }
        let alone = single_segment_timer_wait(TIMER, 0.1, f64::INFINITY, 0.5).unwrap();
        assert!((alone.mean() / waits.mean() - 1.0).abs() < 1e-4);
    }

    #[test]
    fn a_timer_that_kept_running_fires_at_a_random_time() {
        // A message every 10^4 s: the timeout is 60 s, and the timer fires after 0 to 60 s.
        let demand = Demand::Messages { per_second: 1e-4, segments: 1 };
        let vegas = meter(true, Restart::TimerRunsOn);
        let waits = timer_wait(&vegas, &demand, &at(0.02), 0.0).unwrap();
        assert!((waits.within(1.0) - 0.98).abs() < 0.002);
        assert!((waits.mean() / (0.02 * 30.0) - 1.0).abs() < 0.1, "{}", waits.mean());
    }

    #[test]
    fn limiting_loss_values() {
        let demand = Demand::Messages { per_second: 1e-3, segments: 1 };
        let waits_at = |loss| timer_wait(&meter(false, Restart::Never), &demand, &at(loss), 0.0);
        assert!(waits_at(0.0).is_some_and(|waits| waits.mean() == 0.0));
        assert!(
            waits_at(1.0).is_none()
                && single_segment_timer_wait(TIMER, 0.1, f64::INFINITY, 1.0).is_none()
        );
        let rare = single_segment_timer_wait(TIMER, 0.1, f64::INFINITY, 1.0 - 1e-6).unwrap();
        assert!((rare.mean() / 60e6 - 1.0).abs() < 0.01, "{}", rare.mean());
        let none = Demand::Messages { per_second: 0.0, segments: 1 };
        assert!(timer_wait(&meter(false, Restart::Never), &none, &at(0.1), 0.0).is_none());
    }
}
