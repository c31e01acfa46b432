//! Fair division of the space for records among meters.

use gridhaul_core::coverage_mark::mark;

use super::machine::Collector;
use super::meter::{Meter, MeterId};
use crate::log::Storage;

impl<S: Storage + Clone> Collector<S> {
    /// Number of bytes of a meter that can be accepted now. At 0, the caller does not read the
    /// socket, so that the receive window closes.
    #[must_use]
    pub fn acceptable(&self, id: MeterId) -> u64 {
        let Some(meter) = self.meters.get(id).filter(|meter| !meter.eof) else { return 0 };
        let own = self.settings.at_risk_per_meter.saturating_sub(meter.received - meter.durable);
        let all = self.settings.at_risk.saturating_sub(self.at_risk);
        own.min(all).min(self.backlog_share(meter))
    }

    /// Number of bytes of a meter for which there is space in the backlog, whatever is at risk now:
    /// a window of this size can be filled and stored.
    #[must_use]
    pub fn storable(&self, id: MeterId) -> u64 {
        let meter = self.meters.get(id).filter(|meter| !meter.eof);
        meter.map_or(0, |meter| self.backlog_share(meter))
    }

    /// Free space in the backlog for one meter. The second half is divided evenly: a meter that
    /// sends much while the head is unreachable leaves space for the others. It also uses at most
    /// as much as it leaves free, so that meters that connect later find space (dynamic thresholds:
    /// Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998).
    fn backlog_share(&self, meter: &Meter) -> u64 {
        let limit = self.settings.backlog;
        let free = limit.saturating_sub(self.occupied());
        if !self.is_second_half() {
            return free;
        }
        mark!(collector_divides_the_second_half_of_the_backlog);
        let share = limit / 2 / self.meters.len().max(1) as u64;
        let used = if meter.share_round == self.share_round { meter.share_used } else { 0 };
        share.saturating_sub(used).min(free.saturating_sub(used) / 2)
    }

    /// Bytes of the backlog that records and incomplete messages, which become records, occupy.
    fn occupied(&self) -> u64 {
        self.backlog_size() + self.incomplete.bytes()
    }

    /// Whether the second half of the backlog is being filled.
    fn is_second_half(&self) -> bool {
        self.occupied() * 2 >= self.settings.backlog
    }

    /// Counts data of a meter for its share of the backlog's second half, which
    /// [`Self::backlog_share`] divides evenly.
    ///
    /// A round of shares lasts until the backlog falls below its half; then all meters begin with
    /// nothing used. Their number is unlimited, so that they are not reset one by one: each notes
    /// the round to which its count belongs, and an older round counts as zero.
    pub(super) fn count_share(&mut self, id: MeterId, bytes: u64) {
        let is_second_half = self.is_second_half();
        if self.was_second_half && !is_second_half {
            self.share_round = self.share_round.wrapping_add(1);
        }
        self.was_second_half = is_second_half;
        let Some(meter) = self.meters.get_mut(id) else { return };
        if meter.share_round != self.share_round {
            meter.share_round = self.share_round;
            meter.share_used = 0;
        }
        // The first half of the backlog is for everybody: only what is sent after it counts.
        if is_second_half {
            meter.share_used += bytes;
        }
    }
}
