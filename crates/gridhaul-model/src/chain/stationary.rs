//! The stationary distribution by the elimination of Grassmann, Taksar and Heyman (Operations
//! Research 33, 1985): Gaussian elimination without subtractions, which is accurate for rates of
//! very different magnitude.

use super::{Chain, Transition};

impl Chain {
    /// Stationary probability of each state; the sum is 1. State 0 must be recurrent; states that
    /// cannot be reached from it have probability 0.
    #[must_use]
    pub fn stationary(&self) -> Vec<f64> {
        let mut elimination = Elimination::default();
        elimination.shares(self);
        elimination.shares
    }

    /// Largest difference between the probability flows into and out of a state, relative to the
    /// sum of all flows.
    #[must_use]
    pub fn imbalance(&self, shares: &[f64]) -> f64 {
        let mut net = vec![0.0; shares.len()];
        let mut total = 0.0;
        for transition in
            self.transitions().iter().filter(|transition| transition.from != transition.to)
        {
            let flow = shares[transition.from] * transition.rate;
            net[transition.from] -= flow;
            net[transition.to] += flow;
            total += flow;
        }
        let worst = net.iter().fold(0.0_f64, |worst, net| worst.max(net.abs()));
        if total > 0.0 { worst / total } else { 0.0 }
    }
}

/// An elimination plan that is reused for all chains with the same transitions and different rates.
///
/// States are eliminated from the last to the first, and only existing transitions are processed,
/// so that a chain whose last states have few neighbours is solved fast.
#[derive(Debug, Clone, Default)]
pub struct Elimination {
    /// Source and target of each transition.
    shape: Vec<(u32, u32)>,
    /// Index of each transition's rate in `rates`.
    slots: Vec<u32>,
    /// Elimination steps, from state 1 on.
    steps: Vec<EliminationStep>,
    /// Rates between states; the first element accumulates transitions of a state to itself.
    rates: Vec<f64>,
    /// Total rate of leaving each state.
    leaving: Vec<f64>,
    shares: Vec<f64>,
}

/// Elimination of a state, by indices into `rates`.
#[derive(Debug, Clone, Default)]
struct EliminationStep {
    /// Rates to earlier states.
    next: Vec<u32>,
    /// Earlier states with a transition to this state, and their rates.
    previous: Vec<(u32, u32)>,
    /// For each of `previous`, the rates to be increased: one for each of `next`.
    grow: Vec<u32>,
}

impl Elimination {
    /// As [`Chain::stationary`].
    pub fn shares(&mut self, chain: &Chain) -> &[f64] {
        let n = chain.states().len();
        if self.steps.len() + 1 != n || !self.fill(chain) {
            let ends = |transition: &Transition| (transition.from as u32, transition.to as u32);
            self.shape = chain.transitions().iter().map(ends).collect();
            self.plan(n);
            self.fill(chain);
        }
        self.shares.clear();
        if n > 0 {
            self.eliminate();
            self.substitute();
        }
        &self.shares
    }

    /// Loads the rates of a chain; false if its transitions differ from the plan.
    fn fill(&mut self, chain: &Chain) -> bool {
        self.rates.fill(0.0);
        for (transition, (ends, &slot)) in
            chain.transitions().iter().zip(self.shape.iter().zip(&self.slots))
        {
            if (transition.from as u32, transition.to as u32) != *ends {
                return false;
            }
            self.rates[slot as usize] += transition.rate;
        }
        chain.transitions().len() == self.shape.len()
    }

    /// Determines the rates that arise in the elimination, and those that each step changes.
    fn plan(&mut self, n: usize) {
        let mut plan = EliminationPlan {
            n,
            slots: vec![0; n * n],
            used: 1,
            next: vec![Vec::new(); n],
            previous: vec![Vec::new(); n],
        };
        self.slots =
            self.shape.iter().map(|&(from, to)| plan.slot(from as usize, to as usize)).collect();
        self.steps = vec![EliminationStep::default(); n.saturating_sub(1)];
        for last in (1..n).rev() {
            let step = &mut self.steps[last - 1];
            let before = |states: &Vec<u32>| -> Vec<u32> {
                states.iter().copied().filter(|&state| (state as usize) < last).collect()
            };
            let (next, previous) = (before(&plan.next[last]), before(&plan.previous[last]));
            for &from in &previous {
                step.previous.push((from, plan.slot(from as usize, last)));
                for &to in &next {
                    step.grow.push(plan.slot(from as usize, to as usize));
                }
            }
            step.next = next.iter().map(|&to| plan.slot(last, to as usize)).collect();
        }
        self.rates = vec![0.0; plan.used as usize];
        self.leaving = vec![0.0; n];
    }

