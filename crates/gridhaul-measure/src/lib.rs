//! Measurement of power-grid protocols message by message, over emulated or real networks.
//!
//! * [`method`]: open-loop schedule, message header, accounting by identifier, confidence intervals, validity of a run.
//! * [`protocol`]: protocols behind one trait; [`broker`]: brokers as child processes; [`endpoint`]: protocols over TCP without a
//!   broker, as machines without input or output.
//! * [`settings`]: settings of protocols and brokers as data.
//! * [`network`]: the places where a measurement opens its sockets, on this machine or in an emulated network.
//! * [`systems`]: networks of the laboratory and of the field as scenarios.
//! * [`log`]: one row for each message, in Parquet files.
//! * [`header`]: identification of a message.
//! * [`frame`]: frames of Sampled Values and GOOSE; [`payload`]: encodings of values;
//!   [`overhead`]: bytes of a message by layer, by formula.
//! * [`reserve`]: the study RESERVE D4.6, beside the formulas.
//! * [`corruption`]: fates of bit errors; [`clock`]: offset, drift and steps between two clocks.
//! * [`verdict`]: limits of applications, and whether a measurement meets them.
//! * [`agent`]: runs on two machines; the receiver is at an agent, whose clock is compared with that of this machine.
//! * [`bench`]: a run, from the connection to the summary.
//!
//! The program `gridhaul-measure` is a thin command line over this library.

#![forbid(unsafe_code)]

pub mod agent;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "bench")]
pub mod broker;
pub mod capture;
#[cfg(feature = "bench")]
pub mod clock;
#[cfg(feature = "bench")]
pub mod corruption;
pub mod endpoint;
pub mod frame;
pub mod header;
#[cfg(feature = "bench")]
pub mod log;
#[cfg(feature = "bench")]
pub mod method;
#[cfg(feature = "bench")]
pub mod network;
#[cfg(feature = "bench")]
pub mod overhead;
#[cfg(feature = "bench")]
pub mod payload;
#[cfg(feature = "bench")]
pub mod prediction;
#[cfg(feature = "bench")]
pub mod protocol;
#[cfg(feature = "bench")]
pub mod reserve;
pub mod settings;
#[cfg(feature = "bench")]
pub mod systems;
#[cfg(feature = "bench")]
pub mod verdict;
