//! Experiments of several runs: functions from measurements to results.

pub mod cells;
pub mod matrix;
pub mod rate;
pub mod repetitions;
pub mod reserve;
