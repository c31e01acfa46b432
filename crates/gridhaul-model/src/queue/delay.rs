//! Distribution of the delay in an M/M/1/B queue (paper `sa-tcp`, equation 11).

/// Time in the system of accepted packets, in service times.
///
/// A packet that finds k others stays for k + 1 exponential services. It is still in the system
/// after t service times if fewer than k + 1 services are finished, whose number is Poisson with
/// mean t. The sum over k with the weights ρ^k is P(T > t) = Σ_(i<B) Poisson(i; t) (ρ^i − ρ^B)/(1 −
/// ρ^B): equation 11 with its two sums combined. All terms are positive, so there is no
/// cancellation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Delay {
    /// ln ρ.
    x: f64,
    b: f64,
    /// ρ and 1/ρ.
    up: f64,
    down: f64,
    /// ρ − 1 and ρ^B − 1; above full load those of 1/ρ, since ρ^B overflows.
    one: f64,
    all: f64,
}

/// Distribution of the time W that an accepted packet waits before its own service, in service
/// times: P(W > t) = P(k ≥ 1) P(T > t), with T of a system with capacity B − 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wait {
    /// P(k ≥ 1).
    some: f64,
    /// `None` if no packet can wait.
    smaller: Option<Delay>,
}

/// Terms below this fraction of the largest are omitted.
const NEGLIGIBLE: f64 = 1e-18;
/// Fraction of a sum below which an addition does not change its value: less than 2^−54.
const WITHOUT_EFFECT: f64 = 1e-17;

impl Delay {
    pub(super) fn new(x: f64, b: f64) -> Self {
        let below = -x.abs();
        let (one, all) = (below.exp_m1(), (b * below).exp_m1());
        Self { x, b, up: x.exp(), down: (-x).exp(), one, all }
    }

    /// P(T > t) for t service times.
    #[must_use]
    pub fn beyond(&self, t: f64) -> f64 {
        if t <= 0.0 {
            return 1.0;
        }
        if !t.is_finite() {
            return 0.0;
        }
        // From the largest Poisson term below B outwards. Adjacent weights differ by `met`; the
        // subtractions for rising i are small relative to the weight at the top.
        let top = t.floor().min(self.b - 1.0);
        let largest = poisson(top, t);
        let (maximum, met) = (self.weight(top), self.met(top));
        let mut sum = largest * maximum;
        let (mut term, mut i) = (largest, top);
        let (mut weight, mut step) = (maximum, met);
        while i >= 1.0 && term > largest * NEGLIGIBLE {
            term *= i / t;
            i -= 1.0;
            step *= self.down;
            weight = if met > 0.0 { weight + step } else { self.weight(i) };
            sum += term * weight;
        }
        (term, i) = (largest, top);
        (weight, step) = (maximum, met);
        while i + 1.0 < self.b && term > largest * NEGLIGIBLE {
            i += 1.0;
            term *= t / i;
            weight = if met > 0.0 { weight - step } else { self.weight(i) };
            step *= self.up;
            let next = term * weight.max(0.0);
            sum += next;
            // Terms and weights fall from here on.
            if next < sum * WITHOUT_EFFECT {
                break;
            }
        }
        sum.min(1.0)
    }

    /// P(T ≤ t) for t service times.
    #[must_use]
    pub fn within(&self, t: f64) -> f64 {
        1.0 - self.beyond(t)
    }

    /// Distribution of the time that an accepted packet waits before its own service.
    #[must_use]
    pub fn wait(&self) -> Wait {
        let smaller = (self.b >= 2.0).then(|| Self::new(self.x, self.b - 1.0));
        Wait { some: self.weight(1.0), smaller }
    }

    /// Quantile of the time in the system of accepted packets, in service times.
    #[must_use]
    pub fn quantile(&self, share: f64) -> f64 {
        if share <= 0.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        while self.within(high) < share && high < 1e12 {
            (low, high) = (high, high * 2.0);
        }
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            if self.within(middle) < share { low = middle } else { high = middle }
        }
        high
    }

    /// Time that is exceeded with a probability below 1e-4, in service times.
    #[must_use]
    pub(crate) fn longest(&self) -> f64 {
        // The service times of a full system plus four standard deviations; for few packets, the
        // exponential tail of one service dominates. For ρ < 1 at most that of M/M/1.
        let full = self.b + 4.0 * self.b.sqrt() + 10.0;
        let idle = -self.x.exp_m1();
        if idle > 0.0 { full.min(9.3 / idle) } else { full }
    }

    /// ρ^i (1 − ρ)/(1 − ρ^B): the probability that a packet finds exactly i others; 0 if it is too
    /// small for the recursion.
    fn met(&self, i: f64) -> f64 {
        let met = if self.x == 0.0 {
            1.0 / self.b
        } else if self.x > 0.0 {
            ((i + 1.0 - self.b) * self.x).exp() * self.one / self.all
        } else {
            (i * self.x).exp() * self.one / self.all
        };
        if met > REPRESENTABLE { met } else { 0.0 }
    }

    /// (ρ^i − ρ^B)/(1 − ρ^B): the probability that a packet finds at least i others.
    fn weight(&self, i: f64) -> f64 {
        let left = self.b - i;
        if self.x == 0.0 {
            left / self.b
        } else if self.x > 0.0 {
            (-left * self.x).exp_m1() / self.all
        } else {
            (i * self.x).exp() * (left * self.x).exp_m1() / self.all
        }
    }
}

