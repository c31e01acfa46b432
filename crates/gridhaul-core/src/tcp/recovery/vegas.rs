//! Vegas' retransmission (Brakmo and Peterson 1995, section 3.1) as in ns-2.35: every duplicate
//! acknowledgement may prove the loss of the first segment by its age, including retransmitted
//! segments, and so may the first two new acknowledgements after a retransmission.

use gridhaul_scenario::units::Instant;

use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::tcp::params::StackParams;

/// Vegas. Packed, so that [`Recovery`](super::Recovery) needs 8 bytes less for its tag and padding.
#[derive(Debug, Clone, Copy, Default)]
#[repr(Rust, packed(2))]
pub(crate) struct Vegas {
    /// After a timeout, a fast retransmit needs an acknowledgement beyond this position
    /// (RFC 6582, section 4.1).
    recover: u64,
    /// Consecutive duplicate acknowledgements; a first retransmission counts as the third.
    duplicates: u32,
    inflation: u32,
    /// Time of the last window reduction, [`Instant::ZERO`] before the first, and the window after
    /// it.
    reduced_at: Instant,
    reduced_cwnd: u32,
    /// Number of new acknowledgements that may still prove the loss of the next segment.
    acks_to_check: u8,
    recovering: bool,
}

impl Vegas {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        let loss = context.loss();
        context.congestion.on_loss(&loss);
        let reduced_at = self.reduced_at;
        if reduced_at == Instant::ZERO || reduced_at < loss.sent_at {
            self.reduced_at = context.now;
            self.reduced_cwnd = context.congestion.cwnd();
            // Segments that have left the network are replaced at once.
            self.inflation = self.duplicates * context.params.mss;
        }
        context.retransmit_first();
        // ns-2 also doubles the coarse timeout until the next measurement: the sender does so by
        // `Policy::fast_retransmit_backs_off`, because this function reports a fast retransmit.
        context.requests.restart_timer = true;
        self.acks_to_check = 2;
        self.recovering = true;
        if loss.transmits == 1 {
            self.duplicates = context.params.dupthresh;
        }
    }
}

impl LossRecovery for Vegas {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.duplicates += 1;
        let late = context
            .queue
            .front()
            .is_some_and(|first| context.congestion.expired(context.now, first.sent_at));
        if late || self.duplicates == context.params.dupthresh {
            if context.una > self.recover {
                self.enter(context);
                return true;
            }
        } else if self.duplicates > context.params.dupthresh {
            self.inflation += context.params.mss;
        }
        false
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        let inflated = context.congestion.cwnd().saturating_add(self.inflation);
        if self.duplicates > context.params.dupthresh && inflated > self.reduced_cwnd {
            context.congestion.deflate(context.congestion.cwnd().saturating_sub(self.reduced_cwnd));
            context.congestion.on_recovered(context.now);
        } else {
            // ns-2 removes the inflation only if duplicates followed the retransmission.
            context.congestion.inflate(self.inflation);
        }
        self.inflation = 0;
        self.duplicates = 0;
        self.recovering = false;
        if self.acks_to_check > 0 {
            let late = context
                .queue
                .front()
                .is_some_and(|first| context.congestion.expired(context.now, first.sent_at));
            self.acks_to_check -= 1;
            if late {
                context.retransmit_first();
                self.duplicates = context.params.dupthresh;
            } else {
                self.acks_to_check = 0;
            }
        }
        CwndGrowth::Grow
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

    /// The next new acknowledgement resets the count of duplicates, also one that a retransmission
    /// by the second checked acknowledgement has set: otherwise the next loss inflates the window
    /// by that count.
    fn is_watching(&self) -> bool {
        self.acks_to_check > 0 || self.duplicates > 0
    }
}
