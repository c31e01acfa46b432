//! Loss recovery: loss detection and retransmission, with one file for each kind.
//!
//! A recovery handles duplicate and new acknowledgements, marks segments as lost in the
//! retransmission queue, and notifies the congestion control; the sender then retransmits the
//! marked segments.

mod go_back_n;
mod max_burst;
mod new_reno;
mod ns2_sack1;
mod prr;
mod rack;
mod reno;
mod rules;
mod sack;
mod vegas;

use gridhaul_scenario::scenario::Recovery as Kind;
use gridhaul_scenario::units::{Duration, Instant};

use super::congestion::Controller;
use super::event::Loss;
use super::params::StackParams;
use super::retransmission_queue::{DeliveredSegment, RetransmissionQueue};
use super::rtt::RttEstimator;
use super::rules::HalvingBasis;
use crate::coverage_mark::mark;

pub(crate) use rack::TIMEOUT_MIN;
pub(crate) use rules::RecoveryRules;

/// Context of the loss recovery: the parts of the sender that a recovery reads and changes.
pub(crate) struct LossRecoveryContext<'a> {
    pub now: Instant,
    pub params: &'a StackParams,
    pub queue: &'a mut RetransmissionQueue,
    pub congestion: &'a mut Controller,
    pub rtt: &'a RttEstimator,
    /// First unacknowledged position.
    pub una: u64,
    /// Position that is sent next.
    pub next: u64,
    /// Window that the peer offers, in bytes.
    pub peer_window: u32,
    /// Duplicate acknowledgements in a row.
    pub duplicates: u32,
    /// New data sent by limited transmit, in bytes.
    pub limited: u64,
    /// The current acknowledgement.
    pub ack: Delivery,
    pub requests: SenderRequests,
}

/// Data delivered by an acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Delivery {
    /// Bytes delivered, including selectively acknowledged bytes.
    pub delivered: u32,
    /// The delivered segment that was sent last.
    pub newest: Option<DeliveredSegment>,
    /// The echoed timestamp, in milliseconds.
    pub echo: Option<u32>,
}

/// Requests of a recovery to its sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SenderRequests {
    /// Retransmit a segment at once, regardless of the window.
    pub retransmit_now: bool,
    /// Restart the retransmission timer.
    pub restart_timer: bool,
    /// Reset the back-off of the timeout after restarting the timer (ns-2).
    pub end_backoff: bool,
    /// Discard the round-trip measurement in progress (Karn's algorithm).
    pub stop_timing: bool,
    /// Time of [`LossRecovery::on_reorder_timer`], unless an acknowledgement arrives before.
    pub reorder_at: Option<Instant>,
}

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

    /// Handles the reordering timer. Returns whether a fast retransmit begins.
    fn on_reorder_timer(&mut self, _context: &mut LossRecoveryContext<'_>) -> bool {
        false
    }

    /// The retransmission timer has expired; called before the sender changes its state.
    fn before_timeout(&mut self, _context: &LossRecoveryContext<'_>) {}

    /// The retransmission timer has expired; called after segments are marked lost.
    fn on_timeout(&mut self, next: u64);

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

    /// Whether fast recovery is under way.
    fn in_recovery(&self) -> bool;

    /// Whether acknowledgements are processed although no recovery is under way.
    #[inline]
    fn is_watching(&self) -> bool {
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
    pub(crate) fn repairs_timeout(&self) -> Option<bool> {
        dispatch!(self, inner => inner.repairs_timeout())
    }
}

impl LossRecoveryContext<'_> {
    /// Description of the loss of the first unacknowledged segment for the congestion control.
    pub(crate) fn loss(&self) -> Loss {
        let first = self.queue.front();
        let flight = self.next - self.una;
        Loss {
            now: self.now,
            // RFC 5681, section 3.2, step 2: data sent by limited transmit does not count.
            window: halving_window(
                self.params,
                flight.saturating_sub(self.limited),
                self.congestion.cwnd(),
                self.peer_window,
            ),
            in_flight: flight,
            una: self.una,
            sent_at: first.map_or(self.now, |sent| sent.sent_at),
            transmits: first.map_or(1, |sent| sent.transmits),
            next: self.next,
            timed_out_before: false,
            mss: self.params.mss,
        }
    }

    /// Estimate of the data in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.next - self.una) - self.queue.sacked_bytes() - self.queue.lost_bytes()
    }

    /// Retransmits the first unacknowledged segment at once.
    pub(crate) fn retransmit_first(&mut self) {
        self.queue.mark_front_lost();
        self.requests.retransmit_now = true;
        self.requests.stop_timing = true;
    }

    /// Whether a fast retransmit is allowed after an earlier loss has set `recover`: beyond it (RFC
    /// 6582, section 3.2, step 2) or, in ns-2, at the first data segment (`bugfix_ss_`).
    pub(crate) fn may_retransmit_fast(&self, recover: u64) -> bool {
        let at_first = self.params.policy.first_segment_is_retransmitted_fast && self.una == 1;
        self.una > recover || at_first
    }

    /// Inflation by limited transmit (RFC 3042): one new segment for each duplicate acknowledgement
    /// before the threshold.
    pub(crate) fn limited_transmit(&self) -> u32 {
        if !self.params.limited_transmit || self.duplicates >= self.params.dupthresh {
            return 0;
        }
        mark!(limited_transmit);
        let all = self.duplicates * self.params.mss;
        if self.params.policy.limited_transmit_sends_one {
            // `send_one`: one segment for this duplicate, even where earlier duplicates have
            // released none, as after a timeout over which Tahoe keeps its count.
            let one_more = self.in_flight() + u64::from(self.params.mss);
            let above = one_more.saturating_sub(u64::from(self.congestion.cwnd()));
            return u32::try_from(above).map_or(all, |above| above.min(all));
        }
        all
    }
}

/// The window that a loss reduces.
fn halving_window(params: &StackParams, flight: u64, cwnd: u32, peer_window: u32) -> u32 {
    match params.halving {
        HalvingBasis::Flight => u32::try_from(flight).unwrap_or(u32::MAX),
        HalvingBasis::Cwnd => cwnd - cwnd % params.mss.max(1),
        HalvingBasis::Window => cwnd.min(peer_window),
    }
}

#[cfg(test)]
mod tests;
