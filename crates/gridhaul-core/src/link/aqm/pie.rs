//! PIE, RFC 8033, section 4; none of the optional elements of section 5.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;
use crate::random::RandomStream;

/// PIE for one queue.
///
/// The queueing delay of a packet is known exactly on arrival, because the rate of the link is
/// known, so it is not estimated (section 4.3 permits both). The updates of the controller fall on
/// multiples of its period and are made up for when the next packet arrives: in between, the
/// queueing delay only decreases with time.
#[derive(Debug, Clone)]
pub(in crate::link) struct Pie {
    target: f64,
    update: Duration,
    burst: Duration,
    alpha: f64,
    beta: f64,
    probability: f64,
    /// Queueing delay at the last update, in seconds: `qdelay_old_`.
    old_delay: f64,
    burst_allowance: Duration,
    next_update: Instant,
    largest: u32,
    ecn: bool,
    random: RandomStream,
}

impl Pie {
    /// PIE with its own random stream.
    pub(super) fn new(pie: &scenario::Pie, random: RandomStream) -> Self {
        Self {
            target: pie.target.as_secs_f64(),
            update: pie.update,
            burst: pie.burst,
            alpha: pie.alpha,
            beta: pie.beta,
            probability: 0.0,
            old_delay: 0.0,
            burst_allowance: pie.burst,
            next_update: Instant::ZERO + pie.update,
            largest: 0,
            ecn: pie.ecn,
            random,
        }
    }

    /// Whether the packet is dropped (sections 4.1 and 4.4).
    pub(super) fn drops(&mut self, arrival: &Arrival) -> bool {
        self.update_to_now(arrival);
        let random_number = self.random.standard_uniform();
        self.largest = self.largest.max(arrival.bytes);
        let half = self.target / 2.0;
        let short = self.old_delay < half;
        if self.probability == 0.0 && short && arrival.wait().as_secs_f64() < half {
            self.burst_allowance = self.burst;
        }
        let protected = !self.burst_allowance.is_zero()
            || short && self.probability < 0.2
            || arrival.queue_bytes <= 2 * u64::from(self.largest);
        !protected && random_number < self.probability
    }

    /// Whether a packet that [`drops`](Self::drops) has selected is marked if it supports that
    /// (section 5.1, `mark_ecnth`).
    pub(super) fn marks(&self) -> bool {
        self.ecn && self.probability < MARKED_UP_TO
    }

    /// Makes up for all updates until now.
    fn update_to_now(&mut self, arrival: &Arrival) {
        while self.next_update <= arrival.now {
            let wait = arrival.free_at.since(self.next_update).as_secs_f64();
            if wait == 0.0 && self.old_delay == 0.0 && self.probability == 0.0 {
                // An idle state does not change: continue with the next update after now.
                let updates =
                    arrival.now.since(self.next_update).as_nanos() / self.update.as_nanos();
                self.burst_allowance =
                    self.burst_allowance.saturating_sub(self.update * (updates + 1));
                self.next_update += self.update * (updates + 1);
                return;
            }
            self.update_probability(wait);
            self.next_update += self.update;
        }
    }

    /// One update of the controller with the queueing delay in seconds (section 4.2).
    fn update_probability(&mut self, wait: f64) {
        let change = self.alpha * (wait - self.target) + self.beta * (wait - self.old_delay);
        self.probability += change / scaling_divisor(self.probability);
        if wait == 0.0 && self.old_delay == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = wait;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.update);
    }
}

/// Section 5.1: packets are dropped from a probability of 10 % on, ECN or not.
const MARKED_UP_TO: f64 = 0.1;

