//! PIE, RFC 8033, section 4; none of the optional elements of section 5.

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{Duration, Instant};

use super::Arrival;
use crate::random::RandomStream;

/// PIE for one queue.
///
/// The wait of a packet is known exactly when it arrives (the rate of the wire is), so it is not
/// estimated (section 4.3 leaves the way open). The looks of the controller fall on multiples of
/// its period and are caught up with when the next packet arrives: meanwhile the wait has only
/// become shorter as time passed.
#[derive(Debug, Clone)]
pub(in crate::link) struct Pie {
    target: f64,
    update: Duration,
    burst: Duration,
    alpha: f64,
    beta: f64,
    probability: f64,
    /// Wait at the last look, in seconds: `qdelay_old_`.
    old_wait: f64,
    burst_allowance: Duration,
    next_update: Instant,
    largest: u32,
    random: RandomStream,
}

impl Pie {
    /// PIE with its own stream of chance.
    pub(super) fn new(pie: &scenario::Pie, random: RandomStream) -> Self {
        Self {
            target: pie.target.as_secs_f64(),
            update: pie.update,
            burst: pie.burst,
            alpha: pie.alpha,
            beta: pie.beta,
            probability: 0.0,
            old_wait: 0.0,
            burst_allowance: pie.burst,
            next_update: Instant::ZERO + pie.update,
            largest: 0,
            random,
        }
    }

    /// Whether the packet is dropped (sections 4.1 and 4.4).
    pub(super) fn drops(&mut self, arrival: &Arrival) -> bool {
        self.catch_up(arrival);
        let random = self.random.standard_uniform();
        self.largest = self.largest.max(arrival.bytes);
        let half = self.target / 2.0;
        let short = self.old_wait < half;
        if self.probability == 0.0 && short && arrival.wait().as_secs_f64() < half {
            self.burst_allowance = self.burst;
        }
        let spared = !self.burst_allowance.is_zero()
            || short && self.probability < 0.2
            || arrival.queue_bytes <= 2 * u64::from(self.largest);
        !spared && random < self.probability
    }

    /// All looks up to now.
    fn catch_up(&mut self, arrival: &Arrival) {
        while self.next_update <= arrival.now {
            let wait = arrival.free_at.since(self.next_update).as_secs_f64();
            if wait == 0.0 && self.old_wait == 0.0 && self.probability == 0.0 {
                // It stays like this: on to the next look after now.
                let looks = arrival.now.since(self.next_update).as_nanos() / self.update.as_nanos();
                self.burst_allowance =
                    self.burst_allowance.saturating_sub(self.update * (looks + 1));
                self.next_update += self.update * (looks + 1);
                return;
            }
            self.look(wait);
            self.next_update += self.update;
        }
    }

    /// One look of the controller at the wait in seconds (section 4.2).
    fn look(&mut self, wait: f64) {
        let change = self.alpha * (wait - self.target) + self.beta * (wait - self.old_wait);
        self.probability += change / caution(self.probability);
        if wait == 0.0 && self.old_wait == 0.0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_wait = wait;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.update);
    }
}

/// Divides the change while the probability is small (section 4.2, the table of scalings).
fn caution(probability: f64) -> f64 {
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

    /// A packet of 1,000 B behind ten others, at a time, with a wait, both in ms.
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
    fn the_controller_takes_its_steps() {
        // (wait in s, probability before, after), the wait before is 20 ms:
        let cases = [
            // 0.125 · (0.055 − 0.015) + 1.25 · (0.055 − 0.020) = 0.04875, unscaled from 10 % on.
            (0.055, 0.2, 0.2 + 0.048_75),
            (0.055, 0.05, 0.05 + 0.048_75 / 2.0),
            (0.055, 0.005, 0.005 + 0.048_75 / 8.0),
            (0.055, 0.000_5, 0.000_5 + 0.048_75 / 32.0),
            (0.055, 0.0, 0.048_75 / 2048.0),
            // At the target and steady nothing changes; 5 ms below it goes down, never below 0.
            (0.020, 0.2, 0.2 + 0.125 * 0.005),
            (0.010, 0.2, 0.2 - 0.125 * 0.005 - 1.25 * 0.010),
            (0.000, 0.0, 0.0),
            (9.000, 0.9, 1.0),
        ];
        for (wait, before, after) in cases {
            let mut pie = pie();
            (pie.old_wait, pie.probability) = (0.020, before);
            pie.look(wait);
            assert!((pie.probability - after).abs() < 1e-12, "{wait} {before}");
        }
        // Without any wait the probability decays by 2 % a look as well.
        let mut pie = pie();
        pie.probability = 0.5;
        pie.look(0.0);
        assert!((pie.probability - (0.5 - 0.125 * 0.015) * 0.98).abs() < 1e-12);
    }

    #[test]
    fn looks_are_caught_up_with() {
        // Looks at 15, 30, 45 ms: the last packet leaves at 40 ms, so they see 25, 10 and 0 ms.
        let (mut late, mut step) = (pie(), pie());
        (late.probability, step.probability) = (0.3, 0.3);
        late.drops(&Arrival { free_at: Instant::from_nanos(40_000_000), ..arrival(50, 0) });
        [0.025, 0.010, 0.0].into_iter().for_each(|wait| step.look(wait));
        assert_eq!(late.probability, step.probability);
        assert_eq!(late.next_update, Instant::from_nanos(60_000_000));
    }

    #[test]
    fn a_long_silence_is_caught_up_with_at_once() {
        let day = 86_400_000;
        let mut pie = pie();
        pie.probability = 0.5;
        pie.drops(&Arrival { free_at: Instant::ZERO, ..arrival(day, 0) });
        assert_eq!((pie.probability, pie.old_wait), (0.0, 0.0));
        assert_eq!(pie.next_update, Instant::ZERO + Duration::from_millis(day + 15));
        assert_eq!(pie.burst_allowance, Duration::from_millis(150));
    }

    #[test]
    fn a_burst_is_spared_for_a_while() {
        // The wait is long from the start; looks at 15, 30, ... use up 150 ms of allowance.
        let mut pie = pie();
        (pie.alpha, pie.beta) = (1e6, 0.0);
        let dropped = |pie: &mut Pie, now| pie.drops(&arrival(now, 50));
        assert!((1..150).all(|now| !dropped(&mut pie, now)));
        assert!((151..200).all(|now| dropped(&mut pie, now)));
    }

    #[test]
    fn a_short_queue_is_spared() {
        let mut pie = pie();
        (pie.probability, pie.old_wait) = (1.0, 1.0);
        pie.burst_allowance = Duration::ZERO;
        assert!(pie.drops(&arrival(1, 50)));
        // Two packets of full size wait.
        assert!(!pie.drops(&Arrival { queue_bytes: 2_000, ..arrival(2, 50) }));
        assert!(pie.drops(&Arrival { queue_bytes: 2_001, ..arrival(3, 50) }));
        // The wait was short at the last look, and little is dropped anyway.
        (pie.probability, pie.old_wait) = (0.19, 0.007);
        assert!((4..14).all(|now| !pie.drops(&arrival(now, 50))));
    }
}
