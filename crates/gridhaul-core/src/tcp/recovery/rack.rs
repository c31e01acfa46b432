//! RACK-TLP (RFC 8985): a segment is lost if a segment that was sent sufficiently later has
//! arrived. The window follows proportional rate reduction during recovery, where the stack has it;
//! spurious reductions are undone (RFC 4015) if timestamps (RFC 3522) or F-RTO (RFC 5682) detect
//! them. `sender/rack_timers.rs` has the tail loss probe.
//!
//! Not implemented: duplicate SACK (RFC 2883), by which Linux also detects spurious retransmissions
//! and widens the reordering window; here the window stays at a quarter of the minimum RTT.

use gridhaul_scenario::units::{Duration, Instant};

use super::prr::{AckProgress, Prr};
use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;
use crate::tcp::retransmission_queue::DeliveredSegment;

/// RACK.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rack {
    /// Position whose acknowledgement ends the recovery, after a timeout too.
    recover: u64,
    ca_state: CaState,
    /// Whether segments are sacked out of order.
    disorder: bool,
    state: Option<Box<RackState>>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CaState {
    #[default]
    Open,
    /// Fast recovery.
    Recovery,
    /// After a timeout.
    Loss,
}

/// Margin of the RACK-TLP timers (Linux: two ticks, `TCP_TIMEOUT_MIN`), so that a probe does not
/// coincide with the acknowledgement. For a single segment, whose acknowledgement may be delayed,
/// Linux uses the minimum RTO as `TLP.max_ack_delay` (RFC 8985, section 7.2).
pub(crate) const TIMEOUT_MIN: Duration = Duration::from_millis(2);

/// State that is allocated with the first out-of-order delivery.
#[derive(Debug, Clone, Default)]
struct RackState {
    /// RFC 8985, section 5.2: `RACK.segment`, `RACK.rtt` and `RACK.reordering_seen`.
    newest: Option<DeliveredSegment>,
    rtt: Duration,
    reordered: bool,
    prr: Option<Prr>,
    undo: Option<UndoState>,
    frto: FrtoState,
}

/// F-RTO: detection of a spurious timeout (RFC 5682, section 3.1, for SACK as in Linux).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FrtoState {
    /// The timeout was needed, or F-RTO does not apply.
    #[default]
    Inactive,
    /// Step 1: only the first segment has been retransmitted.
    FirstRetransmitted,
    /// Step 2b: the first segment is acknowledged, and new data is sent instead of segments marked
    /// lost.
    SendingNewData,
    /// New data has been sent: the next acknowledgement decides (step 3).
    NewDataSent,
}

/// Window and threshold before a reduction that may prove spurious.
#[derive(Debug, Clone, Copy)]
struct UndoState {
    cwnd: u32,
    ssthresh: u32,
    /// When the first segment was retransmitted.
    retransmitted_at: Instant,
}

impl Rack {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    /// Section 6.2, steps 1 to 3: updates the delivered segment that was sent last.
    fn update(&mut self, context: &LossRecoveryContext<'_>) {
        let Some(newest) = context.ack.newest else { return };
        let state = self.state.get_or_insert_default();
        state.reordered |= newest.reordered;
        // Step 2 iterates over the delivered segments: the last one determines the round trip.
        state.rtt = context.now.since(newest.last_sent_at);
        if state.newest.is_none_or(|before| newest.is_after(&before)) {
            state.newest = Some(newest);
        }
    }

    /// Section 6.2, steps 4 and 5: marks lost segments, and requests a timer if more may follow.
    /// Returns the bytes marked, and whether retransmissions are among them.
    fn detect_loss(&mut self, context: &mut LossRecoveryContext<'_>) -> (u64, bool) {
        let Some(state) = &self.state else { return (0, false) };
        let Some(newest) = state.newest else { return (0, false) };
        // Section 6.2, step 4: if no reordering was seen, the reordering window is zero in recovery
        // or with DupThresh sacked segments; otherwise a quarter of the minimum RTT.
        let threshold = u64::from(context.params.dupthresh) * u64::from(context.params.mss);
        let no_reordering_wait =
            self.ca_state != CaState::Open || context.queue.sacked_bytes() >= threshold;
        let window = if no_reordering_wait && !state.reordered {
            Duration::ZERO
        } else {
            Duration::from_nanos(context.rtt.min_rtt().as_nanos() / 4)
                .min(context.rtt.srtt().unwrap_or_default())
        };
        mark!(rack_reordering_window if !window.is_zero());
        let found = context.queue.mark_lost_by_send_time(&newest, state.rtt + window, context.now);
        // Linux, tcp_rack_mark_lost: two ticks more, TCP_TIMEOUT_MIN.
        context.requests.reorder_at = found.due.map(|at| at + TIMEOUT_MIN);
        (found.bytes, found.retransmitted)
    }

