//! A pair of connections: their state, and the time limit that applies.

use gridhaul_core::coverage_mark::mark;
use gridhaul_scenario::units::{Duration, Instant};

use super::{Direction, Leg};

/// Time limits of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SplitTimeouts {
    /// Until the server accepts the connection.
    pub connect: Duration,
    /// Without data after one end has closed its direction.
    pub half_close: Duration,
    /// Without data; `None` for no limit.
    pub idle: Option<Duration>,
}

/// Cause for which both connections of a session are reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// The client has reset its connection, or does not answer.
    Client,
    /// The server has reset its connection, or does not answer.
    Server,
    /// The server has not accepted the connection.
    Connect,
    /// No data after one end has closed its direction.
    HalfClose,
    /// No data.
    Idle,
    /// The relay lacks memory or files.
    Resources,
}

impl SessionEnd {
    /// All causes.
    pub const ALL: [Self; 6] =
        [Self::Client, Self::Server, Self::Connect, Self::HalfClose, Self::Idle, Self::Resources];

    /// Name in the status and in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Connect => "connect",
            Self::HalfClose => "half_close",
            Self::Idle => "idle",
            Self::Resources => "resources",
        }
    }
}

/// State of a session.
#[derive(Debug, Clone, Copy)]
pub struct Session {
    /// From the client to the server, and the reverse.
    directions: [Direction; 2],
    is_connected: bool,
    /// Time of the last event that a time limit counts from.
    last_progress: Instant,
}

impl Session {
    /// A client was accepted, and the connection to the server begins.
    #[must_use]
    pub fn new(now: Instant) -> Self {
        Self { directions: Default::default(), is_connected: false, last_progress: now }
    }

    /// The stream that begins at a leg.
    #[must_use]
    pub const fn from(&self, leg: Leg) -> &Direction {
        &self.directions[leg as usize]
    }

    /// The stream that begins at a leg. After data has moved, [`Self::note_progress`] must be
    /// called.
    pub const fn from_mut(&mut self, leg: Leg) -> &mut Direction {
        &mut self.directions[leg as usize]
    }

    /// Whether the server has accepted the connection.
    #[must_use]
    pub const fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// The server has accepted the connection.
    pub const fn handle_connected(&mut self, now: Instant) {
        self.is_connected = true;
        self.last_progress = now;
    }

    /// Data has moved, or a direction was closed.
    pub const fn note_progress(&mut self, now: Instant) {
        self.last_progress = now;
    }

    /// When data has moved for the last time.
    #[must_use]
    pub const fn last_progress(&self) -> Instant {
        self.last_progress
    }

    /// Whether exactly one end has closed its direction, or its FIN waits for data before it.
    #[must_use]
    pub fn is_half_closed(&self) -> bool {
        self.directions.iter().any(Direction::is_ended)
    }

    /// Whether FIN was forwarded in both directions: the connections can be closed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.directions.iter().all(Direction::is_complete)
    }

    /// When the session is reset unless data moves, and the cause.
    #[must_use]
    pub fn deadline(&self, timeouts: &SplitTimeouts) -> Option<(Instant, SessionEnd)> {
        if !self.is_connected {
            mark!(split_connection_has_a_time_limit);
            return Some((self.last_progress + timeouts.connect, SessionEnd::Connect));
        }
        let idle = timeouts.idle.map(|idle| (self.last_progress + idle, SessionEnd::Idle));
        if !self.is_half_closed() {
            return idle;
        }
        mark!(split_half_closed_session_has_a_time_limit);
        let half_close = (self.last_progress + timeouts.half_close, SessionEnd::HalfClose);
        Some(idle.filter(|idle| idle.0 < half_close.0).unwrap_or(half_close))
    }
}