    fn eliminate(&mut self) {
        let rates = &mut self.rates;
        for (last, step) in self.steps.iter().enumerate().rev() {
            // The rate of leaving is this sum, not a difference from the total, in which small
            // rates would be cancelled: the reason for the accuracy of the method.
            let out: f64 = step.next.iter().map(|&slot| rates[slot as usize]).sum();
            self.leaving[last + 1] = out;
            if out <= 0.0 {
                continue;
            }
            match &step.next[..] {
                [] => {}
                [a] => step.grow([*a], rates, out),
                [a, b] => step.grow([*a, *b], rates, out),
                [a, b, c] => step.grow([*a, *b, *c], rates, out),
                [a, b, c, d] => step.grow([*a, *b, *c, *d], rates, out),
                [a, b, c, d, e] => step.grow([*a, *b, *c, *d, *e], rates, out),
                _ => step.grow_many(rates, out),
            }
        }
    }

    fn substitute(&mut self) {
        let (rates, shares) = (&self.rates, &mut self.shares);
        shares.push(1.0);
        let mut sum = 1.0;
        for (step, &leaving) in self.steps.iter().zip(&self.leaving[1..]) {
            let flows = step.previous.iter();
            let into: f64 =
                flows.map(|&(from, slot)| shares[from as usize] * rates[slot as usize]).sum();
            // A state that is never left for an earlier one is not reached from state 0.
            let share = if leaving > 0.0 { into / leaving } else { 0.0 };
            shares.push(share);
            sum += share;
        }
        for share in shares {
            *share /= sum;
        }
    }
}

impl EliminationStep {
    /// Increases the rates between earlier states, for a state that is left at the rate `out` to
    /// `N` of them (`next`). Most states have few, and a loop of known length has no counter.
    fn grow<const N: usize>(&self, next: [u32; N], rates: &mut [f64], out: f64) {
        let next = next.map(|slot| rates[slot as usize]);
        let (rows, _) = self.grow.as_chunks::<N>();
        for (&(_, into), row) in self.previous.iter().zip(rows) {
            let share = rates[into as usize] / out;
            for (next, &grow) in next.iter().zip(row) {
                rates[grow as usize] += share * next;
            }
        }
    }

    /// As [`Self::grow`], for any number of earlier states.
    fn grow_many(&self, rates: &mut [f64], out: f64) {
        for (&(_, into), row) in self.previous.iter().zip(self.grow.chunks(self.next.len())) {
            let share = rates[into as usize] / out;
            for (&next, &grow) in self.next.iter().zip(row) {
                rates[grow as usize] += share * rates[next as usize];
            }
        }
    }
}

/// Neighbours of each state during planning.
struct EliminationPlan {
    n: usize,
    /// Index of each rate, as a square matrix; 0 if there is none yet.
    slots: Vec<u32>,
    used: u32,
    next: Vec<Vec<u32>>,
    previous: Vec<Vec<u32>>,
}

impl EliminationPlan {
    fn slot(&mut self, from: usize, to: usize) -> u32 {
        if from == to {
            return 0;
        }
        let slot = &mut self.slots[from * self.n + to];
        if *slot == 0 {
            *slot = self.used;
            self.used += 1;
            self.next[from].push(to as u32);
            self.previous[to].push(from as u32);
        }
        *slot
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
            chain.transition(from, to, rate, "test");
        }
        chain
    }

    #[test]
    fn two_and_three_states_by_hand() {
        let shares = chain(2, &[(0, 1, 1.0), (1, 0, 3.0)]).stationary();
        assert_eq!(shares, [0.75, 0.25]);
        // 0 → 1 → 2 → 0 with mean times 1, 2 and 4.
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
    fn unreachable_states_have_probability_zero() {
        let shares = chain(3, &[(0, 1, 1.0), (1, 0, 1.0), (2, 0, 1.0)]).stationary();
        assert_eq!(shares, [0.5, 0.5, 0.0]);
    }

    #[test]
    fn a_plan_is_reused_for_other_rates_and_replaced_for_other_transitions() {
        let mut elimination = super::Elimination::default();
        for rate in [3.0, 1.0, 0.0] {
            let chain = chain(3, &[(0, 1, 1.0), (1, 0, 3.0), (1, 2, rate), (2, 0, 1.0)]);
            assert_eq!(elimination.shares(&chain), chain.stationary());
        }
        let other = chain(2, &[(0, 1, 1.0), (1, 0, 3.0)]);
        assert_eq!(elimination.shares(&other), [0.75, 0.25]);
    }

    proptest! {
        #[test]
        fn flows_balance_and_probabilities_sum_to_one(
            ring in proptest::collection::vec(1e-6..1e6_f64, 2..30),
            more in proptest::collection::vec((0_usize..30, 0_usize..30, 1e-6..1e6_f64), 0..60),
        ) {
            let n = ring.len();
            let mut rates: Vec<_> = ring.iter().enumerate().map(|(i, &r)| (i, (i + 1) % n,
                r)).collect();
            rates.extend(more.iter().map(|&(from, to, rate)| (from % n, to % n, rate)));
            let chain = chain(n, &rates);
            let shares = chain.stationary();
            prop_assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(shares.iter().all(|share| *share >= 0.0));
            prop_assert!(chain.imbalance(&shares) < 1e-12);
        }
    }
}
