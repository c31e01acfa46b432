//! Fast retransmit without fast recovery (Tahoe): everything from the lost segment on is sent
//! again.

use super::{LossRecovery, Scene, Verdict};
use crate::tcp::params::StackParams;

/// Go back to the first unacknowledged segment.
#[derive(Debug, Clone)]
pub(crate) struct GoBack {
    /// A new fast retransmit needs an acknowledgement beyond this position, so that duplicates of
    /// segments sent twice do not start another one (RFC 6582, section 4.1).
    recover: u64,
    inflation: u32,
}

impl GoBack {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self { recover: 0, inflation: 0 }
    }
}

impl LossRecovery for GoBack {
    fn on_duplicate(&mut self, scene: &mut Scene<'_>) -> bool {
        self.inflation = scene.limited_transmit();
        if scene.duplicates != scene.params.dupthresh || !scene.may_retransmit_fast(self.recover) {
            return false;
        }
        self.recover = scene.next;
        let loss = scene.loss();
        scene.congestion.on_loss(&loss);
        scene.queue.mark_all_lost(true);
        scene.force_retransmit = true;
        scene.restart_timer = true;
        scene.stop_timing = true;
        true
    }

    #[inline]
    fn on_new_ack(&mut self, _scene: &mut Scene<'_>, _acked: u64) -> Verdict {
        self.inflation = 0;
        Verdict::Grow
    }

    fn on_timeout(&mut self, next: u64) {
        self.recover = next;
        self.inflation = 0;
    }

    #[inline]
    fn inflation(&self) -> u32 {
        self.inflation
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        false
    }
}
