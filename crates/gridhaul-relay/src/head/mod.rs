//! The head: receives records of collectors, makes them durable, acknowledges them, and delivers them.
//!
//! * [`Head`] is a state machine without I/O for the connections of collectors: it deduplicates records and returns
//!   groups to write to the head's log.
//! * [`Deliveries`] reads the durable part of the log in order, for a sink.
//! * [`ServerStreams`] are the connections to a TCP server, one for each meter.
//! * [`Publications`] are the messages for a broker until it has acknowledged them, [`mqtt`] are its packets.

mod admission;
mod collectors;
mod delivery;
mod down;
#[cfg(feature = "daemon")]
pub(crate) mod io;
mod item;
mod json;
mod machine;
pub mod mqtt;
mod publications;
#[cfg(feature = "daemon")]
mod servers;
mod sources;
#[cfg(test)]
mod tests;

pub use delivery::{Deliveries, Delivery};
pub use down::MeterKey;
pub use item::{Item, items};
#[cfg(feature = "daemon")]
pub(crate) use json::json_of;
pub use machine::{Head, HeadError, HeadSettings, Loss, METERS_MAX};
pub use publications::{Content, PartialMessages, Publications};
#[cfg(feature = "daemon")]
pub use servers::{OpenMeter, ServerStreams, StreamId, StreamIdentity, Unconfirmed};
pub use sources::HeadState;
