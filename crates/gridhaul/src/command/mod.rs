//! The commands, one module each.

pub(crate) mod build_report;
#[cfg(feature = "emulation")]
pub(crate) mod cc;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod doctor;
#[cfg(feature = "emulation")]
pub(crate) mod emu;
pub(crate) mod error;
pub(crate) mod explain;
pub(crate) mod explore;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod model;
pub(crate) mod paper;
pub(crate) mod plan;
pub(crate) mod program;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod sweep;
