//! Runs on two machines: the sender is here, the receiver at an agent.
//!
//! * `secret`, `channel`: token, key and TLS of the control channel, whose frames and messages are
//!   in [`gridhaul_protocols::control_channel`].
//! * `serve`, `receiver`: the agent; `controller`, `ends`, `run`: this end.
//! * `accounting`: messages and clock of a run, without input or output.

mod accounting;
mod channel;
mod controller;
mod ends;
mod receiver;
mod run;
mod secret;
mod serve;

pub use accounting::{Accounting, Converted, Quality};
pub use controller::{
    AgentAddress, ControlEvent, Controller, ControllerError, ExchangeSchedule, SILENCE,
};
pub use ends::{Ends, ListeningPublisher, connect_ends};
pub use receiver::AgentClock;
pub use run::{RemoteLogs, RemoteOutcome, measure_with_agent};
pub use secret::{AgentKey, SecretError, TOKEN_VARIABLE, Token, random_run};
pub use serve::{Agent, AgentError};
