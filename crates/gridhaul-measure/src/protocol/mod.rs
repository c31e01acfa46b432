//! Protocols under test, behind one trait.

mod amqp_0_9_1;
mod amqp_1_0;
mod arrival;
mod broker_certificate;
mod client;
mod connection;
mod cross_traffic;
pub(crate) mod direct;
mod endpoint_client;
mod error;
mod frame_link;
pub(crate) mod frame_stream;
mod goose;
pub(crate) mod modbus;
mod null;
mod reconnect;
mod sampled_values;
mod selection;
mod stream;
mod through_broker;
mod udp;
mod udp_echo;
mod udp_ends;

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use gridhaul_scenario::units::{Duration, Instant};

use crate::method::ReceiveTimes;
use crate::place::Sites;
use crate::settings::Settings;

pub use cross_traffic::{CrossTraffic, CrossTrafficCounts, Direction};
pub use error::{ProtocolError, Refused};
pub use frame_link::FrameIdentity;
pub use goose::GooseControlBlock;
pub use null::Null;
pub use sampled_values::{DataSet, SampledValueStream};
pub(crate) use selection::{
    BrokerInUse, Selection, Started, client_name, frames, given_address, settings,
};
pub use through_broker::ThroughBroker;
pub use udp::Udp;
pub use udp_echo::UdpEcho;

/// Longest time for which [`Subscriber::receive`] waits.
pub const RECEIVE_WAIT: Duration = Duration::from_millis(50);

/// Whether a socket that waits reports that nothing has arrived yet: its timeout has passed, or a
/// signal has interrupted the call. Calls on sockets with a timeout are interrupted even if the
/// signal has no handler or its handler restarts calls, and when a stopped process continues
/// (signal(7)).
#[must_use]
pub fn has_nothing_arrived(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// A protocol with its settings.
pub trait Protocol: fmt::Debug {
    /// Name in tables and files.
    fn name(&self) -> &'static str;

    /// Every setting that influences the result; a protocol may have none.
    fn settings(&self) -> Settings {
        Settings::default()
    }

    /// Connects both ends, and returns when messages can pass. Receive times are those of the clock
    /// of `sites`.
    ///
    /// # Errors
    /// An end cannot be connected; the error names the address.
    fn connect(&self, sites: &Sites<'_>) -> Result<Connected, ProtocolError>;
}

/// Both ends of a connection.
#[derive(Debug)]
pub struct Connected {
    /// The end that sends.
    pub publisher: Box<dyn Publisher>,
    /// The end that receives.
    pub subscriber: Box<dyn Subscriber>,
}

/// The ends on the machine of the publisher, when the subscriber is on another one.
#[derive(Debug)]
pub struct SendingEnd {
    /// The end that sends.
    pub publisher: Box<dyn Publisher>,
    /// The end that receives what comes back; `None` if nothing does.
    pub returns: Option<Box<dyn Subscriber>>,
}

/// The end that receives, when the publisher is on another machine.
#[derive(Debug)]
pub struct ReceivingEnd {
    /// The end that receives.
    pub subscriber: Box<dyn Subscriber>,
    /// Address to which messages are sent.
    pub address: SocketAddr,
}

/// The end that sends messages. It must not block: a message that the protocol cannot accept now is
/// refused.
pub trait Publisher: Send + fmt::Debug {
    /// Hands a message to the protocol.
    ///
    /// # Errors
    /// The protocol does not accept the message, such as without a connection.
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused>;

    /// Waits until messages can pass, if this end listens for its subscriber.
    ///
    /// # Errors
    /// The subscriber does not connect.
    fn await_subscriber(&mut self) -> Result<(), ProtocolError> {
        Ok(())
    }
}

/// The end that receives messages.
pub trait Subscriber: Send + fmt::Debug {
    /// Waits for a message, at most [`RECEIVE_WAIT`], and writes its bytes into `message`.
    ///
    /// # Errors
    /// The connection failed, and the protocol does not reconnect.
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError>;

    /// Whether this end polls its socket instead of sleeping. The kernel stops real-time threads
    /// that never sleep.
    fn is_polling(&self) -> bool {
        false
    }
}

/// Result of [`Subscriber::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// A message, and when it was received.
    Message(ReceiveTimes),
    /// The connection was lost and is back since this time.
    Reconnected(Instant),
    /// No message for [`RECEIVE_WAIT`].
    Nothing,
}
