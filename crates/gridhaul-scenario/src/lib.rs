//! Scenarios, answers and their units: the interface between gridhaul's front ends and its
//! backends. Every backend reads a scenario and returns an answer.

#![forbid(unsafe_code)]

pub mod answer;
pub mod backend;
#[cfg(any(test, feature = "schema"))]
pub mod reference;
pub mod relay;
pub mod scenario;
pub mod schema;
pub mod table;
pub mod units;

mod run_error;

pub use answer::Answer;
pub use backend::Backend;
pub use relay::RelayConfig;
pub use scenario::Scenario;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
