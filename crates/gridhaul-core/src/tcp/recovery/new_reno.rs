//! NewReno's fast recovery (RFC 6582, section 3.2): it ends when all data outstanding at its start
//! is acknowledged; each partial acknowledgement indicates the next loss.

use super::max_burst::MaxBurst;
use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;

/// NewReno.
#[derive(Debug, Clone)]
pub(crate) struct NewReno {
    recover: u64,
    recovering: bool,
    partial_seen: bool,
    inflation: u32,
    /// Bytes that partial acknowledgements have deducted from the window itself.
    deflated: u32,
    max_burst: MaxBurst,
}

impl NewReno {
    pub(crate) const fn new(_params: &StackParams) -> Self {
        Self::after(0)
    }

    /// Not in recovery; the next fast retransmit needs an acknowledgement beyond `recover`.
    const fn after(recover: u64) -> Self {
        Self {
            recover,
            recovering: false,
            partial_seen: false,
            inflation: 0,
            deflated: 0,
            max_burst: MaxBurst::UNLIMITED,
        }
    }

    /// Section 3.2, step 3, partial acknowledgements.
    fn on_partial(&mut self, context: &mut LossRecoveryContext<'_>, acked: u64) {
        mark!(new_reno_partial_acknowledgement);
        context.retransmit_first();
        if context.params.policy.partial_ack_keeps_timing {
            // The timed segment was sent after the loss (`partialnewack` continues to time it).
            context.requests.stop_timing = false;
        }
        // "Deflate the congestion window by the amount of new data acknowledged [...] add back SMSS
        // bytes": the excess over the inflation is deducted from the window itself.
        let acked = u32::try_from(acked).unwrap_or(u32::MAX);
        let mss = context.params.mss;
        if self.inflation > acked {
            self.inflation = (self.inflation - acked).saturating_add(mss);
        } else {
            let before = context.congestion.cwnd();
            context.congestion.deflate(acked - self.inflation);
            self.deflated += before - context.congestion.cwnd();
            self.inflation = mss;
        }
        // "For the first partial ACK that arrives during fast recovery, also reset the
        // retransmit timer": the Impatient variant.
        context.requests.restart_timer = !self.partial_seen;
        self.partial_seen = true;
    }
}

impl LossRecovery for NewReno {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        if let Some(burst) = context.params.policy.new_reno_burst {
            let third = self.recovering || context.duplicates >= context.params.dupthresh;
            self.max_burst = if third { MaxBurst::of(burst) } else { MaxBurst::UNLIMITED };
        }
        if self.recovering {
            // RFC 5681, section 3.2, step 4: another segment has left the network.
            self.inflation += context.params.mss;
            return false;
        }
        if context.duplicates == context.params.dupthresh
            && context.may_retransmit_fast(self.recover)
        {
            mark!(new_reno_fast_retransmit);
            // Section 3.2, step 2: recover is the highest sequence number sent.
            context.reduce_for_loss();
            context.retransmit_first();
            context.requests.restart_timer = true;
            self.recover = context.next;
            self.recovering = true;
            self.partial_seen = false;
            self.deflated = 0;
            self.inflation = context.params.dupthresh * context.params.mss;
            return true;
        }
        self.inflation = context.limited_transmit();
        false
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, acked: u64) -> CwndGrowth {
        self.max_burst = MaxBurst::UNLIMITED;
        if !self.recovering {
            self.inflation = 0;
            return CwndGrowth::Grow;
        }
        if context.una < self.recover {
            if let Some(burst) = context.params.policy.new_reno_burst {
                self.max_burst = MaxBurst::of(burst);
            }
            self.on_partial(context, acked);
            return CwndGrowth::Hold;
        }
        self.recovering = false;
        self.inflation = 0;
        context.congestion.on_recovered(context.now);
        if context.params.policy.keeps_deflated_window {
            return CwndGrowth::Grow;
        }
        mark!(new_reno_full_acknowledgement);
        // Section 3.2, step 3, full acknowledgements, option 2: cwnd to ssthresh, its value before
        // partial acknowledgements deflated it.
        context.congestion.inflate(self.deflated);
        CwndGrowth::Hold
    }

    fn on_timeout(&mut self, next: u64) {
        *self = Self::after(next);
    }

    #[inline]
    fn inflation(&self) -> u32 {
        self.inflation
    }

    #[inline]
    fn on_sent(&mut self, _len: u32) {
        self.max_burst.on_sent();
    }

    #[inline]
    fn may_send(&self) -> bool {
        self.max_burst.allows_sending()
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.recovering
    }
}
