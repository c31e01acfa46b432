//! Backend model: equations that answer a scenario in milliseconds.
//!
//! Queues with limited room, Markov chains of TCP senders built from stated rules, and a fixed
//! point between what the senders offer and what the network does with it (paper `sa-tcp`). For
//! bulk flows, the published formulas of TCP's steady state.

#![forbid(unsafe_code)]

pub mod chain;
pub mod fixed_point;
mod meters;
mod model;
pub mod queue;
mod root;
mod rules;
mod spread;
pub mod steady;

pub use model::{Model, PaperModel};
pub use rules::Rules;
