//! The relay daemon of gridhaul.
//!
//! * [`log`]: the record log, which survives crashes and power failures.
//! * [`protocol`]: records, batches and frames that a collector and a head exchange.
//! * [`collector`] and [`head`]: both ends of the aggregation, as state machines without I/O.
//! * [`split`]: a split proxy, as state machines without I/O.
//! * `router`: a hybrid router, on the state machine of [`gridhaul_core::router`].
//! * [`listing`]: the records of a log as JSON.
//! * [`daemon`]: the daemon, which drives them on sockets, files and the monotonic clock.
//! * [`packet`]: a bridge between two network interfaces with proxies, as a state machine without
//!   I/O.

#![forbid(unsafe_code)]
// Fuzzing uses the machines and the parsers only.
#![cfg_attr(not(feature = "daemon"), allow(dead_code))]

pub mod collector;
#[cfg(feature = "daemon")]
pub mod daemon;
mod file_lock;
pub mod head;
#[cfg(feature = "daemon")]
pub mod listing;
pub mod log;
pub mod packet;
pub mod protocol;
#[cfg(feature = "daemon")]
mod router;
#[cfg(feature = "daemon")]
mod runtime;
#[cfg(feature = "daemon")]
pub mod split;
