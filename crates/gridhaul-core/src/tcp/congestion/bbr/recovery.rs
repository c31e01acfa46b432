//! The window in loss recovery (draft-ietf-ccwg-bbr, section 4.2.3.4): packet conservation for one
//! round; at the end the previous window is restored.

use crate::coverage_mark::mark;

/// Phase of the recovery, and the window to restore.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    /// `BBR.prior_cwnd`.
    prior_cwnd: f64,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    None,
    /// A loss was detected; the acknowledgement that indicates it has not been counted yet.
    Entered,
    /// The first round: `BBR.packet_conservation`.
    Conserving,
    /// The following rounds.
    Growing,
    /// After a timeout, until this position is acknowledged.
    Timeout(u64),
}

impl Recovery {
    pub(super) const fn new() -> Self {
        Self { prior_cwnd: 0.0, phase: Phase::None }
    }

    /// `BBRSaveCwnd`: a temporarily small window must not replace the saved one.
    pub(super) fn save(&mut self, cwnd: f64, probing_rtt: bool) {
        let small = probing_rtt || self.phase != Phase::None;
        self.prior_cwnd = if small { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    /// The window to restore.
    pub(super) const fn prior_cwnd(&self) -> f64 {
        self.prior_cwnd
    }

    pub(super) fn enter(&mut self, cwnd: f64, probing_rtt: bool) {
        self.save(cwnd, probing_rtt);
        self.phase = Phase::Entered;
    }

    pub(super) fn enter_after_timeout(&mut self, cwnd: f64, probing_rtt: bool, until: u64) {
        self.save(cwnd, probing_rtt);
        self.phase = Phase::Timeout(until);
    }

    pub(super) fn leave(&mut self) {
        self.phase = Phase::None;
    }

    /// Whether the acknowledgement of all data before `una` ends the recovery after a timeout.
    #[inline]
    pub(super) fn ended_by(&self, una: u64) -> bool {
        matches!(self.phase, Phase::Timeout(until) if una >= until)
    }

    /// True once, for the first acknowledgement of a fast recovery; then conservation begins.
    #[inline]
    pub(super) fn take_entry(&mut self) -> bool {
        let entered = self.phase == Phase::Entered;
        if entered {
            mark!(bbr_packet_conservation);
            self.phase = Phase::Conserving;
        }
        entered
    }

    /// A round has started: the first round of the recovery is over.
    pub(super) fn on_round(&mut self) {
        if self.phase == Phase::Conserving {
            self.phase = Phase::Growing;
        }
    }

    #[inline]
    pub(super) fn conserves(&self) -> bool {
        self.phase == Phase::Conserving
    }
}
