//! One row of the log: a message and what became of it.

use gridhaul_scenario::units::{Duration, Instant};

use super::path::CaptureTimes;

/// The part of a run to which a message belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Phase {
    /// The warm-up at the start of the run: neither latency nor loss is counted.
    WarmUp,
    /// The warm-up after a reconnection: loss is counted, latency is not.
    AfterReconnection,
    /// Measured.
    #[default]
    Measured,
}

/// A message after its last possible arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message {
    /// Sequence number, from 0.
    pub sequence: u64,
    /// Time at which the schedule intended to send the message.
    pub intended: Instant,
    /// Time directly before the message was handed to the protocol; `None` if the protocol refused
    /// it.
    pub sent: Option<Instant>,
    /// Time directly after the first intact copy was read; `None` if none arrived within the
    /// horizon, or at a time that is unknown next to a step of the other machine's clock.
    pub received: Option<Instant>,
    /// Number of intact copies that arrived.
    pub copies: u32,
    /// Number of corrupt copies that arrived.
    pub corrupt_copies: u32,
    /// Whether a later message arrived before it (RFC 4737).
    pub reordered: bool,
    /// Part of the run.
    pub phase: Phase,
    /// Time at which the kernel received the first intact copy; `None` if it was not recorded.
    pub kernel_received: Option<Instant>,
    /// Times at which captures saw the message.
    pub captured: CaptureTimes,
}

/// When a message was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveTimes {
    /// Time directly after it was read.
    pub read: Instant,
    /// Time at which the kernel received it; `None` if it was not recorded.
    pub kernel: Option<Instant>,
}

impl From<Instant> for ReceiveTimes {
    fn from(read: Instant) -> Self {
        Self { read, kernel: None }
    }
}

impl Message {
    /// Latency from the intended time: what a receiver experiences that expects the message on
    /// schedule.
    #[must_use]
    pub fn latency_from_schedule(&self) -> Option<Duration> {
        self.received.map(|at| at.since(self.intended))
    }

    /// Latency from the actual send time.
    #[must_use]
    pub fn latency_from_send(&self) -> Option<Duration> {
        Some(self.received?.since(self.sent?))
    }

    /// Lateness of the generator.
    #[must_use]
    pub fn lateness(&self) -> Option<Duration> {
        self.sent.map(|at| at.since(self.intended))
    }
}
