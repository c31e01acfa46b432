//! ZeroMQ over TCP: ZMTP 3.0 (RFC 23/ZMTP) with the mechanism NULL, as PUSH and PULL or as PUB and
//! SUB.
//!
//! ```
//! use gridhaul_protocols::endpoint::Endpoint;
//! use gridhaul_protocols::zmtp::{Socket, SocketType};
//! use gridhaul_scenario::units::Instant;
//!
//! let mut socket = Socket::new(SocketType::Push);
//! socket.open(Instant::ZERO);
//! let mut bytes = Vec::new();
//! socket.poll_output(&mut bytes);
//! // The greeting: signature, version 3.0, mechanism NULL.
//! assert_eq!((bytes.len(), bytes[0], bytes[10]), (64, 0xff, 3));
//! ```

use gridhaul_scenario::units::Instant;

use crate::endpoint::{Endpoint, EndpointError, NotSent, Queues};

/// Name of the protocol in errors.
const NAME: &str = "zeromq";

/// Longest message, so that memory stays bounded.
pub const MESSAGE_MAX: usize = 1 << 20;

/// Bytes of the greeting (RFC 23, section Greeting).
const GREETING: usize = 64;

/// Flags of a frame (RFC 23, section Framing).
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Type of a socket (RFC 28 and RFC 29).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketType {
    /// Sends messages to one of its peers.
    Push,
    /// Receives messages of PUSH.
    Pull,
    /// Sends messages to all subscribers.
    Pub,
    /// Receives all messages of PUB.
    Sub,
}

impl SocketType {
    const fn name(self) -> &'static str {
        match self {
            Self::Push => "PUSH",
            Self::Pull => "PULL",
            Self::Pub => "PUB",
            Self::Sub => "SUB",
        }
    }

    /// Types that may be the peer.
    const fn peers(self) -> &'static [&'static str] {
        match self {
            Self::Push => &["PULL"],
            Self::Pull => &["PUSH"],
            Self::Pub => &["SUB", "XSUB"],
            Self::Sub => &["PUB", "XPUB"],
        }
    }
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Ready,
    /// PUB without a subscription.
    Unsubscribed,
    Transfer,
}

/// One end of a connection.
#[derive(Debug)]
pub struct Socket {
    kind: SocketType,
    queues: Queues,
    state: State,
    /// Whether the frames of a message with several parts are being skipped.
    skips: bool,
}

impl Socket {
    /// An end that is not connected.
    #[must_use]
    pub fn new(kind: SocketType) -> Self {
        Self { kind, queues: Queues::default(), state: State::Greeting, skips: false }
    }

    fn handle_frame(&mut self, flags: u8, body: &[u8]) -> Result<(), EndpointError> {
        if flags & COMMAND != 0 {
            return self.handle_command(body);
        }
        match (self.state, self.kind) {
            (State::Greeting | State::Ready, _) => Err(invalid("a message before READY".into())),
            // A subscription is 1 and a prefix, its end 0 and a prefix; only the empty prefix
            // receives every message.
            (_, SocketType::Pub) => {
                match body {
                    [1] => self.state = State::Transfer,
                    [0] => self.state = State::Unsubscribed,
                    _ => {}
                }
                Ok(())
            }
            _ => {
                // A message of this measurement has one part.
                let is_part = self.skips || flags & MORE != 0;
                self.skips = flags & MORE != 0;
                if !is_part {
                    self.queues.messages.push_back(body.to_vec());
                }
                Ok(())
            }
        }
    }

    fn handle_command(&mut self, body: &[u8]) -> Result<(), EndpointError> {
        let name =
            body.split_first().and_then(|(&length, rest)| rest.split_at_checked(length.into()));
        let (name, properties) = name.ok_or_else(|| invalid("a command without name".into()))?;
        match (name, self.state) {
            (b"READY", State::Ready) => {
                let peer = socket_type(properties).unwrap_or_default();
                if !self.kind.peers().contains(&peer) {
                    let own = self.kind.name();
                    return Err(invalid(format!("a socket of type `{peer}` is no peer of {own}")));
                }
                self.state = State::Transfer;
                match self.kind {
                    SocketType::Pub => self.state = State::Unsubscribed,
                    // The subscription of all messages: 1 and the empty prefix.
                    SocketType::Sub => self.queues.output.extend([0, 1, 1]),
                    SocketType::Push | SocketType::Pull => {}
                }
                Ok(())
            }
            (b"ERROR", _) => Err(invalid("the peer reports an error".into())),
            // Commands of later versions are ignored.
            (_, State::Transfer | State::Unsubscribed) => Ok(()),
            _ => Err(invalid("an unexpected command".into())),
        }
    }
}

