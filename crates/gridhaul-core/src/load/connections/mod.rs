//! Connections that open and close during a run: policy of the device, TLS flights, reconnections,
//! local ports and the limits of the server.
//!
//! A [`ConnectionManager`] decides for one member of a flow when a connection opens, what both of
//! its ends write, and when they close it. The connections themselves are those of a
//! [`ConnectionTransport`]: simulated ones, or sockets.

mod accept_queue;
mod counters;
mod idle;
mod local_ports;
mod manager;
mod reconnection;
mod rules;
mod tls;

pub use accept_queue::AcceptQueue;
pub use counters::ConnectionCounters;
pub use idle::{IdleRules, KeepAliveAction, KeepAliveTimer, NatEntry, NatVerdict, UserTimeout};
pub use local_ports::LocalPorts;
pub use manager::{ConnectionManager, ConnectionTransport, EndState, ManagedCarrier, NoLocalPort};
pub use reconnection::Reconnection;
pub use rules::ConnectionRules;
pub use tls::TlsFlights;
