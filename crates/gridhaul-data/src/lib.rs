//! Data files beside a scenario and its answer: recorded traces, series in Parquet and captures in
//! pcapng. Reading a scenario opens none of them; [`trace::load_scenario`] and [`trace::check`] do.

#![forbid(unsafe_code)]

pub mod pcapng;
pub mod series;
pub mod trace;
