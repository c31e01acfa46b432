//! Totals and means of `TCP_INFO` over connections and time.

use gridhaul_scenario::answer::WindowSample;
use gridhaul_scenario::units::Duration;

use gridhaul_linux::TcpInfo;

/// Counters of all senders of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderCounts {
    pub segments: u64,
    pub retransmissions: u64,
    pub timeouts: u64,
    pub received: u64,
}

/// Means of windows and round-trip times, sampled at regular intervals.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SampleMeans {
    cwnd_bytes: f64,
    cwnd_samples: u64,
    rtt_secs: f64,
    rtt_samples: u64,
}

impl SenderCounts {
    /// Adds the counters of a connection with `of_syn` retransmissions of SYN: the kernel counts
    /// them as retransmissions (`tcp_retransmit_skb`), but not as data segments.
    pub(crate) fn add(&mut self, info: &TcpInfo, of_syn: u32) {
        self.segments += u64::from(info.data_segments_sent);
        self.retransmissions += u64::from(info.retransmissions.saturating_sub(of_syn));
        self.timeouts += u64::from(info.timeouts);
        self.received += u64::from(info.segments_received);
    }

    /// Adds other counters.
    pub(crate) const fn add_counts(&mut self, other: &Self) {
        self.segments += other.segments;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.received += other.received;
    }

    /// The difference from earlier counters.
    pub(crate) const fn since(&self, earlier: &Self) -> Self {
        Self {
            segments: self.segments - earlier.segments,
            retransmissions: self.retransmissions - earlier.retransmissions,
            timeouts: self.timeouts - earlier.timeouts,
            received: self.received - earlier.received,
        }
    }
}

impl SampleMeans {
    pub(crate) fn add(&mut self, info: &TcpInfo) {
        self.cwnd_bytes += f64::from(info.cwnd) * f64::from(info.mss);
        self.cwnd_samples += 1;
        if info.srtt > Duration::ZERO {
            self.rtt_secs += info.srtt.as_secs_f64();
            self.rtt_samples += 1;
        }
    }

    /// Mean congestion window of a connection in bytes.
    pub(crate) fn cwnd(&self) -> Option<f64> {
        (self.cwnd_samples > 0).then(|| self.cwnd_bytes / self.cwnd_samples as f64)
    }

    /// Mean of the smoothed round-trip time in seconds.
    pub(crate) fn rtt(&self) -> Option<f64> {
        (self.rtt_samples > 0).then(|| self.rtt_secs / self.rtt_samples as f64)
    }
}

/// The window of a connection as a point of a time series.
pub(crate) fn window(info: &TcpInfo) -> WindowSample {
    let bytes = |segments: u32| u64::from(segments) * u64::from(info.mss);
    WindowSample {
        cwnd: bytes(info.cwnd),
        ssthresh: (info.ssthresh < NO_SSTHRESH).then(|| bytes(info.ssthresh)),
        in_flight: bytes(info.unacked),
        srtt: (info.srtt > Duration::ZERO).then_some(info.srtt),
        rto: info.rto,
    }
}

/// `TCP_INFINITE_SSTHRESH`.
const NO_SSTHRESH: u32 = 0x7fff_ffff;
