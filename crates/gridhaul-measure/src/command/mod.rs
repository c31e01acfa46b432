//! The commands.

pub(crate) mod efficiency;
pub(crate) mod latency;
pub(crate) mod outage;
pub(crate) mod reliability;
mod report;
mod run;

/// Exit code of a run that ended early.
pub(crate) const FAULT: u8 = 1;

/// Exit code of invalid input or a missing feature of the machine.
pub(crate) const INVALID_INPUT: u8 = 2;

/// Exit code after Ctrl-C or SIGTERM: 128 + SIGINT, the convention of shells.
pub(crate) const INTERRUPTED: u8 = 130;
