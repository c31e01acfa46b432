//! Continuous-time Markov chains that are built from named rules, solved, and drawn.

pub mod aggregator;
pub mod meter;
mod render;
mod stationary;

use std::fmt;

pub use stationary::Elimination;

/// A chain: states, and the rules by which it moves from one to another.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chain {
    states: Vec<State>,
    rules: Vec<Transition>,
}

/// A state of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// What the sender does in it.
    pub phase: &'static str,
    /// Segments that are sent in one round.
    pub segments: u32,
    /// Those of them that were never sent before.
    pub fresh: u32,
    /// How many of them are expected to arrive.
    pub arriving: f64,
    /// Rounds per second spent in the state.
    pub rounds: f64,
    /// Another number that tells it from others, with its name: slow-start threshold, doublings of
    /// the timeout.
    pub mark: Option<(&'static str, u32)>,
}

/// A transition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// Index of the state that is left.
    pub from: usize,
    /// Index of the state that follows.
    pub to: usize,
    /// Transitions per second spent in `from`.
    pub rate: f64,
    /// Why, and where that is written.
    pub text: &'static str,
}

/// What a sender sends, in segments per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// All segments, repeats included.
    pub offered: f64,
    /// Segments that were never sent before.
    pub fresh: f64,
    /// Segments that arrive, repeats included.
    pub arriving: f64,
}

impl State {
    /// A state in which nothing is sent.
    #[must_use]
    pub const fn silent(phase: &'static str) -> Self {
        Self { phase, segments: 0, fresh: 0, arriving: 0.0, rounds: 0.0, mark: None }
    }
}

impl Chain {
    /// A chain without states.
    #[must_use]
    pub const fn new() -> Self {
        Self { states: Vec::new(), rules: Vec::new() }
    }

    /// A chain without states, with room for some.
    #[must_use]
    pub fn with_capacity(states: usize, rules: usize) -> Self {
        Self { states: Vec::with_capacity(states), rules: Vec::with_capacity(rules) }
    }

    /// Adds a state and returns its index.
    pub fn state(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    /// Adds a rule. ModelRules that never happen (rate 0) and those that change nothing are kept for
    /// the drawing and do not count.
    pub fn transition(&mut self, from: usize, to: usize, rate: f64, text: &'static str) {
        debug_assert!(rate >= 0.0 && rate.is_finite(), "{text}: rate {rate}");
        self.rules.push(Transition { from, to, rate, text });
    }

    /// What is sent in the stationary state.
    #[must_use]
    pub fn rates(&self, shares: &[f64]) -> Rates {
        let mut rates = Rates::default();
        for (state, share) in self.states.iter().zip(shares) {
            rates.offered += share * state.rounds * f64::from(state.segments);
            rates.fresh += share * state.rounds * f64::from(state.fresh);
            rates.arriving += share * state.rounds * state.arriving;
        }
        rates
    }

    /// The states in the order of their indices.
    #[must_use]
    pub fn states(&self) -> &[State] {
        &self.states
    }

    /// The rules in the order in which they were stated.
    #[must_use]
    pub fn transitions(&self) -> &[Transition] {
        &self.rules
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phase)?;
        if self.segments > 0 {
            write!(f, " {}", self.segments)?;
        }
        match self.mark {
            Some((name, value)) => write!(f, " ({name} {value})"),
            None => Ok(()),
        }
    }
}
