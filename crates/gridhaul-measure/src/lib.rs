//! Measurement of power-grid protocols message by message, over emulated or real networks.
//!
//! * [`method`]: open-loop schedule, message header, accounting by identifier, confidence intervals, validity of a run.
//! * [`protocol`]: the protocols of [`gridhaul_protocols`] and of libraries behind one trait; [`broker`]: brokers as child processes.
//! * [`settings`]: settings of protocols and brokers as data.
//! * [`network`]: the places where a measurement opens its sockets, on this machine or in an emulated network.
//! * [`systems`]: networks of the laboratory and of the field as scenarios.
//! * [`log`]: one row for each message, in Parquet files.
//! * [`header`]: identification of a message.
//! * [`reserve`]: the study RESERVE D4.6, beside the formulas; [`traffic`]: packets and bytes of a series of messages, from a capture.
//! * [`clock`]: offset, drift and steps between two clocks.
//! * [`verdict`]: limits of applications, and whether a measurement meets them.
//! * [`agent`]: runs on two machines; the receiver is at an agent, whose clock is compared with that of this machine.
//! * [`mod@bench`]: a run, from the connection to the summary.
//!
//! The program `gridhaul-measure` is a thin command line over this library.

#![forbid(unsafe_code)]

/// Items of the measurement bench. Without this feature the crate has the machines that fuzz targets run, with few dependencies.
macro_rules! bench {
    ($($item:item)*) => { $(#[cfg(feature = "bench")] $item)* };
}

pub mod agent;
pub mod capture;
pub mod header;
pub mod settings;

bench! {
    pub mod bench;
    pub mod broker;
    pub mod clock;
    pub mod log;
    pub mod method;
    pub mod network;
    pub mod prediction;
    pub mod protocol;
    pub mod reserve;
    pub mod systems;
    pub mod traffic;
    pub mod verdict;
}
