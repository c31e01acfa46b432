//! Events of which the sender notifies congestion control, loss classifier and loss recovery.

use gridhaul_scenario::units::{Duration, Instant};

use crate::link::LossCause;

/// An acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
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
    /// Earliest time of the next transmission under pacing; in the past if pacing does not delay
    /// it.
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

/// Delivery rate over the last acknowledged flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSample {
    /// Bytes delivered between the transmission of the segment and its acknowledgement.
    pub delivered: u64,
    /// Total bytes delivered when that segment was sent.
    pub prior_delivered: u64,
    /// The longer of the send interval and the acknowledgement interval.
    pub interval: Duration,
    /// Whether the sender was application-limited.
    pub app_limited: bool,
}

impl RateSample {
    /// Bytes per second; 0 for an empty interval.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        if self.interval.is_zero() {
            0.0
        } else {
            self.delivered as f64 / self.interval.as_secs_f64()
        }
    }
}

/// Report of an acknowledgement about the segment that it answers.
#[derive(Debug, Clone, Copy)]
pub struct DelayReport {
    /// Current time.
    pub now: Instant,
    /// One-way delay of the segment to the receiver, in microseconds.
    pub one_way_us: u32,
    /// When the segment was sent; `None` if the clocks contradict each other.
    pub sent_at: Option<Instant>,
}

impl DelayReport {
    /// Round-trip time of the segment in microseconds.
    #[must_use]
    pub fn round_trip_us(&self) -> Option<u32> {
        let round_trip = self.now.since(self.sent_at?);
        u32::try_from(round_trip.as_nanos() / 1_000).ok()
    }
}

/// An event of a data segment that a link reports to the sender.
#[derive(Debug, Clone, Copy)]
pub struct LinkReport {
    /// Stream position of the segment, modulo 2^32.
    pub first: u32,
    /// Payload of the segment in bytes.
    pub len: u32,
    /// When the segment was sent.
    pub sent_at: Instant,
    /// The event.
    pub event: LinkEvent,
}

/// An event of a data segment on a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkEvent {
    /// The segment is lost.
    Lost(LossCause),
    /// A queue has marked the segment (RFC 3168, CE).
    Marked,
}
