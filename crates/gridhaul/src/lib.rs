//! gridhaul as a library: run, sweep, compare and plan scenarios, and reproduce papers, with plain
//! Rust types. The library does not print, does not read the command line and does not end the
//! process; an [`Observer`] receives the progress and may interrupt the work. The command line is a
//! thin layer on top, and part of the library only so that the Python package has it too.
//!
//! ```
//! use gridhaul::scenario::answer::Metric;
//! use gridhaul::scenario::backend::NoProgress;
//! use gridhaul::scenario::Scenario;
//!
//! let text = r#"
//!     title = "A download"
//!     duration = "2 s"
//!     [node]
//!     head = {}
//!     meter = {}
//!     [link.feeder]
//!     from = "head"
//!     to = "meter"
//!     both = { rate = "1 Mbit/s", delay = "10 ms" }
//!     [flow.download]
//!     from = "head"
//!     to = "meter"
//!     load = "bulk"
//! "#;
//! let scenario = Scenario::from_toml(text, "download.toml")?;
//! let answers = gridhaul::run(&scenario, &gridhaul::Engine::default(), "download", &NoProgress)?;
//! let flow = &answers[0].points[0].flows[0];
//! let goodput = flow.metrics[&Metric::Goodput].mean.unwrap();
//! assert!((0.8e6..1e6).contains(&goodput), "{goodput} bit/s");
//!
//! // The same for two rates: a point for each.
//! let vary: gridhaul::Vary = "link.feeder.both.rate=1 Mbit/s,2 Mbit/s".parse()?;
//! let engine = gridhaul::Engine::default();
//! let swept = gridhaul::sweep(scenario, &[vary], &engine, "download", &NoProgress)?;
//! assert_eq!(swept[0].points.len(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod capture_simulation;
#[cfg(feature = "cli")]
pub mod command_line;
pub mod compare;
pub mod import;
pub mod natig;
#[cfg(feature = "explore")]
pub mod page_runs;
pub mod paper;
pub mod plan;

#[cfg(feature = "cli")]
mod args;
#[cfg(feature = "cli")]
mod atomic_file;
#[cfg(feature = "cli")]
mod command;
#[cfg(feature = "cli")]
mod concurrent;
#[cfg(feature = "cli")]
mod interrupt;
#[cfg(feature = "cli")]
mod lock;
#[cfg(feature = "cli")]
mod print_options;
#[cfg(feature = "cli")]
mod result_file;
#[cfg(feature = "cli")]
mod results_folder;
#[cfg(feature = "cli")]
mod results_kind;
#[cfg(feature = "cli")]
mod table_layout;
#[cfg(feature = "cli")]
mod terminal;

mod csv_table;
mod emulation;
mod engine;
mod error;
mod estimate;
mod observer;
mod request;
mod run;
mod unit_sweep;

pub use gridhaul_capture as capture;
pub use gridhaul_report as report;
pub use gridhaul_scenario as scenario;

pub use compare::{Comparison, compare, read_answers};
pub use csv_table::{columns, csv, table_csv, table_json};
pub use emulation::NotBuilt as EmulatorNotBuilt;
pub use engine::{BackendName, Engine};
pub use error::{Error, UnsupportedKeys};
pub use estimate::ensure_memory;
pub use observer::Observer;
pub use paper::paper;
pub use plan::plan;
pub use request::{Changes, Origin, Setting, Vary, change, load};
pub use run::{run, sweep};
pub use unit_sweep::{
    ANSWER_POINTS_MAX, PartPlace, RemoteUnit, Shard, StoredSweep, SweepProgress, TableOutput,
    UnitSweep, shards_of, without_units,
};
