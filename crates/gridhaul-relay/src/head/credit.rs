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
    fn unassigned(&self) -> u64 {
        let outstanding: u64 = self.connections.values().map(Connection::outstanding).sum();
        self.settings.backlog.saturating_sub(self.undelivered()).saturating_sub(outstanding)
    }

    /// Credit that every connection keeps while the log is not full: the size of the largest batch.
    /// A head cannot withdraw a credit from a collector that has nothing to send; without this
    /// minimum, the other collectors would wait for that credit. Undelivered records may therefore
    /// exceed `backlog` by this number of bytes for each connection.
    fn credit_min(&self) -> u64 {
        (FRAME_MAX as u64).min(self.settings.window)
    }

    /// Credit of a new connection.
    pub(super) fn first_credit(&self) -> u64 {
        if self.is_full() {
            return 0;
        }
        self.unassigned().clamp(self.credit_min(), self.settings.window)
    }

    /// Extends the credit of all connections, if undelivered records are below their limit.
    pub(super) fn grant(&mut self) {
        if self.is_full() {
            mark!(head_grants_nothing_while_its_backlog_is_full);
            return;
        }
        let (window, credit_min) = (self.settings.window, self.credit_min());
        let mut unassigned = self.unassigned();
        // Small steps would cost a frame each.
        let step = window / 4;
        let low = credit_min.min(window - step);
        // In the order of connection numbers: connections that find nothing left keep the minimum,
        // and are extended when records were delivered.
        for (number, peer) in &mut self.connections {
            let outstanding = peer.outstanding();
            let credit = outstanding.saturating_add(unassigned).clamp(credit_min, window);
            mark!(head_shares_the_free_log_among_its_collectors if credit < window);
            let added = credit.saturating_sub(outstanding);
            if peer.source.is_some() && added > 0 && (added >= step || outstanding <= low) {
                unassigned = unassigned.saturating_sub(added);
                peer.granted += added;
                Frame::Credit { limit: peer.granted }.write(&mut peer.out);
                self.outputs.insert(*number);
            }
        }
    }
}
