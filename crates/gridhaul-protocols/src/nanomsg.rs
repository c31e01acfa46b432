//! Scalability Protocols (nanomsg, nng) over TCP: PUSH and PULL, by the RFC drafts
//! `sp-tcp-mapping-01` and `sp-pipeline-01`.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::nanomsg::{Pipeline, Role};
//! use gridhaul_scenario::units::Instant;
//!
//! let mut pipeline = Pipeline::new(Role::Push);
//! pipeline.open(Instant::ZERO);
//! let mut bytes = Vec::new();
//! pipeline.poll_output(&mut bytes);
//! assert_eq!(bytes, [0, b'S', b'P', 0, 0, 0x50, 0, 0]);
//! ```

use gridhaul_scenario::units::Instant;

use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "nanomsg";

/// Longest message, so that memory stays bounded.
pub const MESSAGE_MAX: usize = 1 << 20;

/// Bytes before each message: its length in 64 bits (`sp-tcp-mapping-01`, section 3).
pub const HEADER: usize = 8;

/// End of a pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Sends messages.
    Push,
    /// Receives messages.
    Pull,
}

impl Role {
    /// Protocol identifier 5 and role (`sp-pipeline-01`, section 4).
    const fn number(self) -> u16 {
        match self {
            Self::Push => 5 << 4,
            Self::Pull => 5 << 4 | 1,
        }
    }

    const fn peer(self) -> Self {
        match self {
            Self::Push => Self::Pull,
            Self::Pull => Self::Push,
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
pub struct Pipeline {
    role: Role,
    queues: Queues,
    is_ready: bool,
}

impl Pipeline {
    /// An end that is not connected.
    #[must_use]
    pub fn new(role: Role) -> Self {
        Self { role, queues: Queues::default(), is_ready: false }
    }
}

/// The bytes that each end sends first: zero, `SP`, version 0, protocol, reserved
/// (`sp-tcp-mapping-01`, section 2).
fn greeting(role: Role) -> [u8; 8] {
    let [high, low] = role.number().to_be_bytes();
    [0, b'S', b'P', 0, high, low, 0, 0]
}

impl Endpoint for Pipeline {
    fn open(&mut self, _now: Instant) {
        self.queues.clear();
        self.is_ready = false;
        self.queues.output.extend(greeting(self.role));
    }

    fn handle_input(&mut self, bytes: &[u8], _now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        if !self.is_ready {
            let Some(read) = self.queues.poll_frame(|_| Ok(Some(HEADER)))? else { return Ok(()) };
            if read != greeting(self.role.peer()) {
                return Err(invalid(format!("the greeting {read:02x?} is not that of a peer")));
            }
            self.is_ready = true;
        }
        let length = |input: &[u8]| {
            let Some(length) = input.first_chunk::<HEADER>() else { return Ok(None) };
            let length = u64::from_be_bytes(*length);
            if length > MESSAGE_MAX as u64 {
                return Err(invalid(format!("a message of {length} B; at most {MESSAGE_MAX} B")));
            }
            Ok(Some(HEADER + length as usize))
        };
        while let Some(frame) = self.queues.poll_frame(length)? {
            self.queues.messages.push_back(frame[HEADER..].to_vec());
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn publish(&mut self, message: &[u8], _now: Instant) -> Result<(), NotSent> {
        if !self.is_ready {
            return Err(NotSent::NotReady);
        }
        if message.len() > MESSAGE_MAX {
            return Err(NotSent::TooLong(MESSAGE_MAX));
        }
        self.queues.output.extend((message.len() as u64).to_be_bytes());
        self.queues.output.extend(message);
        Ok(())
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }
}

fn invalid(reason: String) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason }
}