    /// Detects losses, and enters recovery if there are any. Returns whether it did.
    fn detect_and_enter(&mut self, context: &mut LossRecoveryContext<'_>, advanced: bool) -> bool {
        let (lost, retransmission_lost) = self.detect_loss(context);
        // A retransmission that is lost after a timeout is a new loss (Linux).
        let entered = match self.ca_state {
            CaState::Open => context.queue.lost_bytes() > 0,
            CaState::Loss => retransmission_lost,
            CaState::Recovery => false,
        };
        if entered {
            self.enter(context);
        }
        self.disorder = context.queue.sacked_bytes() > 0;
        let in_flight = context.in_flight();
        if let Some(prr) = self.state.as_mut().and_then(|state| state.prr.as_mut()) {
            let (delivered, mss) = (context.ack.delivered, context.params.mss);
            prr.on_ack(&AckProgress { delivered, lost, advanced, in_flight, mss });
        }
        entered
    }

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        let undo = UndoState::new(context);
        let loss = context.loss();
        context.congestion.on_loss(&loss);
        self.ca_state = CaState::Recovery;
        self.recover = context.next;
        context.requests.stop_timing = true;
        // Linux counts in segments.
        let rounding = if context.params.whole_ssthresh { context.params.mss } else { 1 };
        let prr = (context.params.prr && !context.congestion.is_paced())
            .then(|| Prr::enter(undo.cwnd, context.congestion.cwnd(), rounding));
        // Without PRR the first retransmission is sent regardless of the window (RFC 6675, section
        // 5); but in Linux a congestion control with pacing does without PRR and waits for the
        // window.
        context.requests.retransmit_now = !context.params.prr;
        let state = self.state.get_or_insert_default();
        state.prr = prr;
        state.undo = Some(undo);
        state.frto = FrtoState::Inactive;
    }

    /// RFC 3522, section 3.2, and RFC 4015: an acknowledgement that echoes a timestamp before the
    /// first retransmission was triggered by an original transmission, so no segment was lost.
    /// Returns whether it was so.
    fn undo_if_spurious(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        let Some(state) = &mut self.state else { return false };
        let (Some(undo), Some(echo)) = (state.undo, context.ack.echo) else { return false };
        if u64::from(echo) >= undo.retransmitted_at.as_nanos() / 1_000_000 {
            return false;
        }
        mark!(rack_undo_by_timestamp);
        self.restore(context);
        true
    }

    fn restore(&mut self, context: &mut LossRecoveryContext<'_>) {
        let undo = self.state.as_mut().and_then(|state| state.undo.take());
        context.queue.clear_lost_marks();
        if let Some(undo) = undo {
            context.congestion.on_undo(undo.cwnd, undo.ssthresh);
        }
    }

    /// RFC 5682, section 3.1, for an acknowledgement after a timeout: step 3b, whether a segment
    /// has arrived that was outstanding at the timeout and not retransmitted, so that the timeout
    /// was spurious; otherwise whether new data is sent to find out (step 2b) or retransmission
    /// continues (steps 2a and 3a).
    fn timeout_was_spurious(&mut self, context: &LossRecoveryContext<'_>, advanced: bool) -> bool {
        let recover = self.recover;
        let Some(state) = self.state.as_mut() else { return false };
        if state.frto == FrtoState::Inactive {
            return false;
        }
        if context.ack.newest.is_some_and(|newest| newest.original < recover) {
            mark!(f_rto_spurious_timeout);
            return true;
        }
        state.frto = match state.frto {
            FrtoState::FirstRetransmitted if advanced && context.una < recover => {
                mark!(f_rto_sends_new_data);
                self.recover = context.next;
                FrtoState::SendingNewData
            }
            FrtoState::FirstRetransmitted => FrtoState::FirstRetransmitted,
            FrtoState::SendingNewData | FrtoState::NewDataSent if advanced => {
                FrtoState::NewDataSent
            }
            FrtoState::SendingNewData | FrtoState::NewDataSent | FrtoState::Inactive => {
                FrtoState::Inactive
            }
        };
        false
    }

    fn exit(&mut self) {
        self.ca_state = CaState::Open;
        if let Some(state) = &mut self.state {
            (state.prr, state.undo, state.frto) = (None, None, FrtoState::Inactive);
        }
    }
}

