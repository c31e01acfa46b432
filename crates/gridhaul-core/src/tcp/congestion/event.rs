//! What controllers are notified of, and what they report.

use gridhaul_scenario::units::{Duration, Instant};

use crate::tcp::rate::RateSample;

/// Counters of what a controller estimates about the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EstimatorCounters {
    /// Acknowledgements with which it brought a measure up to date. `None`: all that measured a
    /// round trip.
    pub updates: Option<u32>,
    /// Times that it compared a measure with a threshold to decide something.
    pub evaluations: u32,
    /// What it called losses, if it tells their causes apart.
    pub loss_classifications: Option<LossClassifications>,
}

/// Losses by the cause that a controller gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossClassifications {
    /// A queue was full.
    pub congestion: u32,
    /// The way has lost or damaged the segment.
    pub error: u32,
}

/// What an acknowledgement says.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// Now.
    pub now: Instant,
    /// Payload newly delivered: acknowledged, or selectively acknowledged for the first time.
    pub delivered: u32,
    /// ByteCounting in slow start, in bytes, after the stack's rule of counting.
    pub slow_start_credit: u32,
    /// ByteCounting in congestion avoidance: the window grows by this many bytes per window.
    pub avoidance_credit: u32,
    /// Round-trip time measured by this acknowledgement.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Duration,
    /// Data in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// Data in flight after it.
    pub in_flight: u64,
    /// First unacknowledged stream position.
    pub una: u64,
    /// Stream position that is sent next.
    pub next: u64,
    /// Whether the window was the limit, so that it may grow.
    pub window_limited: bool,
    /// Whether fast recovery is under way.
    pub in_recovery: bool,
    /// Payload newly found lost.
    pub lost: u64,
    /// Payload delivered on the connection in all.
    pub delivered_total: u64,
    /// Payload found lost on the connection in all, each time that it was.
    pub lost_total: u64,
    /// Delivery rate of the acknowledged flight.
    pub rate: Option<RateSample>,
    /// When pacing lets the next segment leave; in the past if it holds none back.
    pub paced_until: Instant,
    /// Full segment.
    pub mss: u32,
}

/// What a loss says.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// Now.
    pub now: Instant,
    /// The window that is to be reduced, after the stack's rule: flight, cwnd or offered window.
    pub window: u32,
    /// Data in flight.
    pub in_flight: u64,
    /// When the lost segment was last sent.
    pub sent_at: Instant,
    /// How often the lost segment was sent.
    pub transmits: u8,
    /// Stream position that is sent next.
    pub next: u64,
    /// Whether the timer had run out for the same segment before.
    pub timed_out_before: bool,
    /// Full segment.
    pub mss: u32,
}
