//! RACK-TLP (RFC 8985): a segment is lost if a segment that was sent sufficiently later has
//! arrived. The window follows proportional rate reduction during recovery, where the stack has it;
//! spurious reductions are undone (RFC 4015) if timestamps (RFC 3522) or F-RTO (RFC 5682) detect
//! them, or duplicate selective acknowledgements (RFC 2883), which also widen the reordering
//! window. `sender/rack_timers.rs` has the tail loss probe.

mod reordering_window;

use gridhaul_scenario::units::Duration;

use self::reordering_window::ReorderingWindow;
use super::ca_state::CaState;
use super::frto::{FrtoState, FrtoVerdict};
use super::prr::{AckProgress, Prr};
use super::undo::UndoState;
use super::{CwndGrowth, DuplicateReport, LossRecovery, LossRecoveryContext};
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

/// Margin of the RACK-TLP timers (Linux: two ticks, `TCP_TIMEOUT_MIN`), so that a probe does not
/// coincide with the acknowledgement. For a single segment, whose acknowledgement may be delayed,
/// Linux uses the minimum RTO as `TLP.max_ack_delay` (RFC 8985, section 7.2).
pub(crate) const TIMEOUT_MIN: Duration = Duration::from_millis(2);

/// State that is allocated with the first out-of-order delivery.
#[derive(Debug, Clone, Default)]
struct RackState {
    /// RFC 8985, section 5.2: `RACK.segment` and `RACK.rtt`.
    newest: Option<DeliveredSegment>,
    rtt: Duration,
    reordering: ReorderingWindow,
    prr: Option<Prr>,
    undo: Option<UndoState>,
    /// Segments that the peer has reported as duplicates.
    duplicates: u32,
    /// No lost segment is retransmitted before the next acknowledgement.
    pauses_retransmission: bool,
    frto: FrtoState,
}

impl Rack {
    pub(crate) fn new(_params: &StackParams) -> Self {
        Self::default()
    }

    /// Section 6.2, steps 1 to 3: updates the delivered segment that was sent last.
    fn update(&mut self, context: &LossRecoveryContext<'_>) {
        let Some(newest) = context.ack.newest else { return };
        let state = self.state.get_or_insert_default();
        if newest.reordered {
            // Linux, tcp_highest_sack_seq: the start of the highest sacked segment, or everything
            // that is acknowledged once no segment is sacked.
            let (mss, queue) = (context.params.mss, &context.queue);
            let has_sacked = queue.sacked_bytes() > 0;
            let highest = queue.highest_sacked().saturating_sub(u64::from(mss));
            let end = if has_sacked { highest } else { context.una };
            state.reordering.on_reordered(end.saturating_sub(newest.original), mss);
        }
        // Step 2 iterates over the delivered segments: the last one determines the round trip.
        state.rtt = context.now.since(newest.last_sent_at);
        if state.newest.is_none_or(|before| newest.is_after(&before)) {
            state.newest = Some(newest);
        }
        state.reordering.on_delivered(&newest, context.now);
    }

    /// Section 6.2, steps 4 and 5: marks lost segments, and requests a timer if more may follow.
    /// Returns the bytes marked, and whether retransmissions are among them.
    fn detect_loss(&mut self, context: &mut LossRecoveryContext<'_>) -> (u64, bool) {
        let Some(state) = &self.state else { return (0, false) };
        let Some(newest) = state.newest else { return (0, false) };
        // Section 6.2, step 4: if no reordering was seen, the reordering window is zero in recovery
        // or with DupThresh sacked segments.
        let no_reordering_wait =
            !self.is_open() || context.queue.has_sacked_segments(context.params.dupthresh);
        let window = if no_reordering_wait && !state.reordering.reordering_seen {
            Duration::ZERO
        } else {
            state.reordering.duration(context.rtt.min_rtt(), context.rtt.srtt())
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
            CaState::Open | CaState::Cwr => context.queue.lost_bytes() > 0,
            CaState::Loss => retransmission_lost,
            CaState::Recovery => false,
        };
        if entered {
            self.enter(context);
        } else if context.ack.congestion_echo
            && context.params.policy.reduces_gradually_for_marks
            && self.ca_state == CaState::Open
        {
            self.enter_cwr(context);
        }
        self.account(context, lost, advanced);
        entered
    }

