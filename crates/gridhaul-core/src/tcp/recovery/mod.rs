//! Loss recovery: loss detection and retransmission, with one file for each kind.
//!
//! A recovery handles duplicate and new acknowledgements, marks segments as lost in the
//! retransmission queue, and notifies the congestion control; the sender then retransmits the
//! marked segments.

mod ca_state;
mod context;
mod frto;
mod go_back_n;
mod linux_reno;
mod max_burst;
mod new_reno;
mod ns2_sack1;
mod prr;
mod rack;
mod reno;
mod rules;
mod sack;
mod undo;
mod vegas;

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::Duration;

use super::params::StackParams;

pub(crate) use context::{Delivery, DuplicateReport, LossRecoveryContext, SenderRequests};
pub(crate) use rack::TIMEOUT_MIN;
pub(crate) use rules::RecoveryRules;

/// Whether the window may grow with an acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CwndGrowth {
    Grow,
    Hold,
}

/// A loss-recovery algorithm.
pub(crate) trait LossRecovery {
    /// A duplicate acknowledgement. Returns whether a fast retransmit begins with it.
    fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool;

    /// `acked` bytes were newly acknowledged.
    fn on_new_ack(&mut self, context: &mut LossRecoveryContext<'_>, acked: u64) -> CwndGrowth;

    /// The peer has received data twice.
    fn on_duplicate_report(
        &mut self,
        _context: &mut LossRecoveryContext<'_>,
        _report: &DuplicateReport,
    ) {
    }

    /// Handles the reordering timer. Returns whether a fast retransmit begins.
    fn on_reorder_timer(&mut self, _context: &mut LossRecoveryContext<'_>) -> bool {
        false
    }

    /// The retransmission timer has expired; called before the sender changes its state.
    fn before_timeout(&mut self, _context: &LossRecoveryContext<'_>) {}

    /// The retransmission timer has expired; called after segments are marked lost.
    fn on_timeout(&mut self, next: u64);

    /// Segments become smaller; called before those that were too large are marked lost.
    fn on_mss_lowered(&mut self, _mss: u32) {}

    /// A router has reported that segments are too big, which are marked lost. They are repaired as
    /// after a timeout that cannot be spurious.
    fn on_segments_too_big(&mut self, next: u64) {
        self.on_timeout(next);
    }

    /// Bytes by which the window is inflated, because duplicate acknowledgements mean that segments
    /// have left the network.
    #[inline]
    fn inflation(&self) -> u32 {
        0
    }

    /// The window, where the recovery determines it instead of the congestion control.
    #[inline]
    fn window(&self) -> Option<u32> {
        None
    }

    /// Round trip of the delivered segment that was sent last, where it is known.
    fn round_trip(&self) -> Option<Duration> {
        None
    }

    /// Estimate of the bytes in the network, where the recovery keeps its own; from the outstanding
    /// bytes, and those of them that await retransmission.
    #[inline]
    fn in_flight(&self, _outstanding: u64, _lost: u64) -> Option<u64> {
        None
    }

    /// Whether a segment may be sent before the next acknowledgement, if the windows allow it.
    #[inline]
    fn may_send(&self) -> bool {
        true
    }

    /// A segment is sent.
    #[inline]
    fn on_sent(&mut self, _len: u32) {}

    /// A segment is retransmitted that was marked lost.
    fn on_retransmitted(&mut self) {}

    /// Whether new data is sent before lost segments (F-RTO).
    #[inline]
    fn sends_new_data_first(&self) -> bool {
        false
    }

    /// No more new data can be sent; `next` is the position that is sent next. Returns whether lost
    /// segments are retransmitted now, because no new data was sent.
    fn resumes_retransmission(&mut self, _next: u64) -> bool {
        true
    }

    /// Whether the window grows with data that is sacked beyond a gap: the network reorders so much
    /// that a gap is no sign of a loss (Linux, `tcp_may_raise_cwnd`).
    fn grows_by_sacked(&self, _dupthresh: u32) -> bool {
        false
    }

    /// Whether fast recovery is under way.
    fn in_recovery(&self) -> bool;

    /// Whether acknowledgements are processed although no recovery is under way.
    #[inline]
    fn is_watching(&self) -> bool {
        false
    }

    /// Whether the recovery reduces the window for congestion marks itself, where the stack does so
    /// gradually.
    fn reduces_gradually(&self) -> bool {
        false
    }

    /// Whether the data that a timeout has marked lost is being retransmitted, where the recovery
    /// distinguishes that.
    fn repairs_timeout(&self) -> Option<bool> {
        None
    }
}

macro_rules! recoveries {
    ($($name:ident, $module:ident;)*) => {
        /// The loss-recovery algorithms.
        #[derive(Debug, Clone)]
        pub(crate) enum Recovery {
            $($name($module::$name),)*
        }

        macro_rules! dispatch {
            ($self:expr, $inner:ident => $call:expr) => {
                match $self {
                    $(Recovery::$name($inner) => $call,)*
                }
            };
        }
    };
}
recoveries! {
    GoBackN, go_back_n;
    Reno, reno;
    NewReno, new_reno;
    LinuxReno, linux_reno;
    Sack, sack;
    Ns2Sack1, ns2_sack1;
    Rack, rack;
    Vegas, vegas;
}

impl Recovery {
    pub(crate) fn new(params: &StackParams) -> Self {
        match params.recovery {
            Kind::GoBackN => Self::GoBackN(go_back_n::GoBackN::new(params)),
            Kind::Reno => Self::Reno(reno::Reno::new(params)),
            Kind::NewReno if params.policy.counts_arrived_segments => {
                Self::LinuxReno(linux_reno::LinuxReno::new(params))
            }
            Kind::NewReno => Self::NewReno(new_reno::NewReno::new(params)),
            Kind::Sack if params.policy.ns2_sack1_recovery => {
                Self::Ns2Sack1(ns2_sack1::Ns2Sack1::new(params))
            }
            Kind::Sack => Self::Sack(sack::Sack::new(params)),
            Kind::Rack => Self::Rack(rack::Rack::new(params)),
            Kind::Vegas => Self::Vegas(vegas::Vegas::new(params)),
        }
    }

    /// The sender's rules for this kind of loss recovery.
    #[inline]
    pub(crate) const fn rules(&self) -> &'static RecoveryRules {
        match self {
            Self::Rack(_) => &rules::RACK_TLP,
            Self::LinuxReno(_) => &rules::LINUX_WITHOUT_SACK,
            _ => &rules::DUPLICATE_COUNTING,
        }
    }

    pub(crate) fn on_duplicate(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        dispatch!(self, inner => inner.on_duplicate(context))
    }
    #[inline]
    pub(crate) fn on_new_ack(
        &mut self,
        context: &mut LossRecoveryContext<'_>,
        acked: u64,
    ) -> CwndGrowth {
        dispatch!(self, inner => inner.on_new_ack(context, acked))
    }
    pub(crate) fn on_duplicate_report(
        &mut self,
        context: &mut LossRecoveryContext<'_>,
        report: &DuplicateReport,
    ) {
        dispatch!(self, inner => inner.on_duplicate_report(context, report));
    }
    pub(crate) fn on_retransmitted(&mut self) {
        dispatch!(self, inner => inner.on_retransmitted());
    }
    pub(crate) fn on_reorder_timer(&mut self, context: &mut LossRecoveryContext<'_>) -> bool {
        dispatch!(self, inner => inner.on_reorder_timer(context))
    }
    pub(crate) fn before_timeout(&mut self, context: &LossRecoveryContext<'_>) {
        dispatch!(self, inner => inner.before_timeout(context));
    }
    #[inline]
    pub(crate) fn window(&self) -> Option<u32> {
        dispatch!(self, inner => inner.window())
    }
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        dispatch!(self, inner => inner.round_trip())
    }
    pub(crate) fn on_timeout(&mut self, next: u64) {
        dispatch!(self, inner => inner.on_timeout(next));
    }
    pub(crate) fn on_mss_lowered(&mut self, mss: u32) {
        dispatch!(self, inner => inner.on_mss_lowered(mss));
    }
    pub(crate) fn on_segments_too_big(&mut self, next: u64) {
        dispatch!(self, inner => inner.on_segments_too_big(next));
    }
    #[inline]
    pub(crate) fn inflation(&self) -> u32 {
        dispatch!(self, inner => inner.inflation())
    }
    #[inline]
    pub(crate) fn in_flight(&self, outstanding: u64, lost: u64) -> Option<u64> {
        dispatch!(self, inner => inner.in_flight(outstanding, lost))
    }
    #[inline]
    pub(crate) fn may_send(&self) -> bool {
        dispatch!(self, inner => inner.may_send())
    }
    #[inline]
    pub(crate) fn on_sent(&mut self, len: u32) {
        dispatch!(self, inner => inner.on_sent(len));
    }
    pub(crate) fn grows_by_sacked(&self, dupthresh: u32) -> bool {
        dispatch!(self, inner => inner.grows_by_sacked(dupthresh))
    }
    #[inline]
    pub(crate) fn in_recovery(&self) -> bool {
        dispatch!(self, inner => inner.in_recovery())
    }
    #[inline]
    pub(crate) fn sends_new_data_first(&self) -> bool {
        dispatch!(self, inner => inner.sends_new_data_first())
    }
    pub(crate) fn resumes_retransmission(&mut self, next: u64) -> bool {
        dispatch!(self, inner => inner.resumes_retransmission(next))
    }
    pub(crate) fn is_watching(&self) -> bool {
        dispatch!(self, inner => inner.is_watching())
    }
    pub(crate) fn reduces_gradually(&self) -> bool {
        dispatch!(self, inner => inner.reduces_gradually())
    }
    pub(crate) fn repairs_timeout(&self) -> Option<bool> {
        dispatch!(self, inner => inner.repairs_timeout())
    }
}

#[cfg(test)]
mod tests;
