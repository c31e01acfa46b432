//! The credit of collectors: what they may send while undelivered records have a limit.

use gridhaul_core::coverage_mark::mark;

use super::Head;
use super::machine::Connection;
use crate::protocol::{FRAME_MAX, Frame};

impl Connection {
    /// Bytes of batches that are permitted and not durable.
    const fn outstanding(&self) -> u64 {
        self.granted.saturating_sub(self.durable)
    }
}

impl Head {
    /// Undelivered bytes of the log.
    fn undelivered(&self) -> u64 {
        self.log_end.position().saturating_sub(self.delivered)
    }

    /// Whether undelivered records have reached their limit.
    fn is_full(&self) -> bool {
        self.undelivered() >= self.settings.backlog
    }

    /// Bytes of the log that no collector has a credit for.
    fn free(&self) -> u64 {
        let outstanding: u64 = self.connections.values().map(Connection::outstanding).sum();
        self.settings.backlog.saturating_sub(self.undelivered()).saturating_sub(outstanding)
    }

    /// Credit with which every connection continues while the log is not full: that of the largest
    /// batch. A credit cannot be taken back from a collector that has nothing to send, so without
    /// this one the others would wait for it.
    fn least(&self) -> u64 {
        (FRAME_MAX as u64).min(self.settings.window)
    }

    /// Credit of a new connection.
    pub(super) fn first_credit(&self) -> u64 {
        if self.is_full() { 0 } else { self.free().clamp(self.least(), self.settings.window) }
    }

    /// Extends the credit of all connections, if undelivered records are below their limit.
    pub(super) fn grant(&mut self) {
        if self.is_full() {
            mark!(head_grants_nothing_while_its_backlog_is_full);
            return;
        }
        let (window, least, mut free) = (self.settings.window, self.least(), self.free());
        // Small steps would cost a frame each.
        let step = window / 4;
        let enough = least.min(window - step);
        for (number, peer) in &mut self.connections {
            let outstanding = peer.outstanding();
            let credit = outstanding.saturating_add(free).clamp(least, window);
            mark!(head_shares_the_free_log_among_its_collectors if credit < window);
            let added = credit.saturating_sub(outstanding);
            if peer.source.is_some() && added > 0 && (added >= step || outstanding <= enough) {
                free = free.saturating_sub(added);
                peer.granted += added;
                Frame::Credit { limit: peer.granted }.write(&mut peer.out);
                self.outputs.insert(*number);
            }
        }
    }
}
