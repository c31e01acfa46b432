//! Selective acknowledgements (RFC 2018), and duplicate ones (RFC 2883).

use gridhaul_scenario::units::Instant;

use super::ack_event::AckEvent;
use super::{Sender, loss_recovery_context};
use crate::tcp::params::StackParams;
use crate::tcp::recovery::DuplicateReport;
use crate::tcp::retransmission_queue::LossMark;
use crate::tcp::segment::{Segment, expand};

impl Sender {
    /// ns-2 clears its scoreboard with every acknowledgement of new data outside recovery and
    /// ignores the SACK blocks in it; after a timeout it uses SACK blocks again from the next
    /// acknowledgement on.
    #[cold]
    pub(super) fn process_sack_blocks(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
        event: &mut AckEvent,
    ) {
        if params.policy.timeout_forgets_sacks && !self.in_recovery() {
            if ack > self.una || self.sack_ignored {
                return;
            }
            // ns-2 goes back to the first unacknowledged segment after a timeout and retransmits
            // sacked segments as well.
            self.mark_sacked(now, segment, isn, event, LossMark::Keep);
            return;
        }
        self.mark_sacked(now, segment, isn, event, LossMark::Clear);
    }

    /// Handles a duplicate selective acknowledgement, if the first block is one (RFC 2883, section
    /// 4): it covers data that the acknowledgement number or the second block covers as well.
    #[cold]
    pub(super) fn process_duplicate_sack(
        &mut self,
        now: Instant,
        ack: u64,
        segment: &Segment,
        isn: u32,
        params: &StackParams,
    ) {
        let mut blocks = segment.sack.as_slice().iter().filter_map(|&(left, right)| {
            expand(left, isn, self.una).zip(expand(right, isn, self.una))
        });
        let Some((start, end)) = blocks.next() else { return };
        let is_within = |(left, right): (u64, u64)| left <= start && end <= right;
        let is_duplicate = start < ack || blocks.next().is_some_and(is_within);
        if !is_duplicate || start >= end || end > self.next {
            return;
        }
        let segments = (end - start).div_ceil(u64::from(params.mss.max(1)));
        let report = DuplicateReport {
            end,
            segments: u32::try_from(segments).unwrap_or(u32::MAX),
            answers_probe: self.is_probe_end(end),
            retransmissions: self.stats.retransmissions,
        };
        if report.answers_probe && ack >= end {
            // Section 7.4 of RFC 8985: the original and the probe have arrived; nothing was lost.
            self.end_tail_loss_probe();
        }
        let mut context = loss_recovery_context!(self, now, params);
        self.recovery.on_duplicate_report(&mut context, &report);
        self.recovery_active |= self.recovery.is_watching();
        self.refresh_window();
    }

    fn mark_sacked(
        &mut self,
        now: Instant,
        segment: &Segment,
        isn: u32,
        event: &mut AckEvent,
        lost: LossMark,
    ) {
        let mut covered = 0;
        for &(left, right) in segment.sack.as_slice() {
            let bounds = (expand(left, isn, self.una), expand(right, isn, self.una));
            let (Some(left), Some(right)) = bounds else { continue };
            // Blocks below the cumulative acknowledgement (RFC 2883) or above the sent data carry
            // no new information.
            if left < right && right > self.una && right <= self.next {
                let mut rate = self.optional.rate_mut();
                covered += self.queue.sack(left.max(self.una), right, lost, |index, sent| {
                    if let Some(rate) = &mut rate {
                        rate.on_sacked(now, index, sent);
                    }
                    event.on_sacked(sent);
                });
            }
        }
        event.delivered = u32::try_from(covered).unwrap_or(u32::MAX);
    }
}
