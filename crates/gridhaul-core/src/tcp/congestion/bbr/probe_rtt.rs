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
