//! Selective acknowledgements (RFC 2018).

use gridhaul_scenario::units::Instant;

use super::Sender;
use super::ack_event::AckEvent;
use crate::tcp::params::StackParams;
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
