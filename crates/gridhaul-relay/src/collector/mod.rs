//! The collector: accepts the streams of meters, writes them to one ordered sequence of records,
//! and forwards the records to a head. State machines without I/O; only the backlog reads the
//! record log.
//!
//! Call order: events of meters ([`Collector::open_meter`], [`Collector::handle_data`], ...) and of
//! upstream connections ([`Collector::handle_connected`], [`Collector::handle_frame`], ...); then
//! [`Collector::poll_group`], [`Collector::poll_event`] and [`Collector::fill`] until they return
//! nothing.

mod backlog;
mod continuation;
mod durability;
mod fairness;
#[cfg(feature = "daemon")]
pub(crate) mod io;
mod machine;
mod messages;
mod meter;
mod recovery;
mod session;
mod session_state;
mod settings;
mod shard;
mod stored;
#[cfg(test)]
mod tests;
pub mod user_tcp;

pub use continuation::{Continuation, MeterState};
pub use machine::{Collector, CollectorLog, Event};
pub use meter::{MeterId, MeterStatus};
pub use recovery::{CollectorState, recover};
pub use session::SessionError;
pub use settings::{Settings, Tier};
