//! Loss recovery of Linux without selective acknowledgements (`tcp_is_reno`).
//!
//! Each duplicate acknowledgement counts as a segment that has arrived, so that the data in flight
//! and proportional rate reduction follow the same rules as with SACK. The number is an estimate:
//! an acknowledgement of new data says only that the first gap is filled. Within a recovery each
//! partial acknowledgement shows one further loss (RFC 6582); where many segments of a window were
//! lost, one of them is therefore repaired per round-trip time, and little else is sent.

use gridhaul_scenario::units::Duration;

use super::ca_state::CaState;
use super::frto::{FrtoState, FrtoVerdict};
use super::prr::{AckProgress, Prr};
use super::undo::UndoState;
use super::{CwndGrowth, LossRecovery, LossRecoveryContext};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;

/// Recovery by counting segments that have arrived.
#[derive(Debug, Clone)]
pub(crate) struct LinuxReno {
    state: Box<State>,
}

#[derive(Debug, Clone)]
struct State {
    /// Position whose acknowledgement ends the recovery, after a timeout too (`high_seq`).
    recover: u64,
    ca_state: CaState,
    mss: u32,
    /// Segments beyond the first gap that have arrived, as far as duplicate acknowledgements show
    /// (`sacked_out`).
    arrived: u32,
    /// Arrived segments from which on the first one counts as lost (`reordering`).
    threshold: u32,
    /// No lost segment is retransmitted before the next acknowledgement.
    pauses_retransmission: bool,
    /// Round trip of the segment that was delivered last.
    rtt: Option<Duration>,
    prr: Option<Prr>,
    undo: Option<UndoState>,
    frto: FrtoState,
}

/// Linux, `TCP_MAX_REORDERING`, the default of `tcp_max_reordering`.
const THRESHOLD_MAX: u32 = 300;

impl LinuxReno {
    pub(crate) fn new(params: &StackParams) -> Self {
        let state = State {
            recover: 0,
            ca_state: CaState::Open,
            mss: params.mss,
            arrived: 0,
            threshold: params.dupthresh,
            pauses_retransmission: false,
            rtt: None,
            prr: None,
            undo: None,
            frto: FrtoState::Inactive,
        };
        Self { state: Box::new(state) }
    }
}

impl State {
    /// A duplicate acknowledgement: another segment has arrived (`tcp_add_reno_sack`). Returns the
    /// number by which the estimate grows.
    fn add_arrived(&mut self, context: &LossRecoveryContext<'_>) -> u32 {
        let before = self.arrived;
        self.arrived += 1;
        self.limit_arrived(context, 0);
        self.arrived.saturating_sub(before)
    }

    /// An acknowledgement of `acked` segments: the first of them fills the gap, and the others had
    /// arrived before (`tcp_remove_reno_sacks`). Returns the number of segments that it delivers.
    fn remove_arrived(&mut self, context: &LossRecoveryContext<'_>, acked: u32) -> u32 {
        let delivered = acked.saturating_sub(self.arrived).max(1);
        self.arrived = self.arrived.saturating_sub(acked.saturating_sub(1));
        self.limit_arrived(context, acked);
        delivered
    }

    /// No more segments have arrived than are outstanding and not missing. More duplicate
    /// acknowledgements show that the network reorders by more than the threshold
    /// (`tcp_check_reno_reordering`).
    fn limit_arrived(&mut self, context: &LossRecoveryContext<'_>, acked: u32) {
        let outstanding = context.queue.segments();
        let missing = context.queue.missing_segments().max(1).min(outstanding);
        if self.arrived > outstanding - missing {
            self.arrived = outstanding - missing;
            self.threshold = self.threshold.max((outstanding + acked).min(THRESHOLD_MAX));
        }
    }

