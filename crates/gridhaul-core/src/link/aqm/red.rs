//! Random early detection: Floyd and Jacobson 1993, "Random Early Detection Gateways for
//! Congestion Avoidance", figure 2, with one rule of its authors' implementation (see `drops`).

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::{BitRate, Duration, Instant, QueueLimit};

use super::Arrival;
use crate::link::Serializer;
use crate::random::RandomStream;

/// RED for one queue.
#[derive(Debug, Clone)]
pub(in crate::link) struct Red {
    min: f64,
    max: f64,
    in_bytes: bool,
    weight: f64,
    max_probability: f64,
    gentle: bool,
    ecn: bool,
    /// Transmission time of a typical small packet: `s` of the paper.
    packet_time: Duration,
    average: f64,
    /// Packets since the last drop, or −1: `count` of the paper.
    count: i64,
    /// The end of the idle time already included in the average.
    idle_counted_until: Instant,
    random: RandomStream,
}

impl Red {
    /// RED for a link of this rate, with its own random stream.
    pub(super) fn new(red: &scenario::Red, rate: BitRate, random: RandomStream) -> Self {
        let number = |limit| match limit {
            QueueLimit::Packets(packets) => f64::from(packets),
            QueueLimit::Bytes(bytes) => bytes.get() as f64,
            QueueLimit::Unlimited => f64::INFINITY,
        };
        let packet = u32::try_from(red.packet.get()).unwrap_or(u32::MAX);
        Self {
            min: number(red.min),
            max: number(red.max),
            in_bytes: matches!(red.min, QueueLimit::Bytes(_)),
            weight: red.weight,
            max_probability: red.max_probability.ratio(),
            gentle: red.gentle,
            ecn: red.ecn,
            packet_time: Serializer::new(rate).charge(packet),
            average: 0.0,
            count: -1,
            idle_counted_until: Instant::ZERO,
            random,
        }
    }

    /// Whether the packet is dropped.
    pub(super) fn drops(&mut self, arrival: &Arrival) -> bool {
        self.update_average(arrival);
        let random_number = self.random.standard_uniform();
        if self.average < self.min {
            self.count = -1;
            return false;
        }
        self.count += 1;
        // Not in the paper, but in ns-2's RED: nothing is dropped while at most one packet is
        // queued. Without this rule a queue that is often empty drops 30 % more packets than in
        // ns-2.
        if arrival.queue_packets <= 1 {
            return false;
        }
        let drops = random_number < self.spread(self.probability());
        if drops {
            self.count = 0;
        }
        drops
    }

    /// Whether a packet that [`drops`](Self::drops) has selected is marked if it supports that. RFC
    /// 3168, section 7: at a high average packets are dropped, so that a flow that ignores marks
    /// gains nothing.
    pub(super) fn marks(&self) -> bool {
        self.ecn && self.probability() < 1.0
    }

    /// Counts a packet that finds the queue full as dropped, as ns-2 does.
    pub(super) const fn on_full(&mut self) {
        self.count = 0;
    }

    /// avg ← (1 − w) avg + w q; over an idle time avg ← (1 − w)^m avg, with m = time / s.
    fn update_average(&mut self, arrival: &Arrival) {
        if arrival.waits {
            let queue = if self.in_bytes {
                arrival.queue_bytes as f64
            } else {
                f64::from(arrival.queue_packets)
            };
            self.average += self.weight * (queue - self.average);
            return;
        }
        let idle = arrival.now.since(arrival.free_at.max(self.idle_counted_until));
        self.idle_counted_until = arrival.now;
        let packets = idle.as_nanos() / self.packet_time.as_nanos().max(1);
        self.average *= power(1.0 - self.weight, packets);
    }

    /// `p_b` of the paper for an average from `min` on; above `max` as Floyd 2000, "Recommendation
    /// on using the `gentle_` variant of RED".
    fn probability(&self) -> f64 {
        if self.average < self.max {
            return self.max_probability * (self.average - self.min) / (self.max - self.min);
        }
        if !self.gentle || self.average >= 2.0 * self.max {
            return 1.0;
        }
        self.max_probability + (1.0 - self.max_probability) * (self.average - self.max) / self.max
    }

    /// `p_a` ← `p_b` / (1 − count · `p_b`): spreads the drops evenly.
    fn spread(&self, probability: f64) -> f64 {
        let share = self.count as f64 * probability;
        if share < 1.0 { probability / (1.0 - share) } else { 1.0 }
    }
}

