//! The model of the path: bandwidth, aggregation of acknowledgements and policers (section 4.1).

use super::long_term_bandwidth::PathEvent;
use super::probe_bw::ProbeBw;
use super::{Bbr, State, whole_segments};
use crate::tcp::event::{Ack, RateSample};

impl Bbr {
    /// Section 4.1.1.5, `BBRUpdateBtlBw`: application-limited samples can only raise the estimate.
    #[inline]
    pub(super) fn update_bandwidth(&mut self, ack: &Ack) {
        let Some(sample) = self.sample(ack) else {
            self.round.pass();
            return;
        };
        self.round.update(sample.prior_delivered, ack.delivered_total);
        if self.rules().detects_policers {
            self.sample_long_term_bandwidth(PathEvent {
                progress: self.progress,
                lost: ack.lost > 0,
                begins_round: self.round.starts(),
                app_limited: self.is_limited(&sample),
                probing: self.is_probing(),
            });
        }
        let rate = sample.bytes_per_sec();
        if rate >= self.bandwidth.max() || !self.is_limited(&sample) {
            self.bandwidth.update(self.round.count(), rate);
        }
    }

    pub(super) fn sample_long_term_bandwidth(&mut self, event: PathEvent) {
        if self.long_term_bandwidth.update(&event) {
            self.state = State::ProbeBw(ProbeBw::enter(event.progress.at));
        }
    }

    pub(super) fn is_probing(&self) -> bool {
        matches!(self.state, State::ProbeBw(_))
    }

    /// The bandwidth that determines the pacing rate.
    #[inline]
    pub(super) fn bandwidth(&self) -> f64 {
        self.long_term_bandwidth.rate().unwrap_or(self.bandwidth.max())
    }

    /// The delivery rate of an acknowledgement. Linux rejects samples over less than the minimum
    /// RTT: they acknowledge the original of a retransmitted segment.
    #[inline]
    pub(super) fn sample(&self, ack: &Ack) -> Option<RateSample> {
        let minimum =
            self.min_rtt.get().filter(|_| self.rules().rejects_short_samples).unwrap_or_default();
        ack.rate.filter(|sample| sample.interval >= minimum)
    }

    #[inline]
    pub(super) fn update_aggregation(&mut self, ack: &Ack) {
        if self.rules().compensates_aggregation && self.sample(ack).is_some() {
            let (bandwidth, mss) = (self.bandwidth(), self.window.mss());
            let cwnd = self.window.cwnd_f64();
            let delivered = f64::from(ack.delivered);
            let starts = self.round.starts();
            let expected = |time| whole_segments(bandwidth, time, mss);
            self.aggregation.on_ack(ack.now, delivered, starts, cwnd, expected);
        }
    }

    /// Whether a sample was limited by other factors than the path.
    #[inline]
    pub(super) fn is_limited(&self, sample: &RateSample) -> bool {
        let (from, until) = self.probe_rtt_limited;
        sample.app_limited || (from..until).contains(&sample.prior_delivered)
    }
}
