//! Effects of one acknowledgement: data delivered, losses detected, round trips measured.

use gridhaul_scenario::units::{Duration, Instant};

use crate::tcp::recovery::Delivery;
use crate::tcp::retransmission_queue::{DeliveredSegment, OutstandingSegment};

/// Effects of one acknowledgement, collected while it is processed.
#[derive(Default)]
pub(super) struct AckEvent {
    pub now: Instant,
    /// Minimum RTT before the acknowledgement.
    pub min_rtt: Duration,
    /// Bytes cumulatively acknowledged.
    pub acked: u64,
    /// Bytes delivered, selectively acknowledged ones included.
    pub delivered: u32,
    /// Bytes newly marked lost.
    pub lost: u64,
    pub prior_in_flight: u64,
    pub rtt: Option<Duration>,
    /// For RACK: the delivered segment that was sent last.
    pub newest: Option<DeliveredSegment>,
    /// End of the highest range that was sacked before the acknowledgement.
    pub highest: u64,
    /// Send times of the first and the last newly sacked segment that was transmitted once.
    pub sacked_sent_at: Option<SendTimes>,
    /// Whether a segment is acknowledged that was retransmitted.
    pub retransmitted: bool,
    /// Whether the acknowledgement echoes a congestion mark.
    pub congestion_echo: bool,
    /// The echoed timestamp.
    pub echo: Option<u32>,
}

/// Send times of the first and the last of several segments.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendTimes {
    pub first: Instant,
    pub last: Instant,
}

impl SendTimes {
    /// Send times of a single segment.
    pub(super) const fn of_one(sent_at: Instant) -> Self {
        Self { first: sent_at, last: sent_at }
    }
}

impl AckEvent {
    /// The part for the loss recovery.
    pub(super) const fn delivery(&self) -> Delivery {
        Delivery {
            delivered: self.delivered,
            newest: self.newest,
            retransmitted: self.retransmitted,
            congestion_echo: self.congestion_echo,
            echo: self.echo,
        }
    }

    pub(super) fn on_sacked(&mut self, sent: &OutstandingSegment) {
        // An out-of-order segment echoes an older timestamp (RFC 7323, section 4.3).
        self.on_delivered(sent, None);
        if sent.transmits == 1 {
            let first = self.sacked_sent_at.map_or(sent.sent_at, |sacked| sacked.first);
            self.sacked_sent_at = Some(SendTimes { first, last: sent.sent_at });
        }
    }

    /// RFC 8985, section 6.2, step 2: the acknowledgement of a retransmission that was sent after
    /// the echoed timestamp, or less than the minimum RTT ago, is ignored: it acknowledges the
    /// original transmission.
    pub(super) fn on_delivered(&mut self, sent: &OutstandingSegment, echo: Option<u32>) {
        let sent_ms = sent.sent_at.as_nanos() / 1_000_000;
        let acks_original = echo.is_some_and(|echo| u64::from(echo) < sent_ms)
            || self.now.since(sent.sent_at) < self.min_rtt;
        if sent.transmits == 1 || !acks_original {
            self.newest = Some(DeliveredSegment::of(sent, self.highest).later(self.newest));
        }
    }
}
