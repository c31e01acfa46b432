//! Offset and drift between two clocks, from the times of exchanged messages.
//!
//! [`segments`] needs no assumption about the delays but that they are positive: its bounds hold
//! for any asymmetry of the path. The middle of the bounds is the estimate for a symmetric path.
//! The machine has no clock; times are arguments.

mod conversion;
mod injected;
mod line;
mod quality;
mod segments;

pub use conversion::{LocalTime, RemoteClock};
pub use injected::InjectedClock;
pub use line::{Bounds, ClockLine, DRIFT_MAX};
pub use quality::{ClockQuality, Unsupported};
pub use segments::{Segment, Synchronisation, segments};

/// The four times of an exchange in nanoseconds, each on the clock of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The request was sent, on the local clock.
    pub sent: i64,
    /// The request was received, on the remote clock.
    pub remote_received: i64,
    /// The answer was sent, on the remote clock.
    pub remote_sent: i64,
    /// The answer was received, on the local clock.
    pub received: i64,
}

impl Exchange {
    /// Delay of request and answer together, without the time at the remote end (RFC 5905, section
    /// 8).
    #[must_use]
    pub const fn round_trip(&self) -> i64 {
        (self.received - self.sent) - (self.remote_sent - self.remote_received)
    }

    /// Greatest offset of the remote clock, when it read `remote_received`: the request has not
    /// arrived before it was sent.
    #[must_use]
    pub const fn greatest_offset(&self) -> i64 {
        self.remote_received - self.sent
    }

    /// Least offset of the remote clock, when it read `remote_sent`: the answer has not arrived
    /// before it was sent.
    #[must_use]
    pub const fn least_offset(&self) -> i64 {
        self.remote_sent - self.received
    }
}
