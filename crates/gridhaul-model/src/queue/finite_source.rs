//! A queue whose senders wait for their own messages: an aggregator that closes the receive window
//! of a meter until its message has left the buffer (`when_full = "backpressure"`).
//!
//! M sources share one server. A source that has a message in the system offers no other, so that
//! the arrival rate falls while the queue grows: the machine-repair model M/M/1//M (Kleinrock 1975,
//! section 3.8), here with at most B messages in the system. With arrival rate λ of a source that
//! waits for nothing and service rate μ, the number m of such sources has the probabilities
//!
//! p(m) ∝ aᵐ/m!, a = μ/λ, M − min(B, M) ≤ m ≤ M,
//!
//! a truncated Poisson distribution. For B ≥ M nothing is lost, and the utilisation is one minus
//! Erlang's loss formula for a and M.

use super::delay::poisson;

/// The queue in its stationary state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FiniteSource {
    /// a = μ/λ.
    ratio: f64,
    /// Range of the number of sources without a message in the system.
    minimum: f64,
    sources: f64,
    /// Utilisation of the server.
    pub busy: f64,
    /// Share of the arrivals that find B messages in the system.
    pub blocking: f64,
    /// Mean number of messages in the system.
    pub mean_number: f64,
}

/// Terms below this fraction of the largest are omitted.
const NEGLIGIBLE: f64 = 1e-18;

impl FiniteSource {
    /// A queue with `sources` sources and a capacity of `capacity` messages, the one in service
    /// included. ρ is the offered load if no source had to wait: M λ/μ. `None` if the load is
    /// negative, infinite or not a number, or there is no source or no capacity.
    #[must_use]
    pub fn new(rho: f64, sources: u32, capacity: u32) -> Option<Self> {
        if !(rho >= 0.0 && rho.is_finite()) || sources == 0 || capacity == 0 {
            return None;
        }
        let all = f64::from(sources);
        let mut queue = Self {
            ratio: all / rho.max(f64::MIN_POSITIVE),
            minimum: f64::from(sources.saturating_sub(capacity)),
            sources: all,
            busy: 0.0,
            blocking: 0.0,
            mean_number: 0.0,
        };
        let (mut sum, mut busy, mut number, mut free, mut blocked) = (0.0, 0.0, 0.0, 0.0, 0.0);
        queue.for_each(|m, weight| {
            sum += weight;
            // Summed directly: one minus the rest would cancel at low loads.
            busy += if m < all { weight } else { 0.0 };
            number += (all - m) * weight;
            free += m * weight;
            blocked += if m <= queue.minimum { m * weight } else { 0.0 };
        });
        queue.busy = busy / sum;
        queue.mean_number = number / sum;
        queue.blocking = if free > 0.0 { blocked / free } else { 0.0 };
        Some(queue)
    }

    /// Mean time that an accepted message waits before its own service, in service times, by
    /// Little's law.
    #[must_use]
    pub fn wait(&self) -> f64 {
        if self.busy > 0.0 { (self.mean_number / self.busy - 1.0).max(0.0) } else { 0.0 }
    }

    /// ln E[e^(−sW)] for this wait.
    #[must_use]
    pub fn log_wait_transform(&self, s: f64) -> f64 {
        let step = s.ln_1p();
        let (mut sum, mut accepted) = (0.0, 0.0);
        self.for_each_found(|found, weight| {
            accepted += weight;
            // The transform of so many exponential services; e^(−700) is the smallest number.
            sum += weight * (-(found * step).min(700.0)).exp();
        });
        if accepted > 0.0 { (sum / accepted).ln() } else { 0.0 }
    }

    /// P(W ≤ t) for this wait and t service times: at most t for the services of all messages
    /// found.
    #[must_use]
    pub fn waits_within(&self, t: f64) -> f64 {
        let mut found_at: Vec<(f64, f64)> = Vec::new();
        self.for_each_found(|found, weight| found_at.push((found, weight)));
        found_at.sort_by(|one, other| one.0.total_cmp(&other.0));
        let accepted: f64 = found_at.iter().map(|entry| entry.1).sum();
        if accepted <= 0.0 || t < 0.0 {
            return if t < 0.0 { 0.0 } else { 1.0 };
        }
        // k services are finished after t if a Poisson variable of mean t is at least k; `fewer` is
        // the probability of fewer than k, from where it is not negligible.
        let mut i = (t - 10.0 * t.sqrt() - 10.0).floor().max(0.0);
        let (mut fewer, mut within) = (0.0, 0.0);
        for (found, weight) in found_at {
            while i < found && t > 0.0 {
                fewer += poisson(i, t);
                i += 1.0;
            }
            let finished = if found == 0.0 { 1.0 } else { 1.0 - fewer };
            within += weight * if t > 0.0 || found == 0.0 { finished.max(0.0) } else { 0.0 };
        }
        (within / accepted).clamp(0.0, 1.0)
    }

    /// Time that is exceeded with a probability below 1e-4, in service times.
    #[must_use]
    pub(crate) fn longest(&self) -> f64 {
        let mut maximum = 0.0_f64;
        let mut largest = 0.0_f64;
        self.for_each_found(|_, weight| largest = largest.max(weight));
        self.for_each_found(|found, weight| {
            if weight > largest * 1e-6 {
                maximum = maximum.max(found);
            }
        });
        maximum + 4.0 * maximum.sqrt() + 10.0
    }

