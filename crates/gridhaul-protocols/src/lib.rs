//! Protocols of power grids: codecs, and the ends of connections as state machines without input or
//! output.
//!
//! | module | contents |
//! |---|---|
//! | [`endpoint`] | one end of a connection: the interface of the modules of the next two lines |
//! | [`iec104`], [`dnp3`], [`c37_118`] | protocols over TCP between two stations |
//! | [`zmtp`], [`nanomsg`], [`mqtt`], [`xmpp`] | message protocols over TCP |
//! | [`process_bus`] | Ethernet frames of [`sampled_values`] and [`goose`] |
//! | [`iec61850`] | parts that Sampled Values and GOOSE have in common |
//! | [`modbus`], [`dlms`] | a message in registers; data types of an APDU |
//! | [`framing`] | ends of messages in a stream of bytes |
//! | [`payload`] | encodings of a set of values: JSON, Protobuf, raw, XER, DLMS |
//! | [`overhead`] | bytes of a message by layer, by formula |
//! | [`corruption`] | effect of bit errors on each encoding |
//! | [`settings`] | settings of the protocols and of brokers as data |
//! | [`message_header`], [`capture`] | identification of a message; messages in captured packets |
//! | [`control_channel`] | messages between both machines of a measurement |
//!
//! Time is an argument. No function opens a socket, starts a thread, or reads a clock.

#![forbid(unsafe_code)]

pub mod c37_118;
pub mod capture;
pub mod control_channel;
pub mod corruption;
pub mod dlms;
pub mod dnp3;
pub mod endpoint;
pub mod framing;
pub mod goose;
pub mod iec104;
pub mod iec61850;
pub mod message_header;
pub mod modbus;
pub mod mqtt;
pub mod nanomsg;
pub mod overhead;
pub mod payload;
pub mod process_bus;
pub mod sampled_values;
pub mod settings;
pub mod xmpp;
pub mod zmtp;

/// The example of the page is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
