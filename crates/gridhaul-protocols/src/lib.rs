//! Protocols of power grids: codecs, and the ends of connections as state machines without input or output.
//!
//! * [`endpoint`]: one end of a connection, the interface that the protocols over TCP share. [`iec104`], [`dnp3`], [`c37_118`],
//!   [`zmtp`], [`nanomsg`] and [`xmpp`] implement it.
//! * [`process_bus`]: Ethernet frames of [`sampled_values`] and [`goose`]; [`iec61850`]: the parts that both have.
//!
//! Time is an argument. No function opens a socket, starts a thread, or reads a clock.

#![forbid(unsafe_code)]

pub mod c37_118;
pub mod dnp3;
pub mod endpoint;
pub mod goose;
pub mod iec104;
pub mod iec61850;
pub mod nanomsg;
pub mod process_bus;
pub mod sampled_values;
pub mod xmpp;
pub mod zmtp;
