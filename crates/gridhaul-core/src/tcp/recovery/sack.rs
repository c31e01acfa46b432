//! Loss recovery with selective acknowledgements (RFC 6675).

use gridhaul_scenario::units::Instant;

use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::coverage_mark::mark;
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

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        // Section 5, step 4: RecoveryPoint = HighData; ssthresh = cwnd = FlightSize / 2; send the
        // first lost segment regardless of the pipe.
        context.reduce_for_loss();
        self.recover = context.next;
        self.recovering = true;
        self.began = context.now;
        context.queue.begin_recovery();
        self.mark_lost(context);
        context.retransmit_first();
        context.requests.restart_timer = true;
    }

    fn mark_lost(&self, context: &mut LossRecoveryContext<'_>) {
        context.queue.mark_lost_by_sack(context.params.dupthresh, context.params.mss, self.began);
    }
}

impl LossRecovery for Sack {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        if self.recovering {
            self.mark_lost(context);
            return false;
        }
        let (dupthresh, mss) = (context.params.dupthresh, context.params.mss);
        // Section 5, steps 1 and 2: DupThresh duplicates, or IsLost (HighACK + 1).
        let many = context.duplicates >= dupthresh
            || context.queue.sacked_bytes() > u64::from(dupthresh - 1) * u64::from(mss);
        // Section 5.1: after a timeout, no new recovery "until HighACK is greater than or equal to
        // the new value of RecoveryPoint". HighACK is the octet before `una`, RecoveryPoint the one
        // before `recover`. NewReno, which has no information about the segments that have arrived,
        // requires more (RFC 6582, 3.2).
        mark!(sack_no_recovery_before_recovery_point if many && context.una < self.recover);
        if many && context.una >= self.recover {
            mark!(sack_recovery_by_sacked_bytes if context.duplicates < dupthresh);
            self.enter(context);
            return true;
        }
        false
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        if !self.recovering {
            return CwndGrowth::Grow;
        }
        if context.una >= self.recover {
            // Section 5: "once an ACK covers RecoveryPoint, loss recovery ends".
            mark!(sack_recovery_ends);
            self.recovering = false;
            context.congestion.on_recovered(context.now);
            return CwndGrowth::Hold;
        }
        self.mark_lost(context);
        // RFC 6298, 5.3.
        context.requests.restart_timer = true;
        CwndGrowth::Hold
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self { recover: next, ..Self::default() };
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.recovering
    }
}