impl UndoState {
    fn new(context: &LossRecoveryContext<'_>) -> Self {
        Self {
            cwnd: context.congestion.cwnd(),
            ssthresh: context.congestion.ssthresh(),
            retransmitted_at: context.now,
        }
    }
}

impl LossRecovery for Rack {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.update(context);
        if self.ca_state == CaState::Loss && self.timeout_was_spurious(context, false) {
            self.restore(context);
            self.exit();
        }
        self.detect_and_enter(context, false)
    }

    #[inline]
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, _acked: u64) -> CwndGrowth {
        self.update(context);
        context.requests.restart_timer = true;
        if self.ca_state == CaState::Loss && self.timeout_was_spurious(context, true) {
            self.restore(context);
            self.exit();
        } else if self.ca_state != CaState::Open && context.una >= self.recover {
            let recovering = self.ca_state == CaState::Recovery;
            let undone = self.undo_if_spurious(context);
            self.exit();
            if recovering && !undone {
                context.congestion.on_recovered(context.now);
            }
        } else if self.ca_state == CaState::Loss && self.undo_if_spurious(context) {
            self.exit();
        }
        self.detect_and_enter(context, true);
        if self.ca_state == CaState::Recovery { CwndGrowth::Hold } else { CwndGrowth::Grow }
    }

    fn on_reorder_timer(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.detect_and_enter(context, false)
    }

    fn before_timeout(&mut self, context: &LossRecoveryContext<'_>) {
        let open = self.ca_state == CaState::Open;
        // RFC 5682, section 3.2: used after a recovery only if the same segment times out again.
        let timed_out_before = context.queue.front().is_some_and(|first| first.timed_out);
        let state = self.state.get_or_insert_default();
        state.frto = if open || timed_out_before {
            FrtoState::FirstRetransmitted
        } else {
            FrtoState::Inactive
        };
        if open {
            state.undo = Some(UndoState::new(context));
        }
    }

    fn on_timeout(&mut self, next: u64) {
        self.recover = next;
        self.ca_state = CaState::Loss;
        if let Some(state) = &mut self.state {
            state.prr = None;
        }
    }

    #[inline]
    fn window(&self) -> Option<u32> {
        let prr = self.state.as_ref()?.prr.as_ref()?;
        Some(prr.window())
    }

    #[inline]
    fn sends_new_data_first(&self) -> bool {
        self.state.as_ref().is_some_and(|state| state.frto == FrtoState::SendingNewData)
    }

    fn resumes_retransmission(&mut self, next: u64) -> bool {
        let sent_nothing = next <= self.recover;
        if let Some(state) = self.state.as_mut().filter(|_| sent_nothing) {
            state.frto = FrtoState::Inactive;
        }
        sent_nothing
    }

    #[inline]
    fn on_sent(&mut self, len: u32) {
        if let Some(prr) = self.state.as_mut().and_then(|state| state.prr.as_mut()) {
            prr.on_sent(len);
        }
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.ca_state == CaState::Recovery
    }

    #[inline]
    fn is_watching(&self) -> bool {
        self.disorder || self.ca_state != CaState::Open
    }

    fn repairs_timeout(&self) -> Option<bool> {
        Some(self.ca_state == CaState::Loss)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.state.as_ref().filter(|state| state.newest.is_some()).map(|state| state.rtt)
    }
}
