//! Proportional rate reduction (RFC 9937): during recovery the amount sent follows the amount
//! delivered, so that the window decreases evenly to the threshold within a round trip.

use super::LossRecoveryContext;
use super::undo::UndoState;
use crate::coverage_mark::mark;
use crate::tcp::rules::AlgorithmRules;

/// Window of the current recovery, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Prr {
    /// The threshold at which the recovery ends, and the window before the loss (`RecoverFS`: Linux
    /// uses the congestion window).
    ssthresh: u32,
    recover_fs: u32,
    delivered: u64,
    prr_out: u64,
    window: u32,
    /// Granularity of the amount to send: a byte, or a segment (Linux).
    rounding: u32,
}

/// Effects of an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(super) struct AckProgress {
    /// Bytes newly delivered and newly found lost.
    pub delivered: u32,
    pub lost: u64,
    /// Whether the cumulative acknowledgement advanced.
    pub advanced: bool,
    pub in_flight: u64,
    pub mss: u32,
}

impl Prr {
    /// Starts a recovery with a window of `recover_fs` bytes; the amount to send is rounded up to
    /// `rounding`.
    pub(super) const fn enter(recover_fs: u32, ssthresh: u32, rounding: u32) -> Self {
        Self { ssthresh, recover_fs, delivered: 0, prr_out: 0, window: recover_fs, rounding }
    }

    /// The window reduction at the start of a fast recovery of Linux: returns the window of the
    /// recovery, where the stack has it, and the state before the reduction.
    pub(super) fn reduce(context: &mut LossRecoveryContext<'_>) -> (Option<Self>, UndoState) {
        let undo = UndoState::new(context);
        let recover_fs = recover_fs(context);
        let loss = context.loss();
        context.congestion.on_loss(&loss);
        context.requests.stop_timing = true;
        // Linux counts in segments.
        let rounding = if context.params.whole_ssthresh { context.params.mss } else { 1 };
        let prr = (context.params.prr && !context.congestion.is_paced())
            .then(|| Self::enter(recover_fs, context.congestion.cwnd(), rounding));
        // Without PRR the first retransmission is sent regardless of the window (RFC 6675, section
        // 5); but in Linux a congestion control with pacing does without PRR and waits for the
        // window.
        context.requests.retransmit_now = !context.params.prr;
        (prr, undo)
    }

    /// The window reduction for a congestion mark (Linux, `tcp_enter_cwr`): returns its window,
    /// where the stack has it. Unlike that for a loss, it is not undone.
    pub(super) fn reduce_for_mark(context: &mut LossRecoveryContext<'_>) -> Option<Self> {
        let (loss, recover_fs) = (context.loss(), recover_fs(context));
        context.congestion.on_congestion_mark(&loss);
        context.requests.reduced_for_mark = true;
        let rounding = if context.params.whole_ssthresh { context.params.mss } else { 1 };
        (context.params.prr && !context.congestion.is_paced())
            .then(|| Self::enter(recover_fs, context.congestion.cwnd(), rounding))
    }

    /// RFC 9937, section 6.2, for each acknowledgement of the recovery.
    pub(super) fn on_ack(&mut self, ack: &AckProgress) {
        self.delivered += u64::from(ack.delivered);
        let ssthresh = u64::from(self.ssthresh);
        let mut quota = if ack.in_flight > ssthresh {
            mark!(prr_in_proportion);
            // In proportion: sndcnt = ceil (prr_delivered * ssthresh / RecoverFS) - prr_out.
            let share = (self.delivered * ssthresh).div_ceil(u64::from(self.recover_fs.max(1)));
            share.next_multiple_of(u64::from(self.rounding)).saturating_sub(self.prr_out)
        } else {
            // At or below the threshold: delivered data is replaced, plus one segment for every
            // acknowledgement that finds no further loss (slow start).
            let mut bound =
                self.delivered.saturating_sub(self.prr_out).max(u64::from(ack.delivered));
            if ack.advanced && ack.lost == 0 {
                mark!(prr_slow_start);
                bound += u64::from(ack.mss);
            }
            bound.min(ssthresh - ack.in_flight)
        };
        if self.prr_out == 0 {
            // "Force a fast retransmit upon entering recovery".
            quota = quota.max(u64::from(ack.mss));
        }
        self.window = u32::try_from(ack.in_flight + quota).unwrap_or(u32::MAX);
    }

