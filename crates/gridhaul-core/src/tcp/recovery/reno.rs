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
    /// New acknowledgements after a retransmission at which the next segment may prove to be lost
    /// as well, by its age (Brakmo and Peterson 1995, section 3.1: the first two).
    watched: u8,
}

impl Reno {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self { recover: 0, recovering: false, inflation: 0, watched: 0 }
    }

    fn enter(&mut self, scene: &mut Scene<'_>) {
        let loss = scene.loss();
        scene.congestion.on_loss(&loss);
        scene.retransmit_first();
        scene.restart_timer = true;
        self.recovering = true;
        self.watched = 2;
        // Section 3.2, step 3: cwnd to ssthresh plus the segments that have left the network.
        self.inflation = scene.duplicates.max(scene.params.dupthresh) * scene.params.mss;
    }
}

impl LossRecovery for Reno {
    fn on_duplicate(&mut self, scene: &mut Scene<'_>) -> bool {
        if self.recovering && scene.duplicates > scene.params.dupthresh {
            // Section 3.2, step 4: each further duplicate means that one more has left.
            self.inflation += scene.params.mss;
            return false;
        }
        let late = !self.recovering
            && scene
                .queue
                .front()
                .is_some_and(|first| scene.congestion.expired(scene.now, first.sent_at));
        if (scene.duplicates == scene.params.dupthresh && !self.recovering || late)
            && scene.una > self.recover
        {
            self.enter(scene);
            return true;
        }
        if !self.recovering {
            self.inflation = scene.limited_transmit();
        }
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
        if self.watched > 0 {
            self.watched -= 1;
            let first = scene.queue.front().copied();
            if first.is_some_and(|first| scene.congestion.expired(scene.now, first.sent_at)) {
                scene.retransmit_first();
            } else {
                self.watched = 0;
            }
        }
        Verdict::Grow
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self { recover: next, recovering: false, inflation: 0, watched: 0 };
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
