//! Facts about a connection on which the evidence is based.

use serde::Serialize;

use super::{Limit, Shares};

/// Facts about a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    pub(crate) shares: &'a Shares,
    pub(crate) counters: &'a Counters,
    /// From the first to the last transmission of data.
    pub(crate) transfer_s: f64,
    pub(crate) round_trip_s: Option<f64>,
    pub(crate) queueing_mean_s: f64,
    /// Rate of the bottleneck, and the share that the connection used.
    pub(crate) rate_bit_per_s: Option<f64>,
    pub(crate) utilisation: Option<f64>,
    pub(crate) proxied_by: Option<&'a Leg>,
}

/// The connection of a proxy on its other side.
#[derive(Debug, Clone, Serialize)]
pub struct Leg {
    /// Number of the connection.
    pub number: usize,
    /// Its point of the capture.
    pub point: String,
    /// Its limit.
    pub limit: Option<Limit>,
}

/// Numbers of the direction with more data.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Bytes of data, without retransmissions.
    pub payload_byte: u64,
    /// Packets with data, with retransmissions. Segments of segmentation offload count as the
    /// packets into which they are divided.
    pub packets: u64,
    /// Captured segments of new data, without the first.
    pub segments: u64,
    /// Of these, those that are shorter than a full one.
    pub short_segments: u64,
    /// Payload of a full-sized segment.
    pub segment_byte: u64,
    /// Retransmitted segments.
    pub retransmissions: u64,
    /// Lost packets, counted by their retransmissions, without unnecessary ones.
    pub lost_packets: u64,
    /// Retransmissions that a timer caused.
    pub timeouts: u64,
    /// Longest wait for a timer in s.
    pub timeout_longest_s: f64,
    /// Packets that arrived out of order and were not lost.
    pub reordered: u64,
    /// Largest number of bytes in flight.
    pub in_flight_max_byte: u64,
    /// Largest receive window; absent if its scale is unknown.
    pub window_max_byte: Option<u64>,
    /// Advertised windows of zero.
    pub zero_windows: u64,
    /// Waits of the sender: the times between its transmissions.
    pub waits: u64,
    /// Waits in which nothing was outstanding and the peer sent data.
    pub answered_waits: u64,
    /// Waits of Nagle's algorithm.
    pub nagle_waits: u64,
    /// Of these, those that a delayed acknowledgement ended.
    pub nagle_delayed_waits: u64,
    /// Acknowledgements that the receiver delayed.
    pub delayed_acks: u64,
    /// Their mean delay in s.
    pub delayed_ack_mean_s: Option<f64>,
    /// Data that is missing in the capture.
    pub missing_byte: u64,
}
