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
mod model_rules;
pub mod queue;
mod root_finding;
pub mod steady;
mod time_distribution;

pub use model::{Model, PaperModel};
pub use model_rules::ModelRules;
