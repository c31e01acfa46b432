//! Vegas' retransmission (Brakmo and Peterson 1995, section 3.1), as ns-2.35 carries it out: every
//! duplicate acknowledgement may prove the loss of the first segment by its age, also of one that
//! was sent again, and so may the first two new acknowledgements after a retransmission.

use gridhaul_scenario::units::Instant;

use super::{LossRecovery, Scene, Verdict};
use crate::tcp::params::StackParams;

/// Vegas.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vegas {
    /// After a timeout, a fast retransmit needs an acknowledgement beyond this position
    /// (RFC 6582, section 4.1).
    recover: u64,
    /// Duplicates in a row; a first retransmission counts as the third.
    duplicates: u32,
    inflation: u32,
    /// When a loss last reduced the window, [`Instant::ZERO`] if none has, and what it left.
    reduced_at: Instant,
    left: u32,
    /// New acknowledgements at which the next segment may prove to be lost as well.
    watched: u8,
    recovering: bool,
}

impl Vegas {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    fn enter(&mut self, scene: &mut Scene<'_>) {
        let loss = scene.loss();
        scene.congestion.on_loss(&loss);
        if self.reduced_at == Instant::ZERO || self.reduced_at < loss.sent_at {
            self.reduced_at = scene.now;
            self.left = scene.congestion.cwnd();
            // The segments that have left the network are replaced at once.
            self.inflation = self.duplicates * scene.params.mss;
        }
        scene.retransmit_first();
        // ns-2 doubles the coarse timeout as well, until the next measurement: the sender does, by
        // `vegas_timer`, as this returns that a retransmission has begun.
        scene.restart_timer = true;
        self.watched = 2;
        self.recovering = true;
        if loss.transmits == 1 {
            self.duplicates = scene.params.dupthresh;
        }
    }
}

impl LossRecovery for Vegas {
    fn on_duplicate(&mut self, scene: &mut Scene<'_>) -> bool {
        self.duplicates += 1;
        let late = scene
            .queue
            .front()
            .is_some_and(|first| scene.congestion.expired(scene.now, first.sent_at));
        if late || self.duplicates == scene.params.dupthresh {
            if scene.una > self.recover {
                self.enter(scene);
                return true;
            }
        } else if self.duplicates > scene.params.dupthresh {
            self.inflation += scene.params.mss;
        }
        false
    }

    #[inline]
    fn on_new_ack(&mut self, scene: &mut Scene<'_>, _acked: u64) -> Verdict {
        let inflated = scene.congestion.cwnd().saturating_add(self.inflation);
        if self.duplicates > scene.params.dupthresh && inflated > self.left {
            scene.congestion.deflate(scene.congestion.cwnd().saturating_sub(self.left));
            scene.congestion.on_recovered(scene.now);
        } else {
            // ns-2 gives the inflation back only if duplicates followed the retransmission.
            scene.congestion.inflate(self.inflation);
        }
        self.inflation = 0;
        self.duplicates = 0;
        self.recovering = false;
        if self.watched > 0 {
            let late = scene
                .queue
                .front()
                .is_some_and(|first| scene.congestion.expired(scene.now, first.sent_at));
            self.watched -= 1;
            if late {
                scene.retransmit_first();
                self.duplicates = scene.params.dupthresh;
            } else {
                self.watched = 0;
            }
        }
        Verdict::Grow
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self { recover: next, reduced_at: self.reduced_at, ..Self::default() };
    }

    #[inline]
    fn inflation(&self) -> u32 {
        self.inflation
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.recovering
    }

    fn is_watching(&self) -> bool {
        self.watched > 0
    }
}
