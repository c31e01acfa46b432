//! The M/M/1/B queue (paper `sa-tcp`, section 4.5): Poisson arrivals, exponential service, a
//! capacity of B packets in the system, the one in service included.
//!
//! Validity of the published equations, checked against the balance equations of the birth–death
//! chain (Kleinrock 1975, chapter 3.6):
//!
//! - (5) holds for B packets *in the system*. A queue in which B packets *wait* has B + 1.
//! - (6) holds, and is the time in the system (own transmission included) of *accepted* packets;
//!   the paper calls it queuing delay. It is 0/0 at ρ = 1 and overflows for ρ ≫ 1.
//! - (11) holds, again for the time in the system of accepted packets; it is 0/0 at ρ = 1 and loses
//!   all precision near it.
//!
//! Here they are expressed in x = ln ρ with `expm1`, without cancellation or overflow.

mod delay;
mod finite_source;

pub use delay::{Delay, Wait};
pub use finite_source::FiniteSource;

/// An M/M/1/B queue in its stationary state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mm1b {
    /// ln ρ.
    x: f64,
    /// Capacity of the system, in packets.
    b: f64,
}

impl Mm1b {
    /// A queue with offered load ρ and a capacity of `capacity` packets in the system. `None` if
    /// the load is negative, infinite or not a number, or the capacity is zero.
    #[must_use]
    pub fn new(rho: f64, capacity: u32) -> Option<Self> {
        let possible = rho >= 0.0 && rho.is_finite() && capacity > 0;
        possible.then(|| Self { x: rho.ln(), b: f64::from(capacity) })
    }

    /// Offered load ρ = λ/μ.
    #[must_use]
    pub fn rho(&self) -> f64 {
        self.x.exp()
    }

    /// Blocking probability: share of the arrivals that find the system full (equation 5).
    ///
    /// ρ^B (1 − ρ) / (1 − ρ^(B+1)), with both sides in `expm1`; 1/(B + 1) at ρ = 1.
    #[must_use]
    pub fn blocking(&self) -> f64 {
        let n = self.b + 1.0;
        if self.x > 0.0 {
            // Divided by ρ^(B+1), which overflows.
            ratio(-self.x, -n * self.x, n)
        } else {
            (self.b * self.x).exp() * ratio(self.x, n * self.x, n)
        }
    }

    /// Utilisation of the server: λ (1 − blocking) / μ.
    #[must_use]
    pub fn busy(&self) -> f64 {
        // 1 − π₀ = ρ (1 − ρ^B) / (1 − ρ^(B+1)).
        let (b, n) = (self.b, self.b + 1.0);
        if self.x > 0.0 {
            1.0 / inverse_ratio(-b * self.x, -n * self.x, n / b)
        } else {
            self.x.exp() / inverse_ratio(b * self.x, n * self.x, n / b)
        }
    }

    /// Mean number of packets in the system.
    #[must_use]
    pub fn mean_number(&self) -> f64 {
        let n = self.b + 1.0;
        // Symmetry of occupied and free places: L(ρ) = B − L(1/ρ).
        let below = |y: f64| {
            if y > 0.7 {
                // ρ < 1/2: no cancellation.
                1.0 / y.exp_m1() - n / (n * y).exp_m1()
            } else {
                // 1/(e^y − 1) and n/(e^(ny) − 1) have the same pole 1/y, which is subtracted from
                // both.
                without_pole(y) - n * without_pole(n * y)
            }
        };
        if self.x > 0.0 { self.b - below(self.x) } else { below(-self.x) }
    }

    /// Mean time in the system of accepted packets, in service times (equation 6 times μ): Little's
    /// law over [`Self::mean_number`] and [`Self::busy`].
    #[must_use]
    pub fn sojourn(&self) -> f64 {
        let busy = self.busy();
        // At ρ → 0 a packet finds the system empty and stays for its own service.
        if busy > 0.0 { (self.mean_number() / busy).max(1.0) } else { 1.0 }
    }

    /// ln E[e^(−sW)] for the time W that an accepted packet waits before its own service, in
    /// service times.
    ///
    /// A packet finds i others with a probability ∝ ρ^i, i < B, and waits for i exponential
    /// services, each with the transform z = 1/(1 + s): Σ (ρz)^i / Σ ρ^i.
    #[must_use]
    pub fn log_wait_transform(&self, s: f64) -> f64 {
        let sum = |y: f64| {
            let (b, last) = (self.b, (self.b - 1.0) * y);
            // Largest term first: Σ e^(iy) overflows above full load.
            if y > 0.0 {
                last + inverse_ratio(-y, -b * y, b).ln()
            } else {
                inverse_ratio(y, b * y, b).ln()
            }
        };
        if self.x == f64::NEG_INFINITY { 0.0 } else { sum(self.x - s.ln_1p()) - sum(self.x) }
    }

    /// Distribution of the time in the system of accepted packets (equation 11).
    #[must_use]
    pub fn delay(&self) -> Delay {
        Delay::new(self.x, self.b)
    }
}

/// (e^a − 1)/(e^b − 1) where b = n a; 1/n at a = 0.
fn ratio(a: f64, b: f64, n: f64) -> f64 {
    if b == 0.0 { 1.0 / n } else { a.exp_m1() / b.exp_m1() }
}

/// (e^b − 1)/(e^a − 1) where b = n a; n at a = 0.
fn inverse_ratio(a: f64, b: f64, n: f64) -> f64 {
    if a == 0.0 { n } else { b.exp_m1() / a.exp_m1() }
}

