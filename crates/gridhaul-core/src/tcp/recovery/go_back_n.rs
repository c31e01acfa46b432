//! Fast retransmit without fast recovery (Tahoe): all segments from the lost segment on are
//! retransmitted.

use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;

/// Go-back-N.
#[derive(Debug, Clone)]
pub(crate) struct GoBackN {
    /// A new fast retransmit needs an acknowledgement beyond this position, so that duplicate
    /// acknowledgements of retransmitted segments do not trigger another one (RFC 6582, section
    /// 4.1).
    recover: u64,
    inflation: u32,
}

impl GoBackN {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self { recover: 0, inflation: 0 }
    }
}

impl LossRecovery for GoBackN {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.inflation = context.limited_transmit();
        if context.duplicates != context.params.dupthresh
            || !context.may_retransmit_fast(self.recover)
        {
            return false;
        }
        self.recover = context.next;
        context.reduce_for_loss();
        mark!(go_back_n_fast_retransmit);
        context.queue.mark_all_lost(true);
        context.requests.retransmit_now = true;
        context.requests.restart_timer = true;
        context.requests.stop_timing = true;
        true
    }

    #[inline]
    fn on_new_ack(&mut self, _context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        self.inflation = 0;
        CwndGrowth::Grow
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
