//! Tests of scenarios and configurations as files, and of the pages that describe them.

mod errors;
mod files;
#[path = "../golden/mod.rs"]
mod golden;
mod ip;
mod message_terms;
mod power_lines;
mod random;
mod reference;
mod relay;
mod round_trip;
mod routes;
mod sweeps;
mod units;