/// The property `Socket-Type` (RFC 23, section The NULL Security Mechanism); names of properties
/// ignore case.
fn socket_type(mut properties: &[u8]) -> Option<&str> {
    loop {
        let (&length, rest) = properties.split_first()?;
        let (name, rest) = rest.split_at_checked(length.into())?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (value, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            return std::str::from_utf8(value).ok();
        }
        properties = rest;
    }
}

/// Signature, version 3.0, mechanism NULL, client.
fn greeting() -> [u8; GREETING] {
    let mut greeting = [0; GREETING];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    greeting
}

/// A frame: flags, length in one byte or eight, body.
fn write_frame(output: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(length) => output.extend([flags, length]),
        Err(_) => {
            output.push(flags | LONG);
            output.extend((body.len() as u64).to_be_bytes());
        }
    }
    output.extend(body);
}

/// Bytes of the frame header, and of the body.
fn frame_lengths(input: &[u8]) -> Result<Option<(usize, usize)>, EndpointError> {
    let Some(&flags) = input.first() else { return Ok(None) };
    if flags & !(MORE | LONG | COMMAND) != 0 {
        return Err(invalid(format!("a frame with flags {flags:#04x}")));
    }
    let lengths = if flags & LONG == 0 {
        input.get(1).map(|&length| (2, u64::from(length)))
    } else {
        input
            .get(1..9)
            .and_then(|length| length.first_chunk())
            .map(|length| (9, u64::from_be_bytes(*length)))
    };
    let Some((header, body)) = lengths else { return Ok(None) };
    if body > MESSAGE_MAX as u64 {
        return Err(invalid(format!("a frame of {body} B; at most {MESSAGE_MAX} B")));
    }
    Ok(Some((header, body as usize)))
}

impl Endpoint for Socket {
    fn open(&mut self, _now: Instant) {
        self.queues.clear();
        (self.state, self.skips) = (State::Greeting, false);
        self.queues.output.extend(greeting());
    }

    fn handle_input(&mut self, bytes: &[u8], _now: Instant) -> Result<(), EndpointError> {
        self.queues.input.extend(bytes);
        if self.state == State::Greeting {
            let Some(read) = self.queues.poll_frame(|_| Ok(Some(GREETING)))? else { return Ok(()) };
            let mut mechanism = [0; 20];
            mechanism[..4].copy_from_slice(b"NULL");
            if read[0] != 0xff || read[9] != 0x7f || read[10] < 3 || read[12..32] != mechanism {
                return Err(invalid("the greeting is not of ZMTP 3 with mechanism NULL".into()));
            }
            self.state = State::Ready;
            let name = self.kind.name();
            let mut ready = b"\x05READY\x0bSocket-Type\0\0\0".to_vec();
            ready.push(name.len() as u8);
            ready.extend(name.as_bytes());
            write_frame(&mut self.queues.output, COMMAND, &ready);
        }
        let whole = |input: &[u8]| Ok(frame_lengths(input)?.map(|(header, body)| header + body));
        while let Some(frame) = self.queues.poll_frame(whole)? {
            let header = if frame[0] & LONG == 0 { 2 } else { 9 };
            self.handle_frame(frame[0], &frame[header..])?;
        }
        Ok(())
    }

    fn is_ready(&self) -> bool {
        self.state == State::Transfer
    }

    fn publish(&mut self, message: &[u8], _now: Instant) -> Result<(), NotSent> {
        if self.state != State::Transfer {
            return Err(NotSent::NotReady);
        }
        if message.len() > MESSAGE_MAX {
            return Err(NotSent::TooLong(MESSAGE_MAX));
        }
        write_frame(&mut self.queues.output, 0, message);
        Ok(())
    }

    fn queues(&mut self) -> &mut Queues {
        &mut self.queues
    }
}

fn invalid(reason: String) -> EndpointError {
    EndpointError::Invalid { protocol: NAME, reason }
}
