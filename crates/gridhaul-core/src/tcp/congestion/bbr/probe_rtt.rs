//! Round-trip probing: a small window for a short time, so that the queue empties (section 4.3.5).

use gridhaul_scenario::units::{Duration, Instant};

use super::round::Round;

/// `ProbeRTTDuration`: at least 200 ms, and a round.
const DURATION: Duration = Duration::from_millis(200);

/// Progress of the probe.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProbeRtt {
    /// `BBR.probe_rtt_done_stamp`, once the data in flight is small enough.
    until: Option<Instant>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
}

impl ProbeRtt {
    pub(super) const fn enter() -> Self {
        Self { until: None, round_done: false }
    }

    /// `BBRHandleProbeRTT`; `at_min_cwnd`: the data in flight is within the small window. Returns
    /// whether the probe is over.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        at_min_cwnd: bool,
        delivered: u64,
        round: &mut Round,
    ) -> bool {
        match self.until {
            None => {
                if at_min_cwnd {
                    self.until = Some(now + DURATION);
                    round.restart(delivered);
                }
                false
            }
            Some(until) => {
                self.round_done |= round.starts();
                self.round_done && now > until
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 4.3.5: at least 200 ms and a round trip with little data in flight.
    #[test]
    fn a_probe_lasts_200_ms_and_a_round_from_the_time_at_which_the_window_is_used_up() {
        let at = |ms: u64| Instant::ZERO + Duration::from_millis(ms);
        let (mut probe, mut round) = (ProbeRtt::enter(), Round::new());
        assert!(!probe.on_ack(at(0), false, 10, &mut round), "much data is in flight");
        assert!(!probe.on_ack(at(300), true, 20, &mut round));
        round.update(19, 30);
        assert!(!probe.on_ack(at(600), true, 30, &mut round), "data sent before");
        let mut early = (probe, round.clone());
        early.1.update(20, 40);
        assert!(!early.0.on_ack(at(500), true, 40, &mut early.1), "not yet 200 ms");
        round.update(20, 40);
        assert!(probe.on_ack(at(501), true, 40, &mut round));
    }
}
