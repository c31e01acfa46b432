//! Fast retransmit and fast recovery (RFC 5681, section 3.2).

use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::coverage_mark::mark;
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

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        context.reduce_for_loss();
        context.retransmit_first();
        context.requests.restart_timer = true;
        self.recovering = true;
        if context.params.policy.one_fast_retransmit_per_window {
            self.recover = context.next;
        }
        // Section 3.2, step 3: cwnd to ssthresh plus the segments that have left the network.
        self.inflation = context.params.dupthresh * context.params.mss;
    }
}

impl LossRecovery for Reno {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        if self.recovering {
            if context.duplicates > context.params.dupthresh {
                // Section 3.2, step 4: each further duplicate means that another segment has left
                // the network.
                mark!(reno_inflation);
                self.inflation += context.params.mss;
            }
            return false;
        }
        if context.duplicates == context.params.dupthresh
            && context.may_retransmit_fast(self.recover)
        {
            self.enter(context);
            return true;
        }
        self.inflation = context.limited_transmit();
        false
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        self.inflation = 0;
        if self.recovering {
            // Section 3.2, step 6: deflate to ssthresh. The congestion control has already set the
            // window.
            mark!(reno_deflation);
            self.recovering = false;
            context.congestion.on_recovered(context.now);
        }
        CwndGrowth::Grow
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
