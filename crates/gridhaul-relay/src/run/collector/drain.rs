//! Draining before an upgrade: no connection is accepted, so that connections wait in the queues of the listeners for the next
//! version of the program, and open ones may end.

use socket2::Socket;

use super::super::{Level, report, supervisor};
use super::Loop;
use crate::aggregate::Tier;

impl Loop {
    /// Begins to drain.
    pub(super) fn begin_drain(&mut self) {
        if self.drain_until.is_none() {
            let limit = self.config.drain_limit;
            report(
                Level::Notice,
                &format!("upgrade: open connections may end within {limit}, new ones wait"),
            );
            self.drain_until = Some(self.clock.now() + limit);
        }
    }

    /// Whether another version of the program can continue.
    pub(super) fn is_drained(&mut self) -> bool {
        let Some(until) = self.drain_until else { return false };
        // Without a log, records are lost with this process.
        let rest = match self.aggregate.settings().tier {
            Tier::Local => 0,
            Tier::Memory | Tier::Server => self.aggregate.backlog_size(),
        };
        let is_empty = self.aggregate.meter_count() == 0 && self.arrivals.len() == 0;
        if is_empty && self.aggregate.bytes_at_risk() == 0 && rest == 0 {
            return true;
        }
        if self.clock.now() < until {
            return false;
        }
        if self.aggregate.settings().tier == Tier::Memory && rest > 0 {
            let text = format!(
                "no upgrade: the head has not confirmed {rest} bytes, which are in memory only; the present program continues\n  \
                 help: repeat the upgrade when the head is reachable, or increase `drain_limit`"
            );
            report(Level::Error, &text);
            supervisor::ready();
            self.drain_until = None;
            return false;
        }
        true
    }

    /// The listening sockets.
    pub(super) fn into_listeners(self) -> Vec<Socket> {
        let meters = self.listeners.into_iter().map(|listener| listener.socket);
        meters.chain(self.questions.into_listeners()).collect()
    }
}
