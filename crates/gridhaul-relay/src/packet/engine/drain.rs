//! The end of the bridge without loss.

use gridhaul_scenario::units::Instant;

use super::super::counters::EndCause;
use super::super::output::Output;
use super::super::table::TableEntry;
use super::Engine;

impl Engine {
    /// Forwards new connections unchanged from now on. Proxies acknowledge no more data in place of
    /// the receiver; the state of a connection is discarded once no bytes are at risk, and its
    /// hosts continue without the proxy. For those of `split` a translation of sequence numbers
    /// continues ([`Self::hand_over`]). To be called again until [`Self::is_drained`].
    pub fn drain(&mut self, now: Instant) {
        let table = &self.table;
        let mut draining = self.draining.take().unwrap_or_else(|| table.entries().collect());
        // The other connections, which may be a million, are not visited again.
        draining.retain(|entry| self.drain_connection(now, *entry));
        self.draining = Some(draining);
    }

    /// Drains a connection. Returns whether the bridge must wait for it.
    fn drain_connection(&mut self, now: Instant, entry: TableEntry) -> bool {
        let TableEntry { number, generation } = entry;
        let is_present = self.table.has(number, generation);
        let Some(connection) = self.table.get_mut(number).filter(|_| is_present) else {
            return false;
        };
        let mut output = Output {
            frames: &mut self.outgoing,
            counters: &mut self.counters,
            mtus: self.settings.mtus,
        };
        connection.drain(now, &mut output);
        let statistics = connection.statistics();
        if connection.renumber() {
            self.add_statistics(&statistics);
            self.finish_event(now, number);
        } else if !connection.is_terminated() && connection.bytes_at_risk() == 0 {
            self.end(now, number, EndCause::Stopped);
        }
        self.must_wait_for(entry)
    }

    /// Whether a connection exists, and does not continue in the next version of the program.
    fn must_wait_for(&self, entry: TableEntry) -> bool {
        let connection = self.table.get(entry.number);
        self.table.has(entry.number, entry.generation)
            && connection.is_some_and(|connection| !connection.is_renumbered())
    }

    /// Whether all connections have ended, or continue in the next version of the program.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        let draining = self.draining.as_ref();
        draining.is_some_and(|entries| !entries.iter().any(|entry| self.must_wait_for(*entry)))
    }
}