    /// Accounts an acknowledgement with which `lost` bytes were marked lost.
    fn account(&mut self, context: &LossRecoveryContext<'_>, lost: u64, advanced: bool) {
        self.disorder = context.queue.sacked_bytes() > 0;
        let in_flight = context.in_flight();
        if let Some(prr) = self.state.as_mut().and_then(|state| state.prr.as_mut()) {
            let (delivered, mss) = (context.ack.delivered, context.params.mss);
            prr.on_ack(&AckProgress { delivered, lost, advanced, in_flight, mss });
        }
    }

    /// Whether neither a loss nor a timeout is repaired.
    const fn is_open(&self) -> bool {
        matches!(self.ca_state, CaState::Open | CaState::Cwr)
    }

    /// A congestion mark: the window decreases evenly within a round trip (Linux, `tcp_enter_cwr`).
    #[cold]
    fn enter_cwr(&mut self, context: &mut LossRecoveryContext<'_>) {
        mark!(rack_reduces_for_mark);
        self.ca_state = CaState::Cwr;
        self.recover = context.next;
        let state = self.state.get_or_insert_default();
        (state.prr, state.undo) = (Prr::reduce_for_mark(context), None);
    }

    fn enter(&mut self, context: &mut LossRecoveryContext<'_>) {
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
        let state = self.state.get_or_insert_default();
        (state.prr, state.undo, state.frto) = (prr, Some(undo), FrtoState::Inactive);
    }

    /// Restores the window if the reduction was spurious. Returns whether it was.
    fn undo_if_spurious(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        let Some(undo) = self.state.as_ref().and_then(|state| state.undo) else { return false };
        if undo.precedes_retransmission(context.ack.echo) {
            mark!(rack_undo_by_timestamp);
        } else if !undo.all_were_duplicates() {
            return false;
        }
        self.restore(context);
        true
    }

    /// An acknowledgement of a part of the data in recovery that an original transmission has
    /// triggered: the network has reordered segments. If segments have been retransmitted besides,
    /// the acknowledgement releases only new data, until it is known whether these retransmissions
    /// were necessary; otherwise the reduction is undone (Linux, `tcp_try_undo_partial`). Returns
    /// whether losses are detected with this acknowledgement.
    fn handle_partial_ack(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        let Some(state) = &mut self.state else { return true };
        let Some(undo) = state.undo else { return true };
        if !undo.precedes_retransmission(context.ack.echo) {
            return true;
        }
        state.reordering.reordering_seen = true;
        if context.queue.retransmitted_segments() > 0 {
            mark!(rack_waits_for_original);
            state.pauses_retransmission = true;
            return false;
        }
        mark!(rack_undo_by_partial_ack);
        self.restore(context);
        self.exit();
        true
    }

    fn restore(&mut self, context: &mut LossRecoveryContext<'_>) {
        context.queue.clear_lost_marks();
        self.restore_window(context);
    }

    fn restore_window(&mut self, context: &mut LossRecoveryContext<'_>) {
        if let Some(undo) = self.state.as_mut().and_then(|state| state.undo.take()) {
            undo.restore_window(context);
        }
    }

    /// Whether an acknowledgement after a timeout shows that the timeout was spurious; `advanced`
    /// if it acknowledges new data.
    fn timeout_was_spurious(&mut self, context: &LossRecoveryContext<'_>, advanced: bool) -> bool {
        let recover = self.recover;
        let Some(state) = self.state.as_mut() else { return false };
        let verdict = state.frto.on_ack(context, advanced, recover);
        if verdict == FrtoVerdict::SendNewData {
            self.recover = context.next;
        }
        verdict == FrtoVerdict::Spurious
    }

    fn resume_retransmission(&mut self) {
        if let Some(state) = &mut self.state {
            state.pauses_retransmission = false;
        }
    }

    /// Ends the recovery. Its reduction can still be undone: reports of duplicates arrive after the
    /// acknowledgement of all data.
    fn exit(&mut self) {
        self.ca_state = CaState::Open;
        if let Some(state) = &mut self.state {
            (state.prr, state.frto) = (None, FrtoState::Inactive);
        }
    }
}