    /// The first segment is lost if enough others have arrived, and in recovery with each partial
    /// acknowledgement (`tcp_newreno_mark_lost`). Returns the bytes marked.
    fn mark_lost(&self, context: &mut LossRecoveryContext<'_>, advanced: bool) -> u64 {
        let is_lost = match self.ca_state {
            CaState::Open | CaState::Cwr => self.arrived >= self.threshold,
            CaState::Recovery => advanced,
            CaState::Loss => false,
        };
        let before = context.queue.lost_bytes();
        if is_lost {
            context.queue.mark_front_lost();
        }
        context.queue.lost_bytes() - before
    }

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
        mark!(linux_reno_fast_retransmit);
        if self.ca_state == CaState::Cwr {
            // The mark has reduced the window already (Linux, `tcp_enter_recovery`).
            self.ca_state = CaState::Recovery;
            context.requests.already_reduced = true;
            context.requests.stop_timing = true;
            context.requests.retransmit_now = !context.params.prr;
            return;
        }
        let (prr, undo) = Prr::reduce(context);
        self.ca_state = CaState::Recovery;
        self.recover = context.next;
        (self.prr, self.undo, self.frto) = (prr, Some(undo), FrtoState::Inactive);
    }

    /// Detects a loss, and enters recovery if there is one. Returns whether it did.
    fn detect_and_enter(
        &mut self,
        context: &mut LossRecoveryContext<'_>,
        delivered: u32,
        advanced: bool,
    ) -> bool {
        let lost = self.mark_lost(context, advanced);
        let is_open = matches!(self.ca_state, CaState::Open | CaState::Cwr);
        let entered = is_open && context.queue.lost_bytes() > 0;
        if entered {
            self.enter(context);
        } else {
            self.enter_cwr_for_mark(context);
        }
        self.account(context, delivered, lost, advanced);
        entered
    }

    /// An acknowledgement echoes a congestion mark: the window decreases evenly within a round trip
    /// (Linux, `tcp_enter_cwr`).
    fn enter_cwr_for_mark(&mut self, context: &mut LossRecoveryContext<'_>) {
        if context.ack.congestion_echo && self.ca_state == CaState::Open {
            self.ca_state = CaState::Cwr;
            self.recover = context.next;
            (self.prr, self.undo) = (Prr::reduce_for_mark(context), None);
        }
    }

    /// An acknowledgement of new data while no loss is repaired.
    fn on_ack_while_open(&mut self, context: &mut LossRecoveryContext<'_>, delivered: u32) {
        self.arrived = 0;
        if self.ca_state == CaState::Cwr && context.una > self.recover {
            self.exit();
            context.congestion.on_recovered(context.now);
        }
        self.enter_cwr_for_mark(context);
        self.account(context, delivered, 0, true);
    }

    /// Accounts `delivered` segments and `lost` bytes.
    fn account(
        &mut self,
        context: &LossRecoveryContext<'_>,
        delivered: u32,
        lost: u64,
        advanced: bool,
    ) {
        let mss = self.mss;
        let in_flight = self.in_flight(context.next - context.una, context.queue.lost_bytes());
        if let Some(prr) = &mut self.prr {
            let delivered = delivered.saturating_mul(mss);
            prr.on_ack(&AckProgress { delivered, lost, advanced, in_flight, mss });
        }
    }

    fn in_flight(&self, outstanding: u64, lost: u64) -> u64 {
        outstanding.saturating_sub(lost + u64::from(self.arrived) * u64::from(self.mss))
    }

    /// Whether an original transmission triggered the acknowledgement, so that the reduction was
    /// spurious and is undone.
    fn undo_if_spurious(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        let is_spurious = self.is_original(context);
        if is_spurious {
            self.restore(context);
        }
        is_spurious
    }

    fn is_original(&self, context: &LossRecoveryContext<'_>) -> bool {
        self.undo.is_some_and(|undo| undo.precedes_retransmission(context.ack.echo))
    }

    fn restore(&mut self, context: &mut LossRecoveryContext<'_>) {
        context.queue.clear_lost_marks();
        if let Some(undo) = self.undo.take() {
            undo.restore_window(context);
        }
    }

    fn exit(&mut self) {
        self.ca_state = CaState::Open;
        (self.prr, self.undo, self.frto) = (None, None, FrtoState::Inactive);
    }

    /// New data is acknowledged in recovery.
    fn on_ack_in_recovery(&mut self, context: &mut LossRecoveryContext<'_>, delivered: u32) {
        if context.una < self.recover {
            if self.is_original(context) && context.queue.retransmitted_segments() > 0 {
                self.pauses_retransmission = true;
                self.account(context, delivered, 0, true);
                return;
            }
            if self.undo_if_spurious(context) {
                self.exit();
            }
            self.detect_and_enter(context, delivered, true);
            return;
        }
        self.arrived = 0;
        if self.undo_if_spurious(context) {
            self.exit();
        } else if context.una == self.recover {
            // RFC 6582, section 3.2, step 2, prevents a second fast retransmit by duplicates of
            // this acknowledgement; Linux remains in recovery until data beyond it is acknowledged
            // (tcp_is_non_sack_preventing_reopen).
            mark!(linux_reno_remains_in_recovery);
            self.account(context, delivered, 0, true);
        } else {
            self.exit();
            context.congestion.on_recovered(context.now);
        }
    }

    /// New data is acknowledged after a timeout.
    fn on_ack_after_timeout(&mut self, context: &mut LossRecoveryContext<'_>) {
        if self.undo_if_spurious(context) {
            self.exit();
            return;
        }
        // An acknowledgement of a retransmitted segment does not show that others have arrived
        // before it (Linux, FLAG_RETRANS_DATA_ACKED).
        let shows_original = !context.ack.retransmitted;
        match self.frto.on_ack(context, true, self.recover) {
            FrtoVerdict::Spurious if shows_original => {
                self.restore(context);
                self.exit();
                return;
            }
            FrtoVerdict::SendNewData => self.recover = context.next,
            FrtoVerdict::Spurious | FrtoVerdict::Continue => {}
        }
        self.arrived = 0;
        if context.una >= self.recover {
            self.exit();
        }
    }
}

