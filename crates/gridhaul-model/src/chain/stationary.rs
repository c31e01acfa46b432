//! The stationary distribution by the elimination of Grassmann, Taksar and Heyman (Operations
//! Research 33, 1985): Gaussian elimination without a single subtraction, so that no digit is lost
//! however far apart the rates are.

use std::mem;

use super::Chain;

impl Chain {
    /// Share of time spent in each state. Sums to 1. State 0 must be one to which the chain always
    /// comes back; states that cannot be reached from it get 0.
    ///
    /// States are eliminated from the last to the first and only existing transitions are
    /// touched, so that a chain whose late states have few neighbours costs little.
    #[must_use]
    pub fn stationary(&self) -> Vec<f64> {
        let n = self.states().len();
        if n == 0 {
            return Vec::new();
        }
        let mut work = Elimination::new(n);
        for rule in self.rules().iter().filter(|rule| rule.from != rule.to && rule.rate > 0.0) {
            work.add(rule.from, rule.to, rule.rate);
        }
        work.solve()
    }

    /// Largest difference between what flows into a state and out of it, over all that flows.
    #[must_use]
    pub fn imbalance(&self, shares: &[f64]) -> f64 {
        let mut net = vec![0.0; shares.len()];
        let mut total = 0.0;
        for rule in self.rules().iter().filter(|rule| rule.from != rule.to) {
            let flow = shares[rule.from] * rule.rate;
            net[rule.from] -= flow;
            net[rule.to] += flow;
            total += flow;
        }
        let worst = net.iter().fold(0.0_f64, |worst, net| worst.max(net.abs()));
        if total > 0.0 { worst / total } else { 0.0 }
    }
}

/// Rates in a square, with lists of the places that are in use.
struct Elimination {
    n: usize,
    rates: Vec<f64>,
    /// For each state, those that it leads to.
    next: Vec<Vec<u32>>,
    /// For each state, those that lead to it.
    previous: Vec<Vec<u32>>,
}

impl Elimination {
    fn new(n: usize) -> Self {
        let none = || (0..n).map(|_| Vec::with_capacity(8)).collect();
        Self { n, rates: vec![0.0; n * n], next: none(), previous: none() }
    }

    fn add(&mut self, from: usize, to: usize, rate: f64) {
        let place = &mut self.rates[from * self.n + to];
        if *place == 0.0 {
            self.next[from].push(to as u32);
            self.previous[to].push(from as u32);
        }
        *place += rate;
    }

    fn solve(mut self) -> Vec<f64> {
        // Share of `last` for each unit of the states before it.
        let mut leaving = vec![0.0; self.n];
        for last in (1..self.n).rev() {
            let (mut next, mut previous) =
                (mem::take(&mut self.next[last]), mem::take(&mut self.previous[last]));
            next.retain(|&to| (to as usize) < last);
            previous.retain(|&from| (from as usize) < last);
            let out: f64 = next.iter().map(|&to| self.rate(last, to as usize)).sum();
            leaving[last] = out;
            if out <= 0.0 {
                self.previous[last] = previous;
                continue;
            }
            for &from in &previous {
                let from = from as usize;
                let share = self.rate(from, last) / out;
                for &to in next.iter().filter(|&&to| to as usize != from) {
                    let through = share * self.rate(last, to as usize);
                    self.add(from, to as usize, through);
                }
            }
            (self.next[last], self.previous[last]) = (next, previous);
        }
        self.substitute(&leaving)
    }

    fn substitute(&self, leaving: &[f64]) -> Vec<f64> {
        let mut shares = vec![0.0; self.n];
        shares[0] = 1.0;
        let mut sum = 1.0;
        for state in 1..self.n {
            let into: f64 = self.previous[state]
                .iter()
                .map(|&from| shares[from as usize] * self.rate(from as usize, state))
                .sum();
            shares[state] = if leaving[state] > 0.0 { into / leaving[state] } else { 0.0 };
            sum += shares[state];
        }
        for share in &mut shares {
            *share /= sum;
        }
        shares
    }

    fn rate(&self, from: usize, to: usize) -> f64 {
        self.rates[from * self.n + to]
    }
}

#[cfg(test)]
mod tests {
    use crate::chain::{Chain, State};
    use proptest::prelude::*;

    fn chain(n: usize, rates: &[(usize, usize, f64)]) -> Chain {
        let mut chain = Chain::new();
        for _ in 0..n {
            chain.state(State::silent("s"));
        }
        for &(from, to, rate) in rates {
            chain.rule(from, to, rate, "test");
        }
        chain
    }

    #[test]
    fn two_and_three_states_by_hand() {
        let shares = chain(2, &[(0, 1, 1.0), (1, 0, 3.0)]).stationary();
        assert_eq!(shares, [0.75, 0.25]);
        // 0 → 1 → 2 → 0 with times 1, 2 and 4.
        let shares = chain(3, &[(0, 1, 1.0), (1, 2, 0.5), (2, 0, 0.25)]).stationary();
        for (share, expected) in shares.iter().zip([1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0]) {
            assert!((share - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn rates_of_very_different_size_keep_their_digits() {
        let shares =
            chain(3, &[(0, 1, 1e-12), (1, 0, 1e12), (1, 2, 1e-12), (2, 1, 1e12)]).stationary();
        assert!((shares[2] / 1e-48 - 1.0).abs() < 1e-12, "{}", shares[2]);
    }

    #[test]
    fn what_cannot_be_reached_is_never_visited() {
        let shares = chain(3, &[(0, 1, 1.0), (1, 0, 1.0), (2, 0, 1.0)]).stationary();
        assert_eq!(shares, [0.5, 0.5, 0.0]);
    }

    proptest! {
        #[test]
        fn all_flows_balance_and_the_mass_is_one(
            ring in proptest::collection::vec(1e-6..1e6_f64, 2..30),
            more in proptest::collection::vec((0_usize..30, 0_usize..30, 1e-6..1e6_f64), 0..60),
        ) {
            let n = ring.len();
            let mut rates: Vec<_> = ring.iter().enumerate().map(|(i, &r)| (i, (i + 1) % n, r)).collect();
            rates.extend(more.iter().map(|&(from, to, rate)| (from % n, to % n, rate)));
            let chain = chain(n, &rates);
            let shares = chain.stationary();
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(shares.iter().all(|share| *share >= 0.0));
            prop_assert!(chain.imbalance(&shares) < 1e-12);
        }
    }
}