impl LossRecovery for Rack {
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.update(context);
        self.resume_retransmission();
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
        self.resume_retransmission();
        if self.ca_state == CaState::Loss && self.timeout_was_spurious(context, true) {
            self.restore(context);
            self.exit();
        } else if self.ca_state == CaState::Cwr {
            // Linux, `tcp_fastretrans_alert`: the reduction ends when data is acknowledged that was
            // sent after it, so that CWR has reached the peer.
            if context.una > self.recover {
                self.exit();
                context.congestion.on_recovered(context.now);
            }
        } else if self.ca_state != CaState::Open && context.una >= self.recover {
            let recovering = self.ca_state == CaState::Recovery;
            let undone = self.undo_if_spurious(context);
            self.exit();
            if recovering && !undone {
                context.congestion.on_recovered(context.now);
            }
            if let Some(state) = self.state.as_mut().filter(|_| !undone) {
                state.reordering.on_recovered();
            }
        } else if self.ca_state == CaState::Loss && self.undo_if_spurious(context) {
            self.exit();
        } else if self.ca_state == CaState::Recovery && !self.handle_partial_ack(context) {
            self.account(context, 0, true);
            return CwndGrowth::Hold;
        }
        self.detect_and_enter(context, true);
        if matches!(self.ca_state, CaState::Recovery | CaState::Cwr) {
            CwndGrowth::Hold
        } else {
            CwndGrowth::Grow
        }
    }

    fn on_duplicate_report(
        &mut self,
        context: &mut LossRecoveryContext<'_>,
        report: &DuplicateReport,
    ) {
        let state = self.state.get_or_insert_default();
        state.pauses_retransmission = false;
        state.duplicates = state.duplicates.saturating_add(report.segments);
        // Linux, tcp_dsack_seen: more duplicates than retransmissions are copies that the network
        // has made, which show nothing about the retransmissions.
        if state.duplicates > report.retransmissions {
            return;
        }
        if !report.answers_probe {
            state.reordering.on_duplicate();
        }
        let Some(undo) = &mut state.undo else { return };
        undo.on_duplicate(report);
        // After a timeout, the next acknowledgement of new data decides (Linux, tcp_process_loss).
        if undo.all_were_duplicates() && self.ca_state != CaState::Loss {
            mark!(rack_undo_by_duplicate_sack);
            self.restore_window(context);
            self.exit();
        }
    }

    fn on_retransmitted(&mut self) {
        if let Some(undo) = self.state.as_mut().and_then(|state| state.undo.as_mut()) {
            undo.on_retransmitted();
        }
    }

    fn on_reorder_timer(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        self.detect_and_enter(context, false)
    }

    fn before_timeout(&mut self, context: &LossRecoveryContext<'_>) {
        let open = self.is_open();
        let state = self.state.get_or_insert_default();
        state.frto = FrtoState::at_timeout(context, open);
        if open {
            state.undo = Some(UndoState::new(context));
        }
    }

    fn on_timeout(&mut self, next: u64) {
        self.recover = next;
        self.ca_state = CaState::Loss;
        if let Some(state) = &mut self.state {
            (state.prr, state.pauses_retransmission) = (None, false);
        }
    }

    fn on_segments_too_big(&mut self, next: u64) {
        self.on_timeout(next);
        if let Some(state) = &mut self.state {
            (state.undo, state.frto) = (None, FrtoState::Inactive);
        }
    }

    #[inline]
    fn window(&self) -> Option<u32> {
        let prr = self.state.as_ref()?.prr.as_ref()?;
        Some(prr.window())
    }

    #[inline]
    fn sends_new_data_first(&self) -> bool {
        self.state.as_ref().is_some_and(|state| {
            state.frto == FrtoState::SendingNewData || state.pauses_retransmission
        })
    }

    fn resumes_retransmission(&mut self, next: u64) -> bool {
        if self.state.as_ref().is_some_and(|state| state.pauses_retransmission) {
            return false;
        }
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

    fn grows_by_sacked(&self, dupthresh: u32) -> bool {
        !matches!(self.ca_state, CaState::Recovery | CaState::Cwr)
            && self.state.as_ref().is_some_and(|state| state.reordering.exceeds(dupthresh))
    }

    #[inline]
    fn in_recovery(&self) -> bool {
        self.ca_state == CaState::Recovery
    }

    #[inline]
    fn is_watching(&self) -> bool {
        self.disorder
            || self.ca_state != CaState::Open
            || self.state.as_ref().is_some_and(|state| state.reordering.awaits_delivery())
    }

    fn reduces_gradually(&self) -> bool {
        true
    }

    fn repairs_timeout(&self) -> Option<bool> {
        Some(self.ca_state == CaState::Loss)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.state.as_ref().filter(|state| state.newest.is_some()).map(|state| state.rtt)
    }
}
