//! Pacing: earliest transmission time of the next segment.

use gridhaul_scenario::units::{Duration, Instant};

use super::{Flag, SendRange, Sender};
use crate::tcp::params::StackParams;

/// Linux: the first ten data segments are not paced (`tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

impl Sender {
    /// Time before which pacing allows no transmission.
    pub(super) fn paced_until(&self) -> Instant {
        self.optional.rate().map_or(Instant::ZERO, |rate| rate.paced_until)
    }

    pub(super) fn pace_until(&mut self, at: Instant) {
        if let Some(rate) = self.optional.rate_mut() {
            rate.paced_until = at;
        }
    }

    /// After a transmission: the next segment is delayed by the segment's transmission time at the
    /// pacing rate.
    #[inline]
    pub(super) fn pace(&mut self, now: Instant, range: SendRange, params: &StackParams) {
        if self.flags.has(Flag::Paced)
            && let Some(rate) = self.congestion.pacing_rate()
        {
            let bytes = f64::from(range.len + params.header);
            let gap = Duration::from_secs_f64(bytes / rate.max(1.0));
            let from = self.paced_until().max(now);
            if params.policy.paces_bursts {
                self.pace_burst(now, gap);
            } else {
                self.pace_until(from + gap);
            }
        }
    }

    /// Linux passes the segments of a burst to the device together and then waits for the
    /// transmission time of all of them at the pacing rate. Of unused pacing time, up to half of
    /// the next gap is credited. The first ten segments of a connection are not delayed.
    fn pace_burst(&mut self, now: Instant, gap: Duration) {
        if self.stats.segments <= UNPACED {
            return;
        }
        let burst = self.congestion.burst();
        let Some(rate) = self.optional.rate_mut() else { return };
        let unused = now.since(rate.paced_until);
        if rate.burst_at == now && rate.burst_left > 0 {
            rate.burst_left -= 1;
        } else {
            (rate.burst_at, rate.burst_left) = (now, burst.saturating_sub(1));
        }
        let half = Duration::from_nanos(gap.as_nanos() / 2);
        rate.paced_until = rate.paced_until.max(now) + gap - half.min(unused);
    }

    #[inline]
    pub(super) fn is_delayed_by_pacing(&self, now: Instant) -> bool {
        if !self.flags.has(Flag::Paced) {
            return false;
        }
        let Some(rate) = self.optional.rate() else { return false };
        let of_a_burst = rate.burst_left > 0 && rate.burst_at == now;
        rate.paced_until > now && !of_a_burst && self.congestion.pacing_rate().is_some()
    }
}