    /// The number of messages that an accepted message finds, with weights.
    fn for_each_found(&self, mut visit: impl FnMut(f64, f64)) {
        // A source that waits for nothing offers the message: m of them offer m times as many.
        self.for_each(|m, weight| {
            if m > self.minimum {
                visit(self.sources - m, m * weight);
            }
        });
        // Sources that all wait (m = 0) offer nothing.
    }

    /// Number of sources without a message in the system, with weights from the largest outwards.
    fn for_each(&self, mut visit: impl FnMut(f64, f64)) {
        let mode = self.ratio.floor().clamp(self.minimum, self.sources);
        visit(mode, 1.0);
        let (mut m, mut weight) = (mode, 1.0);
        while m > self.minimum && weight > NEGLIGIBLE {
            weight *= m / self.ratio;
            m -= 1.0;
            visit(m, weight);
        }
        (m, weight) = (mode, 1.0);
        while m < self.sources && weight > NEGLIGIBLE {
            m += 1.0;
            weight *= self.ratio / m;
            visit(m, weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Balance equations of the birth-death chain, from 0 to B messages in the system.
    fn directly(rho: f64, sources: u32, capacity: u32) -> Vec<f64> {
        let per_source = rho / f64::from(sources);
        let mut weights = vec![1.0];
        for n in 0..capacity.min(sources) {
            weights.push(weights[n as usize] * f64::from(sources - n) * per_source);
        }
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn two_sources_by_hand() {
        // λ = μ, M = 2: weights 1, 2, 2; busy 4/5; L = 6/5; each waits (6/5)/(4/5) − 1 = 1/2
        // services.
        let queue = FiniteSource::new(2.0, 2, 2).unwrap();
        assert!((queue.busy - 0.8).abs() < 1e-14 && (queue.mean_number - 1.2).abs() < 1e-14);
        assert!((queue.wait() - 0.5).abs() < 1e-14 && queue.blocking == 0.0);
        // A message finds the system empty with weight 2 · 1, and one other with weight 1 · 2.
        assert!((queue.waits_within(0.0) - 0.5).abs() < 1e-14);
        assert!((queue.waits_within(1.0) - (1.0 - 0.5 * (-1.0_f64).exp())).abs() < 1e-14);
        assert!((queue.log_wait_transform(1.0).exp() - 0.75).abs() < 1e-14);
        // One place: weights 1, 2; arrivals 2 · 1 and 1 · 2 of which the latter are lost.
        let queue = FiniteSource::new(2.0, 2, 1).unwrap();
        assert!((queue.blocking - 0.5).abs() < 1e-14 && (queue.busy - 2.0 / 3.0).abs() < 1e-14);
    }

    #[test]
    fn overload_leaves_only_the_sources_that_the_server_supplies() {
        // 8,000 meters that report every 60 s, 20.8 messages/s: 1,250 pause, 6,750 wait for
        // 6,750/20.8 s.
        let (think, service) = (60.0, 1.0 / 20.8);
        let queue = FiniteSource::new(8000.0 * service / think, 8000, 8000).unwrap();
        assert!((queue.mean_number - (8000.0 - 1248.0)).abs() < 1.0);
        assert!((queue.busy - 1.0).abs() < 1e-12 && queue.blocking == 0.0);
        assert!((queue.wait() * service - 6752.0 / 20.8).abs() < 0.2);
        assert!((queue.waits_within(queue.wait()) - 0.5).abs() < 0.02);
        assert!(queue.waits_within(queue.longest()) > 0.9999);
    }

    #[test]
    fn impossible_and_extreme_inputs() {
        assert!(FiniteSource::new(f64::NAN, 5, 5).is_none());
        assert!(FiniteSource::new(1.0, 0, 5).is_none() && FiniteSource::new(1.0, 5, 0).is_none());
        let empty = FiniteSource::new(0.0, 400_000, 400_000).unwrap();
        assert!(empty.busy < 1e-300 && empty.wait() == 0.0 && empty.waits_within(0.0) == 1.0);
        let full = FiniteSource::new(1e30, 100, 100).unwrap();
        assert!((full.mean_number - 100.0).abs() < 1e-9 && (full.wait() - 99.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn agrees_with_the_balance_equations(
            log in -3.0..3.0_f64, sources in 1_u32..200, capacity in 1_u32..250,
        ) {
            let rho = log.exp();
            let queue = FiniteSource::new(rho, sources, capacity).unwrap();
            let states = directly(rho, sources, capacity);
            let number: f64 = (0_u32..).zip(&states).map(|(n, p)| f64::from(n) * p).sum();
            prop_assert!((queue.mean_number - number).abs() < 1e-9 * number.max(1.0));
            prop_assert!((queue.busy - (1.0 - states[0])).abs() < 1e-9);
            // Conservation: accepted arrivals = departures.
            let free = f64::from(sources) - number;
            let accepted = rho / f64::from(sources) * free * (1.0 - queue.blocking);
            prop_assert!((accepted / queue.busy - 1.0).abs() < 1e-9);
        }

        #[test]
        fn many_sources_approach_the_open_queue(log in -2.0..1.0_f64, capacity in 1_u32..40) {
            let rho = log.exp();
            let closed = FiniteSource::new(rho, 4_000_000, capacity).unwrap();
            let open = crate::queue::Mm1b::new(rho, capacity).unwrap();
            prop_assert!((closed.blocking - open.blocking()).abs() < 1e-3);
            prop_assert!((closed.wait() - (open.sojourn() - 1.0)).abs() < 1e-2);
            let s = 0.3;
            let difference = closed.log_wait_transform(s) - open.log_wait_transform(s);
            prop_assert!(difference.abs() < 1e-2);
        }
    }
}
