//! Runtime of all roles: event loop, connections, signals, upgrade, log thread and status page.
//!
//! Nothing here depends on a role.

pub(crate) mod committer;
pub(crate) mod connector;
pub(crate) mod credentials;
mod error;
pub(crate) mod event_loop;
pub(crate) mod listener;
pub(crate) mod listening_sockets;
pub(crate) mod local_address;
pub(crate) mod log_folder;
pub(crate) mod management;
pub(crate) mod poll;
pub(crate) mod program;
mod random;
pub(crate) mod record_age;
pub(crate) mod report;
mod signals;
pub(crate) mod socket;
pub(crate) mod stream;
pub(crate) mod systemd;
pub(crate) mod tls;
pub(crate) mod upgrade;

pub use error::RunError;
pub(crate) use random::random;
pub(crate) use report::{Level, report};