impl Wait {
    /// P(W ≤ t) for t service times; at t = 0 the share without waiting.
    #[must_use]
    pub fn within(&self, t: f64) -> f64 {
        match &self.smaller {
            _ if t < 0.0 => 0.0,
            Some(smaller) => 1.0 - self.some * smaller.beyond(t),
            None => 1.0,
        }
    }
}

/// Smallest probability from which adjacent ones are computed by products.
const REPRESENTABLE: f64 = 1e-250;

/// Poisson probability of i at mean t, by logarithms.
pub(super) fn poisson(i: f64, t: f64) -> f64 {
    // i ln t − t − ln i!, with Stirling's i ln i − i subtracted from both to avoid large terms.
    let head = if i > 0.0 { i * (t / i).ln() + (i - t) } else { -t };
    (head - stirling_rest(i)).exp()
}

/// ln i! − (i ln i − i), for whole i.
fn stirling_rest(i: f64) -> f64 {
    if i < 10.0 {
        let factorial: f64 = (1..=i as u32).map(f64::from).product();
        let leading = if i > 0.0 { i * i.ln() - i } else { 0.0 };
        return factorial.ln() - leading;
    }
    // Stirling's series; the next term is below 1e-10 from i = 10 on.
    let square = i * i;
    0.5 * (std::f64::consts::TAU * i).ln()
        + (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square)
            / i
}

#[cfg(test)]
mod tests {
    use crate::queue::Mm1b;
    use proptest::prelude::*;

    fn delay(rho: f64, b: u32) -> super::Delay {
        Mm1b::new(rho, b).unwrap().delay()
    }

    #[test]
    fn capacity_1_is_exponential_and_capacity_2_a_mixture() {
        for t in [0.1, 1.0, 5.0_f64] {
            assert!((delay(3.0, 1).beyond(t) - (-t).exp()).abs() < 1e-14);
            // ρ = 1, B = 2: half of the accepted packets find no other, half find one.
            let half = 0.5 * (-t).exp() + 0.5 * (-t).exp() * (1.0 + t);
            assert!((delay(1.0, 2).beyond(t) - half).abs() < 1e-14);
        }
        // Without a limit it is exponential with rate 1 − ρ.
        assert!((delay(0.5, 10_000).beyond(4.0) - (-2.0_f64).exp()).abs() < 1e-12);
    }

    #[test]
    fn equation_11_where_it_is_well_conditioned() {
        let (rho, b, t) = (0.7_f64, 6, 4.0_f64);
        let sum = |mean: f64| {
            let mut term = 1.0;
            (0..b)
                .map(|i| {
                    if i > 0 {
                        term *= mean / f64::from(i);
                    }
                    term
                })
                .sum::<f64>()
        };
        let full = rho.powi(b);
        let printed = 1.0 - (-t).exp() / (1.0 - full) * sum(rho * t)
            + full * (-t).exp() / (1.0 - full) * sum(t);
        assert!((delay(rho, b as u32).within(t) - printed).abs() < 1e-14);
    }

    #[test]
    fn waiting_time_is_the_time_in_system_without_the_own_service() {
        // ρ = 1, B = 2: half do not wait, half wait for one exponential service.
        let delay = delay(1.0, 2);
        assert!((delay.wait().within(0.0) - 0.5).abs() < 1e-15);
        assert!((delay.wait().within(1.0) - (1.0 - 0.5 * (-1.0_f64).exp())).abs() < 1e-14);
    }

    #[test]
    fn long_times_and_large_queues_are_finite() {
        // Full queue of 10,000: the time in the system is Erlang(10,000), 10,000 ± 100 services.
        let full = delay(1e6, 10_000);
        assert!((full.within(10_000.0) - 0.5).abs() < 0.01);
        assert!(full.beyond(9_500.0) > 0.9999 && full.beyond(10_500.0) < 1e-4);
        assert!(full.beyond(1e6) == 0.0 && full.beyond(1e-9) <= 1.0);
        assert!((full.quantile(0.98) - 10_205.0).abs() < 5.0);
        assert!((delay(1.0 + 1e-14, 10_000).within(5_000.0) - 0.5).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn mean_is_the_integral_of_the_tail(log in -2.0..2.0_f64, b in 1_u32..60) {
            let queue = Mm1b::new(log.exp(), b).unwrap();
            let delay = queue.delay();
            let step = 0.01;
            let tail = |i: u32| delay.beyond(f64::from(i) * step);
            let end = 20_000;
            let inner: f64 = (1..end).map(tail).sum();
            let mean = step * (inner + f64::midpoint(tail(0), tail(end)));
            prop_assert!(
                (mean / queue.sojourn() - 1.0).abs() < 1e-4,
                "{} {}", mean, queue.sojourn()
            );
        }

        #[test]
        fn probabilities_are_between_0_and_1(log in -7.0..7.0_f64, b in 1_u32..10_000,
            t in 0.0..1e6_f64) {
            let delay = Mm1b::new(log.exp(), b).unwrap().delay();
            let (now, later) = (delay.beyond(t), delay.beyond(t * 1.001));
            prop_assert!((0.0..=1.0).contains(&now) && later <= now + 1e-12);
        }
    }
}
