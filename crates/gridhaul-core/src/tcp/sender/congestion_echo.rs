//! Reaction of the sender to congestion marks that the peer echoes (RFC 3168, section 6.1.2).

use super::ack_event::AckEvent;
use super::{SendRange, Sender, loss_recovery_context};
use crate::coverage_mark::mark;
use crate::tcp::params::StackParams;
use crate::tcp::rules::HalvingBasis;

/// State of a sender whose stack has ECN.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CongestionEcho {
    /// The window was reduced when everything before this position had been sent: section 6.1.2
    /// permits one reduction for each window of data, by marks or losses.
    reduced_until: u64,
    /// Everything before this position has been sent at least once.
    sent_until: u64,
    /// The acknowledgement in hand echoes a mark.
    is_echoed: bool,
    /// The next segment of new data reports a reduction (CWR).
    reports_reduction: bool,
    reductions: u32,
}

impl CongestionEcho {
    /// First position of the window of data that may reduce the congestion window.
    pub(super) const fn reduced_until(&self) -> u64 {
        self.reduced_until
    }

    /// The acknowledgement in hand echoes a mark; only the first call returns true.
    pub(super) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.is_echoed, false)
    }

    /// The window was reduced, for a mark or a loss: the peer is notified, so that it ends its
    /// echo.
    pub(super) const fn note_reduction(&mut self, next: u64, by_mark: bool) {
        self.reduced_until = next;
        self.reports_reduction = true;
        self.reductions += by_mark as u32;
    }
}

impl Sender {
    /// An acknowledgement that is handled next echoes a congestion mark.
    #[cold]
    pub(crate) fn note_congestion_echo(&mut self) {
        let has_outstanding = self.una < self.next;
        if let Some(echo) = self.optional.congestion_echo_mut() {
            echo.is_echoed = has_outstanding;
            // Acknowledgements with marks do not take the common path.
            self.recovery_active |= has_outstanding;
        }
    }

    /// Reductions of the window for congestion marks.
    #[must_use]
    pub fn ecn_reductions(&self) -> u32 {
        self.optional.congestion_echo().map_or(0, |echo| echo.reductions)
    }

    /// Notes data of a segment that is being sent. Returns whether it is sent for the first time,
    /// and is no window probe.
    pub(crate) fn notes_new_data(&mut self, range: SendRange) -> bool {
        let (end, next) = (range.start + u64::from(range.len), self.next);
        let Some(echo) = self.optional.congestion_echo_mut() else { return false };
        let is_new = range.start >= echo.sent_until && end <= next;
        if is_new {
            echo.sent_until = end;
        }
        is_new
    }

    /// Whether the segment with new data that is being sent reports a reduction of the window.
    pub(crate) fn takes_reduction(&mut self) -> bool {
        let echo = self.optional.congestion_echo_mut();
        echo.is_some_and(|echo| std::mem::replace(&mut echo.reports_reduction, false))
    }

    /// Reduces the window for an echoed mark, unless the loss recovery does so gradually. Returns
    /// whether the acknowledgement must not increase it.
    pub(super) fn react_to_congestion_echo(
        &mut self,
        event: &AckEvent,
        params: &StackParams,
    ) -> bool {
        let reduced_until = self.optional.reduced_until();
        if params.policy.reduces_gradually_for_marks && self.recovery.reduces_gradually() {
            // `recovery/` holds the window.
            return false;
        }
        if !self.in_recovery() && self.una > reduced_until {
            mark!(ecn_reduction);
            let mut loss = loss_recovery_context!(self, event.now, params).loss();
            if params.halving == HalvingBasis::Flight {
                // The data that the acknowledgement removes was part of the window with the mark.
                let window = loss.window.saturating_add(event.acked as u32);
                loss.window = window.min(self.congestion.cwnd());
            }
            self.congestion.on_congestion_mark(&loss);
            self.note_reduction(true);
        }
        true
    }

    /// The window was reduced, for a mark or a loss.
    #[inline]
    pub(super) fn note_reduction(&mut self, by_mark: bool) {
        let next = self.next;
        if let Some(echo) = self.optional.congestion_echo_mut() {
            echo.note_reduction(next, by_mark);
        }
    }
}
