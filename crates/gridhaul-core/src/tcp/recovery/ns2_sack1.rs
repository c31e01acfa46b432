//! Loss recovery of ns-2's `Sack1` agent (`tcp-sack1.cc`), which differs from RFC 6675: it counts
//! the pipe in packets, treats every hole as lost, and clears SACK information with each
//! acknowledgement of new data outside recovery.

use gridhaul_scenario::units::Instant;

use super::max_burst::MaxBurst;
use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::tcp::params::StackParams;

/// SACK recovery of ns-2. Packed, so that [`Recovery`](super::Recovery) needs 8 bytes less for its
/// tag and padding.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed(2))]
pub(crate) struct Ns2Sack1 {
    /// A fast retransmit needs an acknowledgement beyond this position (`recover_`).
    recover: u64,
    /// Bytes in the pipe during recovery (`pipe_`): negative if more acknowledgements have arrived
    /// than segments were counted.
    pipe: i64,
    began: Instant,
    /// Window inflation by limited transmit.
    inflation: u32,
    recovering: bool,
    max_burst: MaxBurst,
}

impl Ns2Sack1 {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self {
            recover: 0,
            pipe: 0,
            began: Instant::ZERO,
            inflation: 0,
            recovering: false,
            max_burst: MaxBurst::UNLIMITED,
        }
    }

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        context.reduce_for_loss();
        self.recover = context.next;
        self.recovering = true;
        self.began = context.now;
        self.inflation = 0;
        // `dupack_action`: the segments of the duplicate acknowledgements have left the pipe, and
        // the retransmission is not counted. No other segment is sent before the next
        // acknowledgement.
        let left = i64::from(context.params.dupthresh) * i64::from(context.params.mss);
        self.pipe = (context.next - context.una).cast_signed() - left;
        self.max_burst = MaxBurst::NONE;
        context.queue.begin_recovery();
        context.retransmit_first();
        context.requests.restart_timer = true;
    }

    /// Every acknowledgement removes one segment from the pipe, and a partial acknowledgement two:
    /// the lost segment and its retransmission. Segments below the highest sacked position that are
    /// not sacked are marked lost.
    fn reduce_pipe(&mut self, context: &mut LossRecoveryContext<'_>, segments: i64) {
        self.pipe -= segments * i64::from(context.params.mss);
        self.max_burst = MaxBurst::UNLIMITED;
        let boundary = context.queue.highest_sacked();
        context.queue.mark_lost_until(boundary, self.began);
    }

    fn exit(&mut self) {
        (self.recovering, self.recover, self.pipe) = (false, 0, 0);
    }
}

impl LossRecovery for Ns2Sack1 {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        if self.recovering {
            self.reduce_pipe(context, 1);
            return false;
        }
        let dupthresh = context.params.dupthresh;
        if context.duplicates == dupthresh && context.may_retransmit_fast(self.recover) {
            self.enter(context);
            return true;
        }
        // `send_one`: a duplicate acknowledgement releases at most one segment, however much it
        // sacks.
        let releases = context.params.limited_transmit && context.duplicates < dupthresh;
        self.max_burst = MaxBurst::of(u8::from(releases));
        self.inflation = if releases { context.duplicates * context.params.mss } else { 0 };
        false
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        if self.recovering && context.una < self.recover {
            self.reduce_pipe(context, 2);
            // `newtimer (pkt); t_backoff_ = 1;`: at each partial acknowledgement.
            context.requests.restart_timer = true;
            context.requests.end_backoff = true;
            return CwndGrowth::Hold;
        }
        context.queue.clear_sacks();
        (self.inflation, self.max_burst) = (0, MaxBurst::UNLIMITED);
        if !self.recovering {
            return CwndGrowth::Grow;
        }
        // Segments that were not retransmitted count as outstanding again.
        context.queue.clear_lost_marks();
        self.exit();
        context.congestion.on_recovered(context.now);
        CwndGrowth::Hold
    }

    fn on_timeout(&mut self, next: u64) {
        self.exit();
        (self.recover, self.inflation, self.max_burst) = (next, 0, MaxBurst::UNLIMITED);
    }

    #[inline]
    fn inflation(&self) -> u32 {
        let missing = self.pipe.min(0).unsigned_abs() as u32;
        self.inflation + missing
    }

    #[inline]
    fn in_flight(&self, outstanding: u64, lost: u64) -> Option<u64> {
        Some(if self.recovering { self.pipe.max(0).cast_unsigned() } else { outstanding - lost })
    }

    #[inline]
    fn on_sent(&mut self, len: u32) {
        if self.recovering {
            self.pipe += i64::from(len);
        }
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