    /// A segment is sent, new or retransmitted.
    pub(super) fn on_sent(&mut self, len: u32) {
        self.prr_out += u64::from(len);
    }

    /// Limit of the data in flight.
    pub(super) const fn window(&self) -> u32 {
        self.window
    }
}

/// `RecoverFS` (RFC 9937, section 6.2): the data that was in flight before the acknowledgement. In
/// Linux the congestion window, whole segments of which may be unused (`prior_cwnd`).
fn recover_fs(context: &LossRecoveryContext<'_>) -> u32 {
    if context.params.policy.algorithms == AlgorithmRules::Linux {
        return context.congestion.cwnd();
    }
    let sacked_before =
        context.queue.sacked_bytes().saturating_sub(u64::from(context.ack.delivered));
    u32::try_from(context.next - context.una - sacked_before).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coverage_mark::covers;

    const MSS: u32 = 1_000;

    fn ack(in_flight: u64) -> AckProgress {
        AckProgress { delivered: MSS, lost: 0, advanced: false, in_flight, mss: MSS }
    }

    /// 20 segments are outstanding, one is lost, and the window is to become 10: for every second
    /// of the 19 segments that arrive, one is sent.
    #[test]
    fn every_second_delivery_is_replaced_while_the_window_halves() {
        covers!(prr_in_proportion);
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, 1);
        let (mut in_flight, mut sent) = (19_000, 0);
        for _ in 0..18 {
            in_flight -= u64::from(MSS);
            prr.on_ack(&ack(in_flight));
            while in_flight + u64::from(MSS) <= u64::from(prr.window()) {
                prr.on_sent(MSS);
                in_flight += u64::from(MSS);
                sent += 1;
            }
        }
        assert_eq!(sent, 9, "half of the 18 deliveries, including the forced first retransmission");
        assert!((9_000..=11_000).contains(&in_flight), "{in_flight} is not close to the threshold");
    }

    /// Most of the window is lost: the data in flight is far below the threshold. Each delivery
    /// releases one segment, and one more if the cumulative acknowledgement advances.
    #[test]
    fn below_the_threshold_an_advancing_acknowledgement_releases_another_segment() {
        covers!(prr_slow_start);
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, 1);
        prr.on_ack(&ack(3_000));
        assert_eq!(prr.window(), 4_000);
        prr.on_sent(MSS);
        prr.on_ack(&AckProgress { advanced: true, ..ack(3_000) });
        assert_eq!(prr.window(), 5_000);
        prr.on_sent(2 * MSS);
        prr.on_ack(&AckProgress { advanced: true, lost: 1, ..ack(3_000) });
        assert_eq!(prr.window(), 4_000, "a further loss: conservative");
    }

    /// Linux counts in segments: one for every two deliveries, and the first one at once.
    #[test]
    fn the_amount_in_proportion_is_rounded_up_to_whole_segments() {
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, MSS);
        let allowed = [18_000, 18_000, 17_000, 17_000].map(|in_flight| {
            prr.on_ack(&ack(in_flight));
            let more = prr.window() - in_flight as u32;
            prr.on_sent(more);
            more
        });
        assert_eq!(allowed, [MSS, 0, MSS, 0]);
    }

    /// RFC 9937, section 6.2: "Force a fast retransmit upon entering recovery", once.
    #[test]
    fn the_first_retransmission_is_sent_before_anything_is_delivered() {
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, 1);
        let nothing = AckProgress { delivered: 0, ..ack(19_000) };
        prr.on_ack(&nothing);
        assert_eq!(prr.window(), 20_000);
        prr.on_sent(MSS);
        prr.on_ack(&nothing);
        assert_eq!(prr.window(), 19_000);
    }

    #[test]
    fn below_the_threshold_the_window_does_not_exceed_it() {
        let mut prr = Prr::enter(20 * MSS, 10 * MSS, 1);
        prr.on_ack(&ack(18_000));
        prr.on_sent(MSS);
        prr.on_ack(&ack(9_500));
        assert_eq!(prr.window(), 10_000);
        prr.on_ack(&ack(10_000));
        assert_eq!(prr.window(), 10_000);
        // Above it, half of the four segments delivered may be sent, of which one was.
        prr.on_ack(&ack(10_001));
        assert_eq!(prr.window(), 11_001);
    }
}
