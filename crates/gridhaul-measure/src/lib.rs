//! Measurement of power-grid protocols message by message, over emulated or real networks.
//!
//! * [`measurement`]: a measurement as a value, of options or of a file.
//! * [`experiment`]: a measurement, in one run or several; [`mod@run`]: one run; [`report`]:
//!   tables, JSON, charts and HTML of a run.
//! * [`place`]: the networks in which a measurement opens its sockets, on this machine or emulated;
//!   [`systems`]: systems of the laboratory and of the field as scenarios.
//! * [`protocol`]: the protocols of [`gridhaul_protocols`] and of libraries behind one trait;
//!   [`broker`]: brokers as child processes.
//! * [`transfer`]: the messages of a run, from the generator to the accounting; [`method`]:
//!   open-loop schedule, accounting by identifier, confidence intervals, validity of a run.
//! * [`log`]: one row for each message, in Parquet files; [`settings`]: settings of a result.
//! * [`capture`]: packets of both ends of the network; [`traffic`]: packets and bytes of a series
//!   of messages; [`message_sizes`]: bytes of a message by formula.
//! * [`clock`]: offset, drift and steps between two clocks; [`agent`]: runs on two machines; the
//!   receiver is at an agent, whose clock is compared with that of this machine.
//! * [`prediction`]: the same messages in the simulator; [`verdict`]: limits of applications, and
//!   whether a measurement meets them.
//!
//! The program `gridhaul-measure` is a thin command line over this library.

#![forbid(unsafe_code)]

pub mod agent;
pub mod broker;
pub mod capture;
pub mod clock;
pub mod experiment;
pub mod log;
pub mod measurement;
pub mod message_sizes;
pub mod method;
pub mod place;
pub mod prediction;
pub mod protocol;
pub mod report;
pub mod results_folder;
pub mod run;
pub mod settings;
pub mod systems;
pub mod traffic;
pub mod transfer;
pub mod verdict;
