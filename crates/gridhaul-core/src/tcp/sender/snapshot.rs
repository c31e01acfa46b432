//! The state of a sender at one time, from which an observer derives events.

use gridhaul_scenario::units::{Duration, Instant};

use super::rack_timers::{TailLossProbe, TimerPurpose};
use super::{Sender, SenderStats};
use crate::tcp::params::StackParams;

/// The state of a sender at one time.
#[derive(Debug, Clone, Copy)]
pub(in crate::tcp) struct SenderSnapshot {
    pub una: u64,
    pub next: u64,
    pub cwnd: u32,
    pub ssthresh: u32,
    pub peer_window: u32,
    pub in_flight: u64,
    pub duplicates: u32,
    pub sacked: u64,
    pub stats: SenderStats,
    pub srtt: Option<Duration>,
    pub rto: Duration,
    /// State of the congestion control.
    pub congestion_state: &'static str,
    /// Whether fast recovery is under way.
    pub recovering: bool,
    /// Whether the data of a timeout is being retransmitted, where the loss recovery knows.
    pub repairs_timeout: Option<bool>,
    /// When the RACK reordering timer expires; [`Instant::NEVER`] while it does not run.
    pub reordering_at: Instant,
    pub tail_loss_probe_due: bool,
    /// Whether a retransmission as a tail loss probe is unacknowledged.
    pub tail_loss_probe_out: bool,
    /// Expirations of the persist timer since the window closed.
    pub persist_expirations: u8,
    /// Reductions of the window for congestion marks.
    pub ecn_reductions: u32,
}

impl Sender {
    /// The state now.
    pub(in crate::tcp) fn snapshot(&self, params: &StackParams) -> SenderSnapshot {
        let (cwnd, ssthresh) = (self.congestion.cwnd(), self.congestion.ssthresh());
        let by_threshold = if cwnd < ssthresh { "slow_start" } else { "congestion_avoidance" };
        let reorders = self.timer_purpose == TimerPurpose::Reordering;
        SenderSnapshot {
            una: self.una,
            next: self.next,
            cwnd,
            ssthresh,
            peer_window: self.peer_window,
            in_flight: self.in_flight(),
            duplicates: self.duplicates,
            sacked: self.queue.sacked_bytes(),
            stats: self.stats,
            srtt: self.rtt.srtt(),
            rto: self.rtt.rto(params),
            congestion_state: self.congestion.state().unwrap_or(by_threshold),
            recovering: self.in_recovery(),
            repairs_timeout: self.recovery.repairs_timeout(),
            reordering_at: if reorders { self.rto_at } else { Instant::NEVER },
            tail_loss_probe_due: self.tail_loss_probe == TailLossProbe::Due,
            tail_loss_probe_out: self.tail_loss_probe == TailLossProbe::Retransmission,
            persist_expirations: self.window_probe.expired,
            ecn_reductions: self.ecn_reductions(),
        }
    }

    /// Start and end of each segment that is marked lost and awaits its retransmission, in order.
    pub(in crate::tcp) fn lost_segments(&self) -> impl Iterator<Item = (u64, u64)> {
        let any = self.queue.lost_bytes() > 0;
        any.then(|| self.queue.lost_segments()).into_iter().flatten()
    }
}