/// Divisor of the change while the probability is small (section 4.2, the table of scalings).
fn scaling_divisor(probability: f64) -> f64 {
    const TABLE: [(f64, f64); 6] =
        [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];
    TABLE.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, divisor)| *divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pie() -> Pie {
        let random = RandomStream::named(1, 0, "link.forward", 0, "pie");
        Pie::new(&scenario::Pie::default(), random)
    }

    /// A packet of 1,000 B after ten others, at this time and with this queueing delay, both in ms.
    fn arrival(now: u64, wait: u64) -> Arrival {
        let now = Instant::ZERO + Duration::from_millis(now);
        Arrival {
            now,
            bytes: 1_000,
            free_at: now + Duration::from_millis(wait),
            waits: wait > 0,
            queue_packets: 10,
            queue_bytes: 10_000,
        }
    }

    #[test]
    fn updates_follow_the_control_equation() {
        // (delay in s, probability before, after), with a previous delay of 20 ms:
        let cases = [
            // 0.125 · (0.055 − 0.015) + 1.25 · (0.055 − 0.020) = 0.04875, unscaled from 10 % on.
            (0.055, 0.2, 0.2 + 0.048_75),
            (0.055, 0.05, 0.05 + 0.048_75 / 2.0),
            (0.055, 0.005, 0.005 + 0.048_75 / 8.0),
            (0.055, 0.000_5, 0.000_5 + 0.048_75 / 32.0),
            (0.055, 0.0, 0.048_75 / 2048.0),
            // A constant delay at the target changes nothing; below the target the probability
            // decreases.
            (0.020, 0.2, 0.2 + 0.125 * 0.005),
            (0.010, 0.2, 0.2 - 0.125 * 0.005 - 1.25 * 0.010),
            (0.000, 0.0, 0.0),
            (9.000, 0.9, 1.0),
        ];
        for (wait, before, after) in cases {
            let mut pie = pie();
            (pie.old_delay, pie.probability) = (0.020, before);
            pie.update_probability(wait);
            assert!((pie.probability - after).abs() < 1e-12, "{wait} {before}");
        }
        // Without any delay the probability decays by 2 % for each update as well.
        let mut pie = pie();
        pie.probability = 0.5;
        pie.update_probability(0.0);
        assert!((pie.probability - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn packets_are_marked_below_a_probability_of_ten_percent() {
        let keys = scenario::Pie { ecn: true, ..scenario::Pie::default() };
        let mut pie = Pie::new(&keys, RandomStream::named(1, 0, "link.forward", 0, "pie"));
        for (probability, marks) in [(0.0, true), (0.099, true), (0.1, false), (0.9, false)] {
            pie.probability = probability;
            assert_eq!(pie.marks(), marks, "{probability}");
        }
    }

    #[test]
    fn missed_updates_are_made_up_for() {
        // Updates at 15, 30, 45 ms: the last packet departs at 40 ms, so they see 25, 10 and 0 ms.
        let (mut late, mut step) = (pie(), pie());
        (late.probability, step.probability) = (0.3, 0.3);
        late.drops(&Arrival { free_at: Instant::from_nanos(40_000_000), ..arrival(50, 0) });
        [0.025, 0.010, 0.0].into_iter().for_each(|wait| step.update_probability(wait));
        assert_eq!(late.probability, step.probability);
        assert_eq!(late.next_update, Instant::from_nanos(60_000_000));
    }

    #[test]
    fn a_long_idle_time_is_skipped_in_one_step() {
        let day = 86_400_000;
        let mut pie = pie();
        pie.probability = 0.5;
        pie.drops(&Arrival { free_at: Instant::ZERO, ..arrival(day, 0) });
        assert_eq!((pie.probability, pie.old_delay), (0.0, 0.0));
        assert_eq!(pie.next_update, Instant::ZERO + Duration::from_millis(day + 15));
        assert_eq!(pie.burst_allowance, Duration::from_millis(150));
    }

    #[test]
    fn the_burst_allowance_protects_initial_bursts() {
        // The delay is long from the start; updates at 15, 30, ... use up 150 ms of allowance.
        let mut pie = pie();
        (pie.alpha, pie.beta) = (1e6, 0.0);
        let dropped = |pie: &mut Pie, now| pie.drops(&arrival(now, 50));
        assert!((1..150).all(|now| !dropped(&mut pie, now)));
        assert!((151..200).all(|now| dropped(&mut pie, now)));
    }

    #[test]
    fn a_short_queue_is_protected() {
        let mut pie = pie();
        (pie.probability, pie.old_delay) = (1.0, 1.0);
        pie.burst_allowance = Duration::ZERO;
        assert!(pie.drops(&arrival(1, 50)));
        // Two packets of full size are queued.
        assert!(!pie.drops(&Arrival { queue_bytes: 2_000, ..arrival(2, 50) }));
        assert!(pie.drops(&Arrival { queue_bytes: 2_001, ..arrival(3, 50) }));
        // The delay was short at the last update, and the drop probability is low.
        (pie.probability, pie.old_delay) = (0.19, 0.007);
        assert!((4..14).all(|now| !pie.drops(&arrival(now, 50))));
    }
}
