//! A split proxy (RFC 3135, section 2.4) as state machines without I/O.
//!
//! A [`Session`] is a pair of connections, to a client and to a server, with a [`Direction`] for
//! each of the two streams. The machine decides when FIN may be forwarded, which direction uses a
//! pipe, and which time limit applies.

mod direction;
pub(crate) mod io;
mod session;

pub use direction::Direction;
pub use session::{Session, SessionEnd, SplitTimeouts};

/// The two connections of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leg {
    /// The connection that was accepted.
    Client,
    /// The connection that was made for it.
    Server,
}

impl Leg {
    /// Both connections.
    pub const BOTH: [Self; 2] = [Self::Client, Self::Server];

    /// The other connection.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

#[cfg(test)]
mod tests;