impl LossRecovery for LinuxReno {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        let state = &mut *self.state;
        state.pauses_retransmission = false;
        if state.ca_state != CaState::Loss {
            let delivered = state.add_arrived(context);
            context.requests.delivered = Some(delivered.saturating_mul(state.mss));
            return state.detect_and_enter(context, delivered, false);
        }
        if context.next > state.recover {
            // New data that F-RTO has sent arrives beyond the gap: the timeout was necessary.
            state.frto = FrtoState::Inactive;
            state.add_arrived(context);
        }
        false
    }

    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, acked: u64) -> CwndGrowth {
        let state = &mut *self.state;
        state.pauses_retransmission = false;
        context.requests.restart_timer = true;
        if let Some(newest) = context.ack.newest {
            state.rtt = Some(context.now.since(newest.last_sent_at));
        }
        let acked = acked.div_ceil(u64::from(state.mss.max(1)));
        let acked = u32::try_from(acked).unwrap_or(u32::MAX);
        let delivered = state.remove_arrived(context, acked);
        // Duplicates have counted the others before.
        context.requests.delivered = Some(delivered.saturating_mul(state.mss));
        match state.ca_state {
            CaState::Open | CaState::Cwr => state.on_ack_while_open(context, delivered),
            CaState::Recovery => state.on_ack_in_recovery(context, delivered),
            CaState::Loss => state.on_ack_after_timeout(context),
        }
        if matches!(state.ca_state, CaState::Recovery | CaState::Cwr) {
            CwndGrowth::Hold
        } else {
            CwndGrowth::Grow
        }
    }

    fn before_timeout(&mut self, context: &LossRecoveryContext<'_>) {
        let state = &mut *self.state;
        let open = matches!(state.ca_state, CaState::Open | CaState::Cwr);
        state.frto = FrtoState::at_timeout(context, open);
        if open {
            state.undo = Some(UndoState::new(context));
        }
        if open && state.arrived >= context.params.dupthresh {
            // A loss that enough duplicates did not show: the threshold was too high
            // (tcp_enter_loss).
            state.threshold = state.threshold.min(context.params.dupthresh);
        }
    }

    fn on_timeout(&mut self, next: u64) {
        let state = &mut *self.state;
        state.recover = next;
        state.ca_state = CaState::Loss;
        state.arrived = 0;
        (state.prr, state.pauses_retransmission) = (None, false);
    }

    fn on_mss_lowered(&mut self, mss: u32) {
        self.state.mss = mss;
    }

    fn on_segments_too_big(&mut self, next: u64) {
        self.on_timeout(next);
        (self.state.undo, self.state.frto) = (None, FrtoState::Inactive);
    }

    fn on_retransmitted(&mut self) {
        if let Some(undo) = &mut self.state.undo {
            undo.on_retransmitted();
        }
    }

    #[inline]
    fn window(&self) -> Option<u32> {
        Some(self.state.prr.as_ref()?.window())
    }

    #[inline]
    fn in_flight(&self, outstanding: u64, lost: u64) -> Option<u64> {
        (self.state.arrived > 0).then(|| self.state.in_flight(outstanding, lost))
    }

    #[inline]
    fn sends_new_data_first(&self) -> bool {
        self.state.frto == FrtoState::SendingNewData || self.state.pauses_retransmission
    }

    fn resumes_retransmission(&mut self, next: u64) -> bool {
        let state = &mut *self.state;
        let sent_nothing = next <= state.recover;
        if state.pauses_retransmission {
            return false;
        }
        if sent_nothing {
            state.frto = FrtoState::Inactive;
        }
        sent_nothing
    }

    #[inline]
    fn on_sent(&mut self, len: u32) {
        if let Some(prr) = &mut self.state.prr {
            prr.on_sent(len);
        }
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.state.ca_state == CaState::Recovery
    }

    #[inline]
    fn is_watching(&self) -> bool {
        self.state.arrived > 0 || self.state.ca_state != CaState::Open
    }

    fn repairs_timeout(&self) -> Option<bool> {
        Some(self.state.ca_state == CaState::Loss)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.state.rtt
    }
}
