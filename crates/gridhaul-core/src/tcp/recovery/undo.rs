//! Detection of spurious reductions: by timestamps (Eifel, RFC 3522), and by duplicate selective
//! acknowledgements (RFC 3708, section 2). RFC 4015 restores the window.

use gridhaul_scenario::units::Instant;

use crate::tcp::recovery::{DuplicateReport, LossRecoveryContext};

/// The state before a reduction that may prove spurious.
#[derive(Debug, Clone, Copy)]
pub(super) struct UndoState {
    pub cwnd: u32,
    ssthresh: u32,
    /// When the first segment was retransmitted.
    retransmitted_at: Instant,
    /// First unacknowledged position at the reduction: what ends before it was not retransmitted
    /// because of the reduction (Linux, `undo_marker`).
    una: u64,
    /// Retransmitted segments of which the peer has not reported a duplicate; `None` before the
    /// first retransmission (Linux, `undo_retrans`).
    unreported: Option<u32>,
}

impl UndoState {
    /// The state at the start of a recovery or at a timeout.
    pub(super) fn new(context: &LossRecoveryContext<'_>) -> Self {
        let out = context.queue.retransmitted_segments();
        Self {
            cwnd: context.congestion.cwnd(),
            ssthresh: context.congestion.ssthresh(),
            retransmitted_at: context.now,
            una: context.una,
            unreported: (out > 0).then_some(out),
        }
    }

    /// Restores the window (RFC 4015, section 3.2).
    pub(super) fn restore_window(&self, context: &mut LossRecoveryContext<'_>) {
        context.congestion.on_undo(self.cwnd, self.ssthresh);
    }

    pub(super) fn on_retransmitted(&mut self) {
        self.unreported = Some(self.unreported.unwrap_or(0).saturating_add(1));
    }

    pub(super) fn on_duplicate(&mut self, report: &DuplicateReport) {
        if report.end > self.una {
            let unreported = self.unreported.map(|count| count.saturating_sub(report.segments));
            self.unreported = unreported;
        }
    }

    /// Whether the peer has received an original of each retransmitted segment as well, so that
    /// none of them was lost (Linux, `tcp_try_undo_dsack`).
    pub(super) fn all_were_duplicates(&self) -> bool {
        self.unreported == Some(0)
    }

    /// RFC 3522, section 3.2: whether an acknowledgement echoes a timestamp before the first
    /// retransmission, so that an original transmission triggered it.
    pub(super) fn precedes_retransmission(&self, echo: Option<u32>) -> bool {
        echo.is_some_and(|echo| u64::from(echo) < self.retransmitted_at.as_nanos() / 1_000_000)
    }
}
