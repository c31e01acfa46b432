//! Measurement of power-grid protocols message by message, over emulated or real networks.
//!
//! * [`method`]: open-loop schedule, message header, accounting by identifier, confidence intervals, validity of a run.
//! * [`protocol`]: protocols behind one trait; [`broker`]: brokers as child processes.
//! * [`network`]: the places where a measurement opens its sockets, on this machine or in an emulated network.
//! * [`log`]: one row for each message, in Parquet files.
//! * [`frame`]: frames of Sampled Values and GOOSE; [`payload`]: encodings of values;
//!   [`overhead`]: bytes of a message by layer, by formula.
//! * [`reserve`]: the study RESERVE D4.6, beside the formulas.
//! * [`verdict`]: limits of applications, and whether a measurement meets them.
//! * [`bench`]: a run, from the connection to the summary.
//!
//! The program `gridhaul-measure` is a thin command line over this library.

#![forbid(unsafe_code)]

pub mod bench;
pub mod broker;
pub mod frame;
pub mod log;
pub mod method;
pub mod network;
pub mod overhead;
pub mod payload;
pub mod protocol;
pub mod reserve;
pub mod verdict;
