//! The contract of gridhaul: what is asked (a scenario), what is answered (an answer), and the
//! units both are written in. Every backend reads the first and returns the second.

#![forbid(unsafe_code)]

pub mod answer;
pub mod backend;
pub mod reference;
pub mod scenario;
pub mod schema;
pub mod units;

pub use answer::Answer;
pub use backend::Backend;
pub use scenario::Scenario;
