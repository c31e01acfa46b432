//! Delivery-rate samples (draft-ietf-ccwg-bbr, section 4.1.1): the rate at which the path delivered
//! the data that an acknowledgement covers.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

use super::event::RateSample;
use super::retransmission_queue::{Division, OutstandingSegment};

/// Connection state at the transmission of a segment.
#[derive(Debug, Clone, Copy, Default)]
struct RateStamp {
    /// Bytes delivered on the connection when the segment was sent.
    delivered: u64,
    /// Time of the last delivery before that.
    delivered_at: Instant,
    /// Send time of the first segment of the flight that this delivery ended.
    first_sent_at: Instant,
    /// Whether the application, not the window, limited the sender.
    app_limited: bool,
}

/// Delivery accounting of a connection, the source of rate samples.
#[derive(Debug, Clone, Default)]
pub(super) struct RateAccount {
    delivered: u64,
    /// Bytes marked lost, each time that they were.
    pub(super) lost: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Data sent until more than this number of bytes is delivered is application-limited
    /// (`C.app_limited`); 0: not application-limited.
    app_limited_until: u64,
    newest: Option<(Instant, RateStamp)>,
    /// Earliest time of the next transmission under pacing.
    pub(super) paced_until: Instant,
    /// Time of the last burst, and the number of segments left in it.
    pub(super) burst_at: Instant,
    pub(super) burst_left: u32,
    /// One stamp for each outstanding segment, in queue order.
    stamps: VecDeque<RateStamp>,
}

impl RateAccount {
    /// A segment is sent for the first time.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, nothing_in_flight: bool) {
        let stamp = self.stamp(now, nothing_in_flight);
        self.stamps.push_back(stamp);
    }

    /// Frees the memory of the stamps after all segments were acknowledged.
    pub(super) fn release_spare(&mut self) {
        if self.stamps.is_empty() {
            self.stamps = VecDeque::new();
        }
    }

    /// A probe of a closed window becomes outstanding; it carries no rate information.
    pub(super) fn on_probe(&mut self) {
        self.stamps.push_back(RateStamp::default());
    }

    /// A segment of the queue is divided; its parts keep its stamp.
    pub(super) fn on_divided(&mut self, division: Division) {
        let Division { index, parts } = division;
        let Some(stamp) = self.stamps.get(index).copied() else { return };
        for _ in 1..parts {
            self.stamps.insert(index, stamp);
        }
    }

    /// The segment at this index of the queue is retransmitted.
    pub(super) fn on_retransmitted_at(
        &mut self,
        now: Instant,
        index: usize,
        nothing_in_flight: bool,
    ) {
        let stamp = self.stamp(now, nothing_in_flight);
        if let Some(place) = self.stamps.get_mut(index) {
            *place = stamp;
        }
    }

    /// The first segment is acknowledged and leaves the queue. The acknowledgement delivers it,
    /// unless it was selectively acknowledged before.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, now: Instant, sent: &OutstandingSegment) {
        let stamp = self.stamps.pop_front().unwrap_or_default();
        if !sent.sacked {
            self.on_delivered(now, sent, stamp);
        }
    }

    /// The segment at this index of the queue is selectively acknowledged.
    pub(super) fn on_sacked(&mut self, now: Instant, index: usize, sent: &OutstandingSegment) {
        let stamp = self.stamps.get(index).copied().unwrap_or_default();
        self.on_delivered(now, sent, stamp);
    }

    /// Counts the `delivered` bytes by which the loss recovery estimates an acknowledgement, in the
    /// place of the `acked` bytes that it acknowledges: without SACK, duplicates before it have
    /// counted most of them (Linux, `tcp_add_reno_sack`, `tcp_remove_reno_sacks`).
    pub(super) fn count_estimated(&mut self, now: Instant, acked: u32, delivered: u32) {
        self.delivered = (self.delivered + u64::from(delivered)).saturating_sub(u64::from(acked));
        self.delivered_at = now;
    }

    /// The stamp of a segment that is sent now.
    #[inline]
    fn stamp(&mut self, now: Instant, nothing_in_flight: bool) -> RateStamp {
        if nothing_in_flight {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > 0 && self.app_limited_until >= self.delivered,
        }
    }

    /// A segment was delivered (acknowledged or selectively acknowledged for the first time).
    #[inline]
    fn on_delivered(&mut self, now: Instant, sent: &OutstandingSegment, stamp: RateStamp) {
        self.delivered += u64::from(sent.len);
        self.delivered_at = now;
        if self.newest.is_none_or(|(_, newest)| stamp.delivered >= newest.delivered) {
            self.newest = Some((sent.sent_at, stamp));
            self.first_sent_at = sent.sent_at;
        }
    }

    /// The sample of this acknowledgement, if it delivered data.
    #[inline]
    pub(super) fn take_sample(&mut self) -> Option<RateSample> {
        let (sent_at, stamp) = self.newest.take()?;
        let send = sent_at.since(stamp.first_sent_at);
        let ack = self.delivered_at.since(stamp.delivered_at);
        Some(RateSample {
            delivered: self.delivered - stamp.delivered,
            prior_delivered: stamp.delivered,
            interval: send.max(ack),
            app_limited: stamp.app_limited,
        })
    }

    /// The application has no more data to send while `in_flight` bytes are in flight.
    #[inline]
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Total number of bytes delivered.
    #[inline]
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Duration;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    /// Sends a message of `segments` segments and acknowledges it; returns whether its samples are
    /// application-limited.
    fn message(account: &mut RateAccount, at_ms: u64, from: u64, segments: u64) -> Vec<bool> {
        let sent: Vec<_> = (0..segments)
            .map(|index| OutstandingSegment::new(from + 100 * index, 100, at(at_ms)))
            .collect();
        for index in 0..segments {
            account.on_sent(at(at_ms), index == 0);
        }
        account.on_app_limited(100 * segments);
        let limited = |sent: &OutstandingSegment| {
            account.on_acknowledged(at(at_ms + 50), sent);
            account.take_sample().unwrap().app_limited
        };
        sent.iter().map(limited).collect()
    }

    /// draft-ietf-ccwg-bbr, section 4.1.1.4: the mark is cleared when more than the data then
    /// outstanding is delivered, so the first flight after an idle time still has it.
    #[test]
    fn a_message_after_an_idle_time_is_application_limited() {
        let mut account = RateAccount::default();
        assert_eq!(message(&mut account, 0, 1, 3), [false; 3]);
        assert_eq!(message(&mut account, 500, 301, 2), [true; 2]);
        // An unlimited supply of data: only the first flight is application-limited.
        for _ in 0..2 {
            account.on_sent(at(1000), false);
        }
        account.on_acknowledged(at(1050), &OutstandingSegment::new(501, 100, at(0)));
        assert!(account.take_sample().unwrap().app_limited);
        account.on_sent(at(1050), false);
        account.on_acknowledged(at(1060), &OutstandingSegment::new(601, 100, at(0)));
        account.take_sample();
        account.on_acknowledged(at(1100), &OutstandingSegment::new(701, 100, at(0)));
        assert!(!account.take_sample().unwrap().app_limited);
    }
}
