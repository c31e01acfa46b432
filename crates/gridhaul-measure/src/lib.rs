//! Measurement of power-grid protocols message by message, over emulated or real networks.
//!
//! * [`measurement`]: a measurement as a value, of options or of a file; [`mod@run`]: its run, and
//!   [`experiment`]: several runs; [`report`]: tables, JSON, charts and HTML of results.
//! * [`place`]: the networks in which a measurement opens its sockets, on this machine or emulated;
//!   systems of the laboratory and of the field as scenarios.
//! * [`protocol`]: the protocols of [`gridhaul_protocols`] and of libraries behind one trait;
//!   [`broker`]: brokers as child processes.
//! * [`method`]: open-loop schedule, message header, accounting by identifier, confidence
//!   intervals, validity of a run.
//! * [`settings`]: settings of protocols and brokers as data, and those of a result.
//! * [`log`]: one row for each message, in Parquet files; [`header`]: identification of a message.
//! * [`capture`]: captured packets; [`traffic`]: packets and bytes of a series of messages.
//! * [`clock`]: offset, drift and steps between two clocks.
//! * [`prediction`]: the same messages in the simulator; [`verdict`]: limits of applications, and
//!   whether a measurement meets them.
//! * [`agent`]: runs on two machines; the receiver is at an agent, whose clock is compared with
//!   that of this machine.
//!
//! The program `gridhaul-measure` is a thin command line over this library.

#![forbid(unsafe_code)]

/// Items of the measurement bench. Without this feature the crate has the machines that fuzz
/// targets run, with few dependencies.
macro_rules! bench {
    ($($item:item)*) => { $(#[cfg(feature = "bench")] $item)* };
}

pub mod agent;
pub mod capture;
pub mod header;
pub mod settings;

bench! {
    pub mod broker;
    pub mod clock;
    pub mod experiment;
    pub mod log;
    pub mod measurement;
    pub mod method;
    pub mod place;
    pub mod prediction;
    pub mod protocol;
    pub mod report;
    pub mod run;
    pub mod traffic;
    pub mod verdict;
}
