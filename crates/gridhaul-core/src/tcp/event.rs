//! Events that congestion controls are notified of, and the counters that they report.

use gridhaul_scenario::units::{Duration, Instant};

use crate::tcp::rate::RateSample;

/// Counters of a congestion control's estimates about the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EstimatorCounters {
    /// Acknowledgements that updated an estimate. `None`: all that measured a round trip.
    pub updates: Option<u32>,
    /// Comparisons of an estimate with a threshold for a decision.
    pub evaluations: u32,
    /// Classifications of losses, if the algorithm distinguishes their causes.
    pub loss_classifications: Option<LossClassifications>,
}

/// Losses by the cause that the congestion control inferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LossClassifications {
    /// Losses classified as congestion.
    pub congestion: u32,
    /// Losses classified as transmission errors.
    pub error: u32,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// Current time.
    pub now: Instant,
    /// Payload newly delivered: acknowledged, or selectively acknowledged for the first time.
    pub delivered: u32,
    /// Growth in slow start, in bytes, by the stack's byte counting.
    pub slow_start_credit: u32,
    /// Growth in congestion avoidance: the window grows by this number of bytes per window.
    pub avoidance_credit: u32,
    /// Round-trip time measured by this acknowledgement.
    pub rtt: Option<Duration>,
    /// Smoothed round-trip time; zero before the first measurement.
    pub srtt: Duration,
    /// Data in flight before this acknowledgement.
    pub prior_in_flight: u64,
    /// Data in flight after the acknowledgement.
    pub in_flight: u64,
    /// First unacknowledged stream position.
    pub una: u64,
    /// Stream position that is sent next.
    pub next: u64,
    /// Whether the window limited the sender, so that it may grow.
    pub window_limited: bool,
    /// Whether fast recovery is under way.
    pub in_recovery: bool,
    /// Payload newly marked lost.
    pub lost: u64,
    /// Total payload delivered on the connection.
    pub delivered_total: u64,
    /// Total payload marked lost on the connection, each time that it was.
    pub lost_total: u64,
    /// Delivery rate of the acknowledged flight.
    pub rate: Option<RateSample>,
    /// Earliest time of the next transmission under pacing; in the past if pacing does not delay it.
    pub paced_until: Instant,
    /// Payload of a full segment.
    pub mss: u32,
}

/// A loss.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// Current time.
    pub now: Instant,
    /// The window to reduce, by the stack's rule: flight size, cwnd or offered window.
    pub window: u32,
    /// Data in flight.
    pub in_flight: u64,
    /// First unacknowledged stream position, where the lost segment begins.
    pub una: u64,
    /// When the lost segment was last sent.
    pub sent_at: Instant,
    /// Number of transmissions of the lost segment.
    pub transmits: u8,
    /// Stream position that is sent next.
    pub next: u64,
    /// Whether the segment has timed out before.
    pub timed_out_before: bool,
    /// Payload of a full segment.
    pub mss: u32,
}
