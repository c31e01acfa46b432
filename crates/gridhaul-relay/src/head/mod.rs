//! The head: receives records of collectors, makes them durable, acknowledges them, and delivers
//! them.
//!
//! * [`Head`] is a state machine without I/O for the connections of collectors: it deduplicates
//!   records and returns groups to write to the head's log.
//! * [`Deliveries`] reads the durable part of the log in order, for a sink.
//! * [`ServerStreams`] are the connections to a TCP server, one for each meter.
//! * [`Publications`] are the messages for a broker until it has acknowledged them.

mod admission;
mod broker_messages;
mod collectors;
mod credit;
mod data_for_meters;
mod delivery;
#[cfg(feature = "daemon")]
pub(crate) mod io;
mod json;
mod log_item;
mod machine;
mod positions;
#[cfg(feature = "daemon")]
mod servers;
mod settings;
mod sources;
#[cfg(test)]
mod tests;

pub use broker_messages::{Content, PartialMessages, Publications};
pub use data_for_meters::MeterKey;
pub use delivery::{Deliveries, Delivery};
#[cfg(feature = "daemon")]
pub(crate) use json::json_of;
pub use log_item::{Item, items};
pub use machine::{Head, HeadError, Loss};
#[cfg(feature = "daemon")]
pub use servers::{OpenMeter, ServerStreams, StreamId, StreamIdentity, Unconfirmed};
pub use settings::{HeadSettings, METERS_MAX};
pub use sources::HeadState;
