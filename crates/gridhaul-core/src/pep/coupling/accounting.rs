//! Buffer occupancy, losses and counters of coupled connections.

use super::Coupling;
use crate::pep::{BufferStatus, Side, Statistics};
use crate::tcp::{Connection, State};

impl Coupling {
    /// Bytes that were acknowledged to their sender and discarded when the connections were
    /// aborted.
    pub(in crate::pep) fn lost(&self) -> u64 {
        self.aborted.as_ref().map_or(0, |coupling| coupling.lost)
    }

    /// Adds the counters of both connections.
    pub(in crate::pep) fn count(&self, statistics: &mut Statistics) {
        for side in Side::BOTH {
            if let Some(sender) = self.connection(side).sender() {
                let stats = sender.stats();
                statistics.retransmissions[side.index()] += u64::from(stats.retransmissions);
                statistics.timeouts[side.index()] += u64::from(stats.timeouts);
            }
        }
    }

    /// Whether both connections are closed and have left TIME-WAIT, or none was opened.
    pub(in crate::pep) fn is_finished(&self) -> bool {
        let is_idle =
            |connection: &Connection| matches!(connection.state(), State::Closed | State::Listen);
        self.connections.iter().all(is_idle)
    }

    /// Whether both connections are closed or in TIME-WAIT.
    pub(in crate::pep) fn is_over(&self) -> bool {
        self.connections
            .iter()
            .all(|connection| matches!(connection.state(), State::Closed | State::TimeWait))
    }

    /// Sum of [`BufferStatus::bytes_at_risk`] over both directions.
    #[inline]
    pub(in crate::pep) fn bytes_at_risk(&self) -> u64 {
        self.bytes_at_risk_from(Side::Client) + self.bytes_at_risk_from(Side::Server)
    }

    /// [`BufferStatus::bytes_at_risk`] of the data from one side.
    #[inline]
    fn bytes_at_risk_from(&self, from: Side) -> u64 {
        if self.aborted.is_some() {
            return 0;
        }
        self.acknowledged(from).saturating_sub(self.directions[from.index()].released)
    }

    /// Payload bytes of a side that were acknowledged to it.
    #[inline]
    fn acknowledged(&self, from: Side) -> u64 {
        let before = self.stated_before_drain(from).map_or(0, |stated| stated.acknowledged);
        // Stream position 0 is SYN, and FIN follows the data.
        let acknowledged = self.connection(from).last_ack().max(before).saturating_sub(1);
        acknowledged.min(self.directions[from.index()].transferred)
    }

    pub(in crate::pep) fn buffer_status(&self, from: Side) -> BufferStatus {
        let (connection, direction) = (self.connection(from), &self.directions[from.index()]);
        let transferred = BufferStatus {
            received: direction.transferred,
            acknowledged: self.acknowledged(from),
            released: direction.released,
            ..BufferStatus::default()
        };
        if self.aborted.is_some() {
            return transferred;
        }
        let bytes =
            direction.transferred - direction.released + connection.receiver().out_of_order_bytes();
        BufferStatus { bytes, bytes_at_risk: self.bytes_at_risk_from(from), ..transferred }
    }
}
