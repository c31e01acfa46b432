//! The window in loss recovery (section 4.2.3.4): for a round as much leaves as arrives; at the end
//! the old window comes back.

/// Which recovery is under way, and the window to come back to.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    /// `BBR.prior_cwnd`.
    prior_cwnd: f64,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    None,
    /// A loss was found; the acknowledgement that tells it has not been counted yet.
    Entered,
    /// The first round: `BBR.packet_conservation`.
    Conserving,
    /// The rounds after it.
    Growing,
    /// After a timeout, until this position is acknowledged.
    Timeout(u64),
}

impl Recovery {
    pub(super) const fn new() -> Self {
        Self { prior_cwnd: 0.0, phase: Phase::None }
    }

    /// `BBRSaveCwnd`: a window that is small for a reason must not replace the good one.
    pub(super) fn save(&mut self, cwnd: f64, probing_rtt: bool) {
        let small = probing_rtt || self.phase != Phase::None;
        self.prior_cwnd = if small { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    /// The window to come back to.
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

    /// Whether the recovery after a timeout ends when all before `una` is acknowledged.
    #[inline]
    pub(super) fn ended_by(&self, una: u64) -> bool {
        matches!(self.phase, Phase::Timeout(until) if una >= until)
    }

    /// True once, for the first acknowledgement of a fast recovery; then conservation begins.
    #[inline]
    pub(super) fn take_entry(&mut self) -> bool {
        let entered = self.phase == Phase::Entered;
        if entered {
            self.phase = Phase::Conserving;
        }
        entered
    }

    /// A round has begun: the first one of the recovery is over.
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
