//! The page of `gridhaul explore`: a scenario with sliders, whose runs are drawn at once, the
//! packets of a connection, the points of stored results, and the connections of a capture.
//!
//! [`Explorer::handle`] answers a request without I/O: in the program, whose server has the feature
//! `server`, or in a browser. The caller passes a [`Runner`], so that this crate depends on no
//! backend. The files of the page are part of the program, and the page loads nothing from
//! elsewhere.
//!
//! Only pages of the server can use it: see `Access`.

#![forbid(unsafe_code)]

#[cfg(feature = "server")]
mod access;
mod assets;
mod cancellation;
mod capture_view;
mod command;
mod explorer;
mod http;
mod packets_view;
mod results_view;
mod runner;
mod scenario_view;
mod sequence_data;
#[cfg(feature = "server")]
mod server;
mod subject;

#[cfg(feature = "server")]
pub use access::{Access, token};
pub use cancellation::Cancellation;
pub use explorer::Explorer;
pub use http::{Request, Response};
pub use runner::{CaptureOptions, Changes, RunBackend, RunFailure, Runner, SimulatedCapture};
#[cfg(feature = "server")]
pub use server::serve;
pub use subject::{Capture, Results, Subject};
