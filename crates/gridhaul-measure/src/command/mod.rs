//! The commands.

pub(crate) mod agent;
mod charts;
pub(crate) mod corruption;
mod disturbance;
pub(crate) mod efficiency;
mod idle_states;
pub(crate) mod latency;
pub(crate) mod outage;
mod page;
mod path;
mod place;
mod prediction;
mod protocols;
pub(crate) mod rate;
pub(crate) mod reliability;
mod remote;
mod remote_report;
mod repetitions;
mod report;
pub(crate) mod reserve;
mod run;
pub(crate) mod sync;
mod verdicts;

/// Exit code of a run that ended early.
pub(crate) const FAULT: u8 = 1;

/// Exit code of invalid input or a missing feature of the machine.
pub(crate) const INVALID_INPUT: u8 = 2;

/// Exit code of an application class that is not met, or not decidable.
pub(crate) const NOT_MET: u8 = 3;

/// Exit code after Ctrl-C or SIGTERM: 128 + SIGINT, the convention of shells.
pub(crate) const INTERRUPTED: u8 = 130;
