//! TCP in user space: the receiving end of meters whose data is acknowledged when it is stored.
//!
//! The kernel acknowledges a byte when it is in a socket's buffer; a crash of the collector loses
//! it. Here the connections are terminated by [`gridhaul_core::tcp`], and the acknowledgement
//! number is the position in the meter's stream up to which the caller has confirmed
//! ([`UserTcp::confirm`]). The right edge of the window does not exceed the space for records.
//!
//! A state machine without I/O. The caller passes packets of a TUN device
//! ([`UserTcp::handle_packet`]), the time, and the bytes that are stored; it takes events
//! ([`UserTcp::poll_event`]), data ([`UserTcp::read`]) and packets to send
//! ([`UserTcp::poll_packet`]).
//!
//! **Restart.** Connections are not stored: after a restart of the collector a segment of an
//! earlier connection is answered with RST (RFC 9293, 3.10.7.1). The meter sends its unacknowledged
//! bytes again, on a new connection. The earlier stream in the record log ends at or after the last
//! acknowledgement.

mod application;
mod counters;
mod endpoint;
mod flow;
mod half_open;
mod initial_sequence_number;
mod machine;
mod packets;
mod parameters;
mod settings;
mod table;
#[cfg(test)]
mod tests;
mod timers;
mod transmission;
mod window;

pub use counters::UserTcpCounters;
pub use endpoint::ReadResult;
pub use flow::Flow;
pub use machine::{UserTcp, UserTcpEvent};
pub use settings::{DropCause, UserTcpSettings};
pub use table::ConnectionId;
