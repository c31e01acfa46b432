//! A bridge between two network interfaces that passes selected TCP connections through proxies of
//! [`gridhaul_core::pep`], as a state machine without I/O.
//!
//! [`Engine`] takes the frames that an interface has received. It either returns
//! [`Handling::Forward`] (the frame belongs to no connection of a proxy, and the caller forwards it
//! unchanged) or writes frames of its own into [`OutgoingFrames`]. A rule selects the proxy of a
//! connection when its SYN arrives. A connection whose SYN was not seen is counted, forwarded
//! unchanged, and soon after the start observed as well, because an earlier relay may have lost
//! some of its bytes.
//!
//! Call order: after [`Engine::handle_frame`] and [`Engine::handle_timeout`], the caller sends all
//! frames of [`Engine::outgoing`] and clears them.

mod at_risk;
mod connection;
mod content;
mod counters;
mod direction;
mod engine;
mod frame;
mod handshake;
#[cfg(feature = "daemon")]
pub(crate) mod io;
mod joining;
mod key;
mod key_index;
mod output;
mod path_mtu;
mod renumbering;
mod rule;
mod split_observer;
mod table;
#[cfg(test)]
mod tests;
mod untouched;

pub use at_risk::ConnectionAtRisk;
pub use connection::ConnectionStatus;
pub use counters::{BridgeCounters, EndCause, FrameDropCause, UntouchedCause};
pub use engine::{BridgeTotals, Engine, EngineSettings, Handling};
pub use frame::{ChecksumState, ComposedFrame, Frame, FrameQueue, Offload, OutgoingFrames};
pub use key::BridgePort;
pub use rule::Rule;
