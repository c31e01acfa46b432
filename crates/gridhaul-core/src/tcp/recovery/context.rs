//! The parts of a sender that a loss recovery reads and changes.

use gridhaul_scenario::units::Instant;

use crate::coverage_mark::mark;
use crate::tcp::congestion::Controller;
use crate::tcp::event::Loss;
use crate::tcp::params::StackParams;
use crate::tcp::retransmission_queue::{DeliveredSegment, RetransmissionQueue};
use crate::tcp::rtt::RttEstimator;
use crate::tcp::rules::HalvingBasis;

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
    /// The window was reduced for data before this position; 0 without ECN.
    pub reduced_until: u64,
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
    /// Whether a segment is acknowledged that was retransmitted.
    pub retransmitted: bool,
    /// Whether the acknowledgement echoes a congestion mark.
    pub congestion_echo: bool,
    /// The echoed timestamp, in milliseconds.
    pub echo: Option<u32>,
}

/// A duplicate selective acknowledgement (RFC 2883): the peer has received data twice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DuplicateReport {
    /// Stream position at which the data ends.
    pub end: u64,
    /// Number of segments with this data.
    pub segments: u32,
    /// The data is that of a tail loss probe.
    pub answers_probe: bool,
    /// Segments with data that the sender has retransmitted so far.
    pub retransmissions: u32,
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
    /// The window was reduced for a congestion mark.
    pub reduced_for_mark: bool,
    /// Recovery begins without a reduction: a congestion mark of the same window of data has
    /// reduced the window already.
    pub already_reduced: bool,
    /// Bytes that the acknowledgement delivers, where the recovery estimates them.
    pub delivered: Option<u32>,
    /// Time of [`LossRecovery::on_reorder_timer`], unless an acknowledgement arrives before.
    pub reorder_at: Option<Instant>,
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

    /// Notifies the congestion control of the loss of the first unacknowledged segment, unless a
    /// congestion mark has reduced the window for the same window of data (RFC 3168, section
    /// 6.1.2).
    pub(crate) fn reduce_for_loss(&mut self) {
        if self.una < self.reduced_until {
            self.requests.already_reduced = true;
            return;
        }
        let loss = self.loss();
        self.congestion.on_loss(&loss);
    }

    /// Estimate of the data in the network.
    pub(crate) fn in_flight(&self) -> u64 {
        // As in `Sender::in_flight`: a segment may be sacked and lost at once.
        let elsewhere = self.queue.sacked_bytes() + self.queue.lost_bytes();
        (self.next - self.una).saturating_sub(elsewhere)
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
        // "cwnd + 2*SMSS" at most, also where more duplicates indicate a loss.
        all.min(2 * self.params.mss)
    }
}

/// The window that a loss reduces.
fn halving_window(params: &StackParams, flight: u64, cwnd: u32, peer_window: u32) -> u32 {
    match params.halving {
        // FlightSize is "the amount of outstanding data in the network". What has arrived beyond a
        // gap is outstanding, but not in the network: in a recovery and after a timeout, the
        // window, which is not inflated here, limits the rest.
        HalvingBasis::Flight => u32::try_from(flight).unwrap_or(u32::MAX).min(cwnd),
        HalvingBasis::Cwnd => cwnd - cwnd % params.mss.max(1),
        HalvingBasis::Window => cwnd.min(peer_window),
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::scenario::Stack;

    use super::*;

    /// RFC 5681, equation 4; Linux, `tcp_reno_ssthresh`, in whole segments; ns-2, `slowdown`.
    #[test]
    fn a_loss_halves_the_outstanding_data_or_the_window() {
        let halved = |halving| {
            let params = StackParams::resolve(&Stack::default());
            halving_window(&StackParams { mss: 1_000, halving, ..params }, 7_000, 10_500, 9_000)
        };
        let bases = [HalvingBasis::Flight, HalvingBasis::Cwnd, HalvingBasis::Window];
        assert_eq!(bases.map(halved), [7_000, 10_000, 9_000]);
    }

    /// 40 segments are outstanding, of which most have arrived beyond a gap.
    #[test]
    fn a_loss_never_raises_the_window() {
        let params = StackParams::resolve(&Stack::default());
        let params = StackParams { mss: 1_000, halving: HalvingBasis::Flight, ..params };
        assert_eq!(halving_window(&params, 40_000, 10_000, 90_000), 10_000);
    }
}
