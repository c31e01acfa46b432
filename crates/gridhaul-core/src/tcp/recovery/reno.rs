//! Fast retransmit and fast recovery (RFC 5681, section 3.2).

use super::{LossRecovery, Scene, Verdict};
use crate::tcp::params::StackParams;

/// Reno: recovery ends with the first new acknowledgement.
#[derive(Debug, Clone)]
pub(crate) struct Reno {
    /// After a timeout, a fast retransmit needs an acknowledgement beyond this position
    /// (RFC 6582, section 4.1).
    recover: u64,
    recovering: bool,
    inflation: u32,
}

impl Reno {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self { recover: 0, recovering: false, inflation: 0 }
    }

    fn enter(&mut self, scene: &mut Scene<'_>) {
        let loss = scene.loss();
        scene.congestion.on_loss(&loss);
        scene.retransmit_first();
        scene.restart_timer = true;
        self.recovering = true;
        if scene.params.ns2_recovery {
            self.recover = scene.next;
        }
        // Section 3.2, step 3: cwnd to ssthresh plus the segments that have left the network.
        self.inflation = scene.params.dupthresh * scene.params.mss;
    }
}

impl LossRecovery for Reno {
    fn on_duplicate(&mut self, scene: &mut Scene<'_>) -> bool {
        if self.recovering {
            if scene.duplicates > scene.params.dupthresh {
                // Section 3.2, step 4: each further duplicate means that one more has left.
                self.inflation += scene.params.mss;
            }
            return false;
        }
        if scene.duplicates == scene.params.dupthresh && scene.may_retransmit_fast(self.recover) {
            self.enter(scene);
            return true;
        }
        self.inflation = scene.limited_transmit();
        false
    }

    #[inline]
    fn on_new_ack(&mut self, scene: &mut Scene<'_>, _acked: u64) -> Verdict {
        self.inflation = 0;
        if self.recovering {
            // Section 3.2, step 6: deflate to ssthresh. The controller's window is there already.
            self.recovering = false;
            scene.congestion.on_recovered(scene.now);
        }
        Verdict::Grow
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self { recover: next, recovering: false, inflation: 0 };
    }

    #[inline]
    fn inflation(&self) -> u32 {
        self.inflation
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.recovering
    }
}
