//! Delivery-rate samples (draft-ietf-ccwg-bbr, section 4.1.1): how fast the path delivered the
//! data that an acknowledgement covers.

use gridhaul_scenario::units::{Duration, Instant};

/// What is noted with each segment when it is sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateStamp {
    /// Bytes delivered on the connection when it was sent.
    pub delivered: u64,
    /// When they were.
    pub delivered_at: Instant,
    /// When the first segment of the flight that they end was sent.
    pub first_sent_at: Instant,
    /// Whether the application, not the window, was the limit.
    pub app_limited: bool,
}

/// Delivery rate over the last acknowledged flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSample {
    /// Bytes delivered between the sending of the segment and its acknowledgement.
    pub delivered: u64,
    /// Total delivered when that segment was sent.
    pub prior_delivered: u64,
    /// The longer of the times in which they were sent and acknowledged.
    pub interval: Duration,
    /// Whether the application was the limit.
    pub app_limited: bool,
}

impl RateSample {
    /// Bytes per second; 0 over no time.
    #[must_use]
    pub fn bytes_per_sec(&self) -> f64 {
        if self.interval.is_zero() {
            0.0
        } else {
            self.delivered as f64 / self.interval.as_secs_f64()
        }
    }
}

/// The account of a connection from which samples are made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateAccount {
    delivered: u64,
    delivered_at: Instant,
    first_sent_at: Instant,
    /// Data sent before this much was delivered is limited by the application.
    app_limited_until: u64,
    newest: Option<(Instant, RateStamp)>,
}

impl RateAccount {
    /// The stamp of a segment that is sent now.
    #[inline]
    pub(super) fn stamp(&mut self, now: Instant, nothing_in_flight: bool) -> RateStamp {
        if nothing_in_flight {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        RateStamp {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            app_limited: self.app_limited_until > self.delivered,
        }
    }

    /// A segment was delivered (acknowledged or selectively acknowledged for the first time).
    #[inline]
    pub(super) fn on_delivered(
        &mut self,
        now: Instant,
        bytes: u32,
        sent_at: Instant,
        stamp: RateStamp,
    ) {
        self.delivered += u64::from(bytes);
        self.delivered_at = now;
        if self.newest.is_none_or(|(_, newest)| stamp.delivered >= newest.delivered) {
            self.newest = Some((sent_at, stamp));
            self.first_sent_at = sent_at;
        }
    }

    /// The sample of this acknowledgement, if it delivered anything.
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

    /// The application has nothing more to send while `in_flight` bytes are out.
    #[inline]
    pub(super) fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Bytes delivered in all.
    #[inline]
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }
}
