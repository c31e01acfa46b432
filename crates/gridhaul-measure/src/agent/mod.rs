//! Runs on two machines: the sender is here, the receiver at an agent.
//!
//! * [`framing`], [`message`], [`session`]: the control channel, without input or output.
//! * `secret`, `channel`: token, key and TLS; `serve`, `receiver`: the agent; `controller`, `ends`, `run`: this end.
//! * `accounting`: messages and clock of a run, without input or output.

pub mod framing;
pub mod message;
pub mod session;

#[cfg(feature = "bench")]
mod accounting;
#[cfg(feature = "bench")]
mod channel;
#[cfg(feature = "bench")]
mod controller;
#[cfg(feature = "bench")]
mod ends;
#[cfg(feature = "bench")]
mod receiver;
#[cfg(feature = "bench")]
mod run;
#[cfg(feature = "bench")]
mod secret;
#[cfg(feature = "bench")]
mod serve;

#[cfg(feature = "bench")]
pub use accounting::{Accounting, Converted, Quality};
#[cfg(feature = "bench")]
pub use controller::{AgentAddress, ControlEvent, Controller, ControllerError};
#[cfg(feature = "bench")]
pub use ends::{Ends, ListeningPublisher, connect_ends};
#[cfg(feature = "bench")]
pub use receiver::AgentClock;
#[cfg(feature = "bench")]
pub use run::{RemoteLogs, RemoteOutcome, measure_with_agent};
#[cfg(feature = "bench")]
pub use secret::{AgentKey, Fingerprint, SecretError, TOKEN_VARIABLE, Token, random_run};
#[cfg(feature = "bench")]
pub use serve::{Agent, AgentError};
