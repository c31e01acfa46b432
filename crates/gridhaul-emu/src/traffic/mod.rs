//! The applications of a run: one thread with all kernel sockets.

mod coap;
mod connection;
mod datagrams;
mod driver;
mod event_log;
mod managed;
mod row;
mod samples;
mod socket;
mod streams;

pub(crate) use datagrams::NUMBER_BYTES;
pub(crate) use driver::{Sampling, Traffic, TrafficOutcome};
pub(crate) use row::RowTraffic;
