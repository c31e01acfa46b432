//! Tests of scenarios and configurations as files.

mod errors;
mod files;
mod ip;
mod message_terms;
mod power_lines;
mod random;
mod relay;
mod round_trip;
mod routes;
mod sweeps;
mod units;
