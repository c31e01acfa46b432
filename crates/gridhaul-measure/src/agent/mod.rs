//! Runs on two machines: the sender is here, the receiver at an agent.
//!
//! * [`framing`], [`message`], [`session`]: the control channel, without input or output.
//! * `secret`, `channel`: token, key and TLS; `serve`, `receiver`: the agent; `controller`, `ends`,
//!   `run`: this end.
//! * `accounting`: messages and clock of a run, without input or output.

pub mod framing;
pub mod message;
pub mod session;

bench! {
    mod accounting;
    mod channel;
    mod controller;
    mod ends;
    mod receiver;
    mod run;
    mod secret;
    mod serve;

    pub use accounting::{Accounting, Converted, Quality};
    pub use controller::{AgentAddress, ControlEvent, Controller, ControllerError, SILENCE};
    pub use ends::{Ends, ListeningPublisher, connect_ends};
    pub use receiver::AgentClock;
    pub use run::{RemoteLogs, RemoteOutcome, measure_with_agent};
    pub use secret::{AgentKey, Fingerprint, SecretError, TOKEN_VARIABLE, Token, random_run};
    pub use serve::{Agent, AgentError};
}
