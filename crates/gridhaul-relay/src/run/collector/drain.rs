//! Draining before an upgrade: no connection is accepted, so that connections wait in the queues of the listeners for the next
//! version of the program, and open ones may end.

use super::super::{Level, report, supervisor};
use super::Loop;
use crate::aggregate::Tier;

impl Loop {
    /// Whether another version of the program can continue.
    pub(super) fn check_drain(&mut self) -> bool {
        if !self.drain.has_begun() {
            return false;
        }
        // Without a log, records are lost with this process.
        let rest = match self.aggregate.settings().tier {
            Tier::Local => 0,
            Tier::Memory | Tier::Server => self.aggregate.backlog_size(),
        };
        let is_empty = self.aggregate.meter_count() == 0 && self.arrivals.len() == 0;
        if is_empty && self.aggregate.bytes_at_risk() == 0 && rest == 0 {
            return true;
        }
        if self.clock.now() < self.drain.deadline() {
            return false;
        }
        if self.aggregate.settings().tier == Tier::Memory && rest > 0 {
            let text = format!(
                "no upgrade: the head has not confirmed {rest} bytes, which are in memory only; the present program continues\n  \
                 help: repeat the upgrade when the head is reachable, or increase `drain_limit`"
            );
            report(Level::Error, &text);
            supervisor::ready();
            self.drain.cancel();
            return false;
        }
        true
    }
}