/// 1/(e^y − 1) − 1/y, which is −1/2 at 0.
fn without_pole(y: f64) -> f64 {
    if y.abs() < 0.1 {
        // Bernoulli numbers: the next term is y⁷/1209600, below 1e-13 here.
        let square = y * y;
        -0.5 + y / 12.0 * (1.0 - square / 60.0 * (1.0 - square / 42.0))
    } else {
        1.0 / y.exp_m1() - 1.0 / y
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Stationary probabilities by their definition, scaled so that nothing overflows.
    fn directly(rho: f64, b: u32) -> Vec<f64> {
        let logs: Vec<f64> = (0..=b).map(|k| f64::from(k) * rho.ln()).collect();
        let top = logs.iter().copied().fold(f64::MIN, f64::max);
        let weights: Vec<f64> = logs.iter().map(|log| (log - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn capacity_1_is_the_erlang_loss_formula() {
        // B = 1: blocked while busy, ρ/(1 + ρ); an accepted packet stays for one service.
        let queue = Mm1b::new(2.0, 1).unwrap();
        assert!((queue.blocking() - 2.0 / 3.0).abs() < 1e-15);
        assert!((queue.sojourn() - 1.0).abs() < 1e-14);
        // B = 2, ρ = 1/2: 4/7, 2/7, 1/7.
        let queue = Mm1b::new(0.5, 2).unwrap();
        assert!((queue.blocking() - 1.0 / 7.0).abs() < 1e-15);
        assert!((queue.mean_number() - 4.0 / 7.0).abs() < 1e-15);
        assert!((queue.sojourn() - 4.0 / 3.0).abs() < 1e-14);
    }

    #[test]
    fn at_full_load_all_states_are_equal() {
        for b in [1, 2, 40, 10_000] {
            for rho in [1.0, 1.0 + 1e-15, 1.0 - 1e-12, 1.0 + 1e-9] {
                let queue = Mm1b::new(rho, b).unwrap();
                let b = f64::from(b);
                assert!((queue.blocking() * (b + 1.0) - 1.0).abs() < 1e-4, "{rho} {b}");
                assert!((queue.mean_number() / (b / 2.0) - 1.0).abs() < 1e-4, "{rho} {b}");
                assert!((queue.sojourn() / f64::midpoint(b, 1.0) - 1.0).abs() < 1e-4, "{rho} {b}");
            }
        }
    }

    #[test]
    fn very_small_and_large_loads_are_finite() {
        let full = Mm1b::new(1e9, 10_000).unwrap();
        assert!((full.blocking() - (1.0 - 1e-9)).abs() < 1e-12);
        assert!((full.sojourn() - 10_000.0).abs() < 1e-6);
        let empty = Mm1b::new(1e-300, 10_000).unwrap();
        assert!(empty.blocking() == 0.0 && empty.sojourn() == 1.0);
        assert!((empty.busy() / 1e-300 - 1.0).abs() < 1e-12);
        assert!(Mm1b::new(0.0, 5).is_some_and(|queue| queue.blocking() == 0.0));
        assert!(Mm1b::new(f64::NAN, 5).is_none() && Mm1b::new(1.0, 0).is_none());
    }

    #[test]
    fn the_transform_of_the_wait_by_hand() {
        // ρ = 1/2, B = 2: 2/3 find the system empty, 1/3 wait for one service, whose transform at s
        // = 1 is 1/2.
        let queue = Mm1b::new(0.5, 2).unwrap();
        assert!((queue.log_wait_transform(1.0).exp() - (2.0 / 3.0 + 1.0 / 6.0)).abs() < 1e-14);
        assert_eq!(Mm1b::new(0.0, 5).unwrap().log_wait_transform(3.0), 0.0);
        // Far above full load a packet waits for B − 1 services.
        let full = Mm1b::new(1e9, 101).unwrap().log_wait_transform(1.0);
        assert!((full + 100.0 * 2_f64.ln()).abs() < 1e-6, "{full}");
    }

    proptest! {
        #[test]
        fn the_slope_of_the_transform_is_the_mean_wait(log in -3.0..3.0_f64, b in 1_u32..300) {
            let queue = Mm1b::new(log.exp(), b).unwrap();
            let wait = queue.sojourn() - 1.0;
            let slope = -queue.log_wait_transform(1e-7) / 1e-7;
            prop_assert!((slope - wait).abs() < 1e-3 * wait + 1e-6, "{slope} {wait}");
            // Jensen's inequality.
            prop_assert!(queue.log_wait_transform(0.3) >= -0.3 * wait - 1e-9);
        }

        #[test]
        fn agrees_with_the_balance_equations(log in -3.0..3.0_f64, b in 1_u32..300) {
            let rho = log.exp();
            let queue = Mm1b::new(rho, b).unwrap();
            let states = directly(rho, b);
            let number: f64 = (0_u32..).zip(&states).map(|(k, p)| f64::from(k) * p).sum();
            // Below the smallest normal number both have lost their precision.
            let full = states[b as usize];
            prop_assert!((queue.blocking() - full).abs() < 1e-10 * full + f64::MIN_POSITIVE);
            prop_assert!((queue.busy() / (1.0 - states[0]) - 1.0).abs() < 1e-9);
            prop_assert!((queue.mean_number() / number - 1.0).abs() < 1e-9);
            // Little's law, with the accepted arrivals.
            let accepted = rho * (1.0 - queue.blocking());
            prop_assert!((queue.sojourn() * accepted / number - 1.0).abs() < 1e-9);
        }

        #[test]
        fn loss_grows_with_load_and_falls_with_capacity(log in -7.0..7.0_f64, b in 1_u32..10_000) {
            let at = |log: f64, b| Mm1b::new(log.exp(), b).unwrap().blocking();
            let loss = at(log, b);
            prop_assert!((0.0..=1.0).contains(&loss));
            prop_assert!(at(log + 1e-3, b) >= loss);
            prop_assert!(at(log, b + 1) <= loss);
        }
    }
}
