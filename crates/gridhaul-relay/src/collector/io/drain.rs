//! Preparation of an upgrade: no connection is accepted, so that connections wait in the queues of
//! the listeners for the next version of the program. Those that it cannot take over may end; then
//! no meter is read until all records are stored.

use gridhaul_scenario::units::Duration;

use super::Loop;
use super::upstream::Upstream;
use crate::collector::Tier;
use crate::runtime::{Level, report, systemd};

/// Time for which the relay waits until everything that was read is stored, after connections had
/// time to end.
const STORE_LIMIT: Duration = Duration::from_secs(1);

impl Loop {
    /// Whether another version of the program can continue.
    pub(super) fn check_drain(&mut self) -> bool {
        if !self.drain.has_begun() {
            return false;
        }
        let (now, deadline) = (self.clock.now(), self.drain.deadline());
        let tier = self.collector.settings().tier;
        let ending = self.open_sockets.saturating_sub(self.collector.meter_count());
        let others = self.arrivals.len() + self.ending_sockets + ending;
        // While the head is unreachable, meters must not wait for it longer than without an
        // upgrade.
        let can_store = tier == Tier::Local || self.upstreams.iter().all(Upstream::is_connected);
        self.is_frozen = now >= deadline || others == 0 && can_store;
        if !self.is_frozen || self.collector.is_everything_stored() {
            return self.is_frozen;
        }
        if now < deadline + STORE_LIMIT {
            return false;
        }
        let rest = self.collector.backlog_size();
        if tier == Tier::Memory && rest > 0 {
            // Without a log, records are lost with this process.
            let text = format!(
                "no upgrade: the head has not confirmed {rest} bytes, which are in memory only; \
                 the present program continues\n  \
                 help: repeat the upgrade when the head is reachable, or increase `drain_limit`"
            );
            report(Level::Error, &text);
            systemd::ready();
            self.drain.cancel();
            self.is_frozen = false;
            return false;
        }
        true
    }
}
