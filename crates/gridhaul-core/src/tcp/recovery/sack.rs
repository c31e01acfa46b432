//! Loss recovery with selective acknowledgements (RFC 6675).

use gridhaul_scenario::units::Instant;

use super::{LossRecovery, Scene, Verdict};
use crate::tcp::params::StackParams;

/// SACK.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sack {
    /// `RecoveryPoint`: recovery ends when everything before it is acknowledged.
    recover: u64,
    recovering: bool,
    began: Instant,
}

impl Sack {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    fn enter(&mut self, scene: &mut Scene<'_>) {
        // Section 5, step 4: RecoveryPoint = HighData; ssthresh = cwnd = FlightSize / 2; send the
        // first lost segment whatever the pipe says.
        let loss = scene.loss();
        scene.congestion.on_loss(&loss);
        self.recover = scene.next;
        self.recovering = true;
        self.began = scene.now;
        scene.queue.begin_recovery();
        self.judge(scene);
        scene.retransmit_first();
        scene.restart_timer = true;
    }

    fn judge(&self, scene: &mut Scene<'_>) {
        scene.queue.judge(scene.params.dupthresh, scene.params.mss, self.began);
    }
}

impl LossRecovery for Sack {
    fn on_duplicate(&mut self, scene: &mut Scene<'_>) -> bool {
        if self.recovering {
            self.judge(scene);
            return false;
        }
        let (dupthresh, mss) = (scene.params.dupthresh, scene.params.mss);
        // Section 5, steps 1 and 2: DupThresh duplicates, or IsLost (HighACK + 1).
        let many = scene.duplicates >= dupthresh
            || scene.queue.sacked_bytes() > u64::from(dupthresh - 1) * u64::from(mss);
        // Section 5.1: after a timeout, no new recovery "until HighACK is greater than or equal to the
        // new value of RecoveryPoint". HighACK is the octet before `una`, RecoveryPoint the one before
        // `recover`. NewReno, which cannot see what has arrived, needs more than that (RFC 6582, 3.2).
        if many && scene.una >= self.recover {
            self.enter(scene);
            return true;
        }
        false
    }

    #[inline]
    fn on_new_ack(&mut self, scene: &mut Scene<'_>, _acked: u64) -> Verdict {
        if !self.recovering {
            return Verdict::Grow;
        }
        if scene.una >= self.recover {
            // Section 5: "once an ACK covers RecoveryPoint, loss recovery ends".
            self.recovering = false;
            scene.congestion.on_recovered(scene.now);
            return Verdict::Hold;
        }
        self.judge(scene);
        // RFC 6298, 5.3.
        scene.restart_timer = true;
        Verdict::Hold
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self { recover: next, ..Self::default() };
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.recovering
    }
}
