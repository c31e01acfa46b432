//! Protocols under test, behind one trait.

mod amqp_0_9_1;
mod amqp_1_0;
mod client;
mod cross_traffic;
mod direct;
mod error;
mod frame_link;
mod goose;
mod modbus;
mod mqtt;
mod null;
mod sampled_values;
mod stream;
mod udp;
mod udp_echo;
mod udp_ends;
mod xmpp;

use std::fmt;

use gridhaul_scenario::units::{Duration, Instant};

use crate::method::ReceiveTimes;
use crate::network::Sites;

pub use amqp_0_9_1::Amqp091;
pub use amqp_1_0::Amqp10;
pub use cross_traffic::{CrossTraffic, CrossTrafficCounts, Direction};
pub use direct::{Direct, DirectKind, Pattern};
pub use error::{ProtocolError, Refused};
pub use frame_link::FrameIdentity;
pub use goose::GooseControlBlock;
pub use modbus::Modbus;
pub use mqtt::{Mqtt, QualityOfService, Version};
pub use null::Null;
pub use sampled_values::SampledValueStream;
pub use udp::Udp;
pub use udp_echo::UdpEcho;
pub use xmpp::Xmpp;

/// Longest time for which [`Subscriber::receive`] waits.
pub const RECEIVE_WAIT: Duration = Duration::from_millis(50);

/// A protocol with its settings.
pub trait Protocol: fmt::Debug {
    /// Name in tables and files.
    fn name(&self) -> &'static str;

    /// Every setting that influences the result.
    fn settings(&self) -> Vec<(&'static str, String)>;

    /// Connects both ends, and returns when messages can pass. Receive times are those of the clock of `sites`.
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

/// The end that sends messages. It must not block: a message that the protocol cannot accept now is refused.
pub trait Publisher: Send + fmt::Debug {
    /// Hands a message to the protocol.
    ///
    /// # Errors
    /// The protocol does not accept the message, such as without a connection.
    fn publish(&mut self, message: &[u8]) -> Result<(), Refused>;
}

/// The end that receives messages.
pub trait Subscriber: Send + fmt::Debug {
    /// Waits for a message, at most [`RECEIVE_WAIT`], and writes its bytes into `message`.
    ///
    /// # Errors
    /// The connection failed, and the protocol does not reconnect.
    fn receive(&mut self, message: &mut Vec<u8>) -> Result<Received, ProtocolError>;
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

/// What a protocol with connections does without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReconnectPolicy {
    /// Time between a failure and the next attempt.
    pub after: Duration,
    /// Whether messages are queued meanwhile, or refused.
    pub queue: bool,
}

impl ReconnectPolicy {
    /// The policy in a table of settings.
    fn settings(self) -> [(&'static str, String); 2] {
        let without = if self.queue { "queue" } else { "refuse" };
        [
            ("reconnect_after", format!("{} s", self.after.as_secs_f64())),
            ("without_connection", without.into()),
        ]
    }
}

impl Default for ReconnectPolicy {
    fn default() -> Self {
        Self { after: Duration::from_millis(100), queue: false }
    }
}
