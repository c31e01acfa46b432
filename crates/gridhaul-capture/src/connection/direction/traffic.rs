//! Counters of a direction.

use gridhaul_scenario::units::{Duration, Instant};

/// Counters of a direction.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Traffic {
    /// Bytes of new data.
    pub(crate) payload: u64,
    /// Acknowledged bytes of new data.
    pub(crate) acknowledged: u64,
    /// Bytes on the link, with retransmissions.
    pub(crate) bytes: u64,
    /// Packets with data, with retransmissions.
    pub(crate) packets: u64,
    /// Segments that were captured as retransmissions.
    pub(crate) retransmissions: u64,
    /// Retransmissions of a timer.
    pub(crate) timeouts: u64,
    /// Retransmissions that the receiver reported as unnecessary (RFC 2883).
    pub(crate) unnecessary: u64,
    /// Packets that arrived out of order and were not lost.
    pub(crate) reordered: u64,
    /// Acknowledged bytes that are missing in the capture.
    pub(crate) missing: u64,
    /// First and last time of the data, and of the last acknowledgement of new data.
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
    pub(crate) last_acked: Option<Instant>,
    /// Largest number of bytes in flight for the sender.
    pub(crate) in_flight_max: u64,
    /// Largest receive window.
    pub(crate) window_max: Option<u64>,
    /// Smallest and largest hop limit of pure acknowledgements and of other segments.
    pub(crate) hop_limits: [HopLimits; 2],
    pub(crate) acknowledgements: u64,
    pub(crate) zero_windows: u64,
}

/// Hop limits of packets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HopLimits {
    pub(crate) min: u8,
    pub(crate) max: u8,
}

impl Traffic {
    /// From the first data to the last acknowledgement of new data.
    pub(crate) fn delivery(&self) -> Duration {
        let times = self.first.zip(self.last_acked);
        times.map_or(Duration::ZERO, |(first, last)| last.since(first))
    }

    /// Mean rate of the acknowledged data in bit/s, until its last acknowledgement or the last
    /// transmission: data that is retransmitted in vain takes its time.
    pub(crate) fn goodput_bit_per_s(&self) -> Option<f64> {
        let last = self.last.max(self.last_acked);
        let times = self.first.zip(last).filter(|_| self.acknowledged > 0);
        let time = times.map(|(first, last)| last.since(first)).filter(|time| !time.is_zero())?;
        Some(self.acknowledged as f64 * 8.0 / time.as_secs_f64())
    }
}

impl Default for HopLimits {
    fn default() -> Self {
        Self { min: u8::MAX, max: 0 }
    }
}

impl HopLimits {
    pub(super) fn add(&mut self, hop_limit: u8) {
        self.min = self.min.min(hop_limit);
        self.max = self.max.max(hop_limit);
    }
}
