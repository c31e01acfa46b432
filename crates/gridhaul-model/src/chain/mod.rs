//! Continuous-time Markov chains of TCP senders: construction, stationary distribution and output.

pub mod aggregator;
pub mod meter;
mod render;
mod stationary;

use std::fmt;

pub use stationary::Elimination;

/// A chain of states and transitions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chain {
    states: Vec<State>,
    transitions: Vec<Transition>,
}

/// A state of a sender.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct State {
    /// Name of the sender's phase.
    pub phase: &'static str,
    /// Segments sent per round.
    pub segments: u32,
    /// Segments sent per round for the first time.
    pub fresh: u32,
    /// Mean number of segments per round that arrive.
    pub arriving: f64,
    /// Rounds per second spent in the state.
    pub rounds: f64,
    /// A further attribute of the state, with its name: slow-start threshold, doublings of the
    /// timeout.
    pub mark: Option<(&'static str, u32)>,
}

/// A transition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Transition {
    /// Index of the source state.
    pub from: usize,
    /// Index of the target state.
    pub to: usize,
    /// Transitions per second spent in `from`.
    pub rate: f64,
    /// The reason, with its source.
    pub reason: &'static str,
}

/// Rates of a sender, in segments per second.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Rates {
    /// All segments sent, retransmissions included.
    pub offered: f64,
    /// Segments sent for the first time.
    pub fresh: f64,
    /// Segments that arrive, retransmissions included.
    pub arriving: f64,
}

impl State {
    /// A state without transmissions.
    #[must_use]
    pub const fn silent(phase: &'static str) -> Self {
        Self { phase, segments: 0, fresh: 0, arriving: 0.0, rounds: 0.0, mark: None }
    }
}

impl Chain {
    /// A chain without states.
    #[must_use]
    pub const fn new() -> Self {
        Self { states: Vec::new(), transitions: Vec::new() }
    }

    /// A chain without states, with reserved capacity.
    #[must_use]
    pub fn with_capacity(states: usize, transitions: usize) -> Self {
        Self { states: Vec::with_capacity(states), transitions: Vec::with_capacity(transitions) }
    }

    /// Adds a state and returns its index.
    pub fn state(&mut self, state: State) -> usize {
        self.states.push(state);
        self.states.len() - 1
    }

    /// Adds a transition. Transitions with rate 0 and those to the same state appear in the output
    /// and do not affect the stationary distribution.
    pub fn transition(&mut self, from: usize, to: usize, rate: f64, reason: &'static str) {
        debug_assert!(rate >= 0.0 && rate.is_finite(), "{reason}: rate {rate}");
        self.transitions.push(Transition { from, to, rate, reason });
    }

    /// Mean rates in the stationary state.
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

    /// The transitions in the order in which they were added.
    #[must_use]
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
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
