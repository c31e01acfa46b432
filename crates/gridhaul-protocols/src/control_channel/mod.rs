//! The control channel between controller and agent of a measurement on two machines: frames,
//! messages, and the session of the agent.

mod framing;
mod message;
mod session;

pub use framing::{
    FRAME_MAX, FRAME_MAX_UNAUTHENTICATED, FrameError, FrameReader, write_message, write_preface,
};
pub use message::{
    BrokerChoice, ReceiverProtocol, ReceiverSpec, Reply, Report, Request, Started, StartedBroker,
};
pub use session::{Action, Session};
