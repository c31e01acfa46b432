//! What a coupling holds, has lost and has counted.

use super::Coupling;
use crate::pep::{BufferStatus, Side, Statistics};
use crate::tcp::{Connection, State};

impl Coupling {
    /// Bytes that were acknowledged to their sender and given up with the connections.
    pub(in crate::pep) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Adds what the ends have counted.
    pub(in crate::pep) fn count(&self, statistics: &mut Statistics) {
        for side in Side::BOTH {
            if let Some(sender) = self.end(side).sender() {
                let stats = sender.stats();
                statistics.retransmissions[side.index()] += u64::from(stats.retransmissions);
                statistics.timeouts[side.index()] += u64::from(stats.timeouts);
            }
        }
    }

    /// Whether both connections are over, TIME-WAIT included, or none has begun.
    pub(in crate::pep) fn is_finished(&self) -> bool {
        let idle = |end: &Connection| matches!(end.state(), State::Closed | State::Listen);
        self.ends.iter().all(idle)
    }

    /// Whether both connections are over.
    pub(in crate::pep) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| matches!(end.state(), State::Closed | State::TimeWait))
    }

    #[inline]
    pub(in crate::pep) fn bytes_at_risk(&self) -> u64 {
        self.bytes_at_risk_from(Side::Client) + self.bytes_at_risk_from(Side::Server)
    }

    /// As much as [`BufferStatus::bytes_at_risk`].
    #[inline]
    fn bytes_at_risk_from(&self, from: Side) -> u64 {
        if self.aborted {
            return 0;
        }
        let (end, way) = (self.end(from), &self.ways[from.index()]);
        end.last_ack().saturating_sub(1).min(way.moved).saturating_sub(way.released)
    }

    pub(in crate::pep) fn buffer_status(&self, from: Side) -> BufferStatus {
        let (end, way) = (self.end(from), &self.ways[from.index()]);
        // Position 0 is SYN; FIN follows the data.
        let acknowledged = end.last_ack().saturating_sub(1).min(way.moved);
        let passed = BufferStatus {
            received: way.moved,
            acknowledged,
            released: way.released,
            ..BufferStatus::default()
        };
        if self.aborted {
            return passed;
        }
        let bytes = way.moved - way.released + end.receiver().beyond_gaps();
        BufferStatus { bytes, bytes_at_risk: self.bytes_at_risk_from(from), ..passed }
    }
}
