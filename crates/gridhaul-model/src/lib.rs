//! Backend model: analytical equations that solve a scenario in milliseconds.
//!
//! Meters: M/M/1/B queues, Markov chains of TCP senders, and the fixed point at which the offered
//! load of the senders matches the loss and delay of the network (paper `sa-tcp`). Bulk flows: the
//! published formulas of TCP's steady-state throughput.

#![forbid(unsafe_code)]

mod ack_delay;
pub mod chain;
mod connections;
pub mod fixed_point;
mod meters;
mod model;
mod model_rules;
mod nagle;
mod points;
pub mod queue;
mod root_finding;
pub mod steady;
mod time_distribution;

pub use model::Model;
pub use model_rules::ModelRules;