/// `base` to the power of a whole number, the same on every platform.
fn power(base: f64, exponent: u64) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Probability;

    use super::*;

    /// Packets of 500 B take 1 ms.
    fn red(keys: &scenario::Red) -> Red {
        let random = RandomStream::named(1, 0, "link.forward", 0, "red");
        Red::new(keys, BitRate::from_bits_per_sec(4_000_000), random)
    }

    fn keys(weight: f64) -> scenario::Red {
        scenario::Red { weight, ..scenario::Red::default() }
    }

    fn arrival(queue: u32) -> Arrival {
        Arrival {
            now: Instant::ZERO,
            bytes: 500,
            free_at: Instant::from_nanos(1),
            waits: true,
            queue_packets: queue,
            queue_bytes: u64::from(queue) * 500,
        }
    }

    #[test]
    fn the_average_follows_the_queue() {
        let mut red = red(&keys(0.25));
        let mut averages = Vec::new();
        for queue in [4, 4, 8, 0] {
            red.drops(&arrival(queue));
            averages.push(red.average);
        }
        // 0 + 4/4; 1 + 3/4; 1.75 + 6.25/4; then three quarters of it.
        assert_eq!(averages, [1.0, 1.75, 3.3125, 2.484_375]);
    }

    #[test]
    fn idle_time_counts_as_arrivals_at_an_empty_queue() {
        // Idle from 2 ms on; 3.5 packets of 1 ms fit: (1 − 1/2)^3.
        let mut red = red(&keys(0.5));
        red.average = 8.0;
        let idle = |now_us: u64| Arrival {
            now: Instant::ZERO + Duration::from_micros(now_us),
            free_at: Instant::ZERO + Duration::from_millis(2),
            waits: false,
            ..arrival(0)
        };
        red.drops(&idle(5_500));
        assert_eq!(red.average, 1.0);
        // The same idle time is not counted again.
        red.drops(&idle(6_500));
        assert_eq!(red.average, 0.5);
    }

    #[test]
    fn the_probability_grows_with_the_average() {
        let cases = [
            // (average, gentle, p): min 5, max 15, 10 % at max.
            (5.0, true, 0.0),
            (10.0, true, 0.05),
            (15.0, true, 0.1),
            (22.5, true, 0.55),
            (30.0, true, 1.0),
            (14.0, false, 0.09),
            (15.0, false, 1.0),
        ];
        for (average, gentle, expected) in cases {
            let mut red = red(&scenario::Red { gentle, ..scenario::Red::default() });
            red.average = average;
            assert!((red.probability() - expected).abs() < 1e-12, "{average} {gentle}");
        }
    }

    #[test]
    fn at_a_high_average_packets_are_dropped_instead_of_marked() {
        for (average, gentle, marks) in
            [(10.0, true, true), (29.0, true, true), (30.0, true, false), (15.0, false, false)]
        {
            let keys = scenario::Red { gentle, ecn: true, ..scenario::Red::default() };
            let mut red = red(&keys);
            red.average = average;
            assert_eq!(red.marks(), marks, "{average} {gentle}");
            red.ecn = false;
            assert!(!red.marks());
        }
    }

    #[test]
    fn drops_are_spread_evenly() {
        // With a constant average of 10 between 5 and 15, p_b = 5 %. The distance between drops is
        // then uniform (section 7 of the paper): from 1 to 19, since figure 2 gives the first
        // packet after a drop the count 1 and always drops at count · p_b = 1 − p_b. The mean is
        // 10.
        let mut red = red(&keys(1.0));
        let (mut since, mut gaps) = (0, Vec::new());
        for _ in 0..20_000 {
            since += 1;
            if red.drops(&arrival(10)) {
                gaps.push(since);
                since = 0;
            }
        }
        assert_eq!((gaps.iter().min(), gaps.iter().max()), (Some(&1), Some(&19)));
        let mean = 20_000.0 / gaps.len() as f64;
        assert!((mean - 10.0).abs() < 0.4, "{mean}");
    }

    #[test]
    fn a_queue_with_at_most_one_packet_is_not_dropped_from() {
        let mut red = red(&keys(0.001));
        (red.average, red.gentle) = (100.0, false);
        assert!(!red.drops(&arrival(1)));
        assert!(red.drops(&arrival(2)));
    }

    #[test]
    fn all_packets_are_accepted_below_the_minimum_and_dropped_above_the_maximum() {
        let keys = scenario::Red {
            max_probability: Probability::new(1.0).unwrap(),
            gentle: false,
            ..keys(1.0)
        };
        let mut red = red(&keys);
        assert!((0..1_000).all(|_| !red.drops(&arrival(4))));
        assert!((0..1_000).all(|_| red.drops(&arrival(15))));
    }
}
