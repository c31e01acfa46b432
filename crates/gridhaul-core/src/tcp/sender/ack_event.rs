//! What one acknowledgement delivers, finds lost and measures.

use gridhaul_scenario::units::{Duration, Instant};

use crate::tcp::recovery::{DeliveredSegment, Delivery};
use crate::tcp::retransmission_queue::OutstandingSegment;

/// What one acknowledgement has delivered and found.
#[derive(Default)]
pub(super) struct AckEvent {
    pub now: Instant,
    /// The least round trip before it.
    pub least: Duration,
    /// Bytes acknowledged in order.
    pub acked: u64,
    /// Bytes delivered, selectively acknowledged ones included.
    pub delivered: u32,
    /// Bytes newly found lost.
    pub lost: u64,
    pub prior_in_flight: u64,
    pub rtt: Option<Duration>,
    /// For RACK: of the segments delivered, the one that was sent last; when the first and the last
    /// newly sacked ones were sent that measure a round trip; the time that is echoed.
    pub newest: Option<DeliveredSegment>,
    /// End of the highest range that was sacked before.
    pub highest: u64,
    pub sacked_sent_at: Option<(Instant, Instant)>,
    pub echo: Option<u32>,
}

impl AckEvent {
    /// What the loss recovery gets of it.
    pub(super) const fn delivery(&self) -> Delivery {
        Delivery { delivered: self.delivered, newest: self.newest, echo: self.echo }
    }

    pub(super) fn on_sacked(&mut self, sent: &OutstandingSegment) {
        // What arrives out of order echoes an older time (RFC 7323, section 4.3).
        self.on_delivered(sent, None);
        if sent.transmits == 1 {
            let first = self.sacked_sent_at.map_or(sent.sent_at, |(first, _)| first);
            self.sacked_sent_at = Some((first, sent.sent_at));
        }
    }

    /// RFC 8985, section 6.2, step 2: a retransmission that was sent after the time that is echoed, or less
    /// than the least round trip ago, proves nothing: the original has arrived.
    pub(super) fn on_delivered(&mut self, sent: &OutstandingSegment, echo: Option<u32>) {
        let sent_ms = sent.sent_at.as_nanos() / 1_000_000;
        let acks_original = echo.is_some_and(|echo| u64::from(echo) < sent_ms)
            || self.now.since(sent.sent_at) < self.least;
        if sent.transmits == 1 || !acks_original {
            self.newest = Some(DeliveredSegment::of(sent, self.highest).later(self.newest));
        }
    }
}
