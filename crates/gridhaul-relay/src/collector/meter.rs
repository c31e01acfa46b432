//! Meters: connections that are open, and their positions.

use std::collections::{BTreeMap, BTreeSet};

use gridhaul_protocols::framing::MessageFraming;

/// Identifies a meter's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeterId {
    /// Row in the table of meters, which is reused after
    /// [`Collector::release`](super::Collector::release).
    pub index: u32,
    /// Number of the meter, which is never used twice.
    pub number: u64,
}

/// Positions of a meter's stream, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeterStatus {
    /// Number of the meter.
    pub number: u64,
    /// Accepted by the collector.
    pub received: u64,
    /// Stored as the tier demands.
    pub durable: u64,
    /// Passed from the server to the meter's socket.
    pub down: u64,
    /// Whether the meter has closed its direction.
    pub is_ended: bool,
}

/// A meter. There may be many: every byte counts.
#[derive(Debug)]
pub(super) struct Meter {
    pub number: u64,
    pub received: u64,
    pub durable: u64,
    /// Position in the server's stream of the next byte to pass on, and of the next to be written
    /// to the socket.
    pub down_expected: u64,
    pub down_written: u64,
    pub framing: MessageFraming,
    /// Bytes accepted since the backlog was last below half of its limit.
    pub share_used: u64,
    pub share_round: u32,
    pub shard: u16,
    /// FIN of the meter has arrived, perhaps behind data that was not accepted yet.
    pub closing: bool,
    /// FIN of the meter was recorded; the record is durable.
    pub eof: bool,
    pub eof_durable: bool,
    /// FIN of the server has arrived; FIN was sent to the meter.
    pub server_fin: bool,
    pub fin_sent: bool,
    /// The caller is notified when data is stored.
    pub notifies: bool,
}

/// All open meters.
#[derive(Debug, Default)]
pub(super) struct MeterTable {
    rows: Vec<Option<Meter>>,
    free: Vec<u32>,
    /// Meters that were removed and whose sockets the caller has not closed yet: another meter in
    /// such a row would displace the socket.
    reserved: BTreeSet<MeterId>,
    by_number: BTreeMap<u64, u32>,
}

impl MeterTable {
    pub(super) fn insert(&mut self, meter: Meter) -> MeterId {
        let number = meter.number;
        let index = match self.free.pop() {
            Some(index) => {
                self.rows[index as usize] = Some(meter);
                index
            }
            None => {
                self.rows.push(Some(meter));
                (self.rows.len() - 1) as u32
            }
        };
        self.by_number.insert(number, index);
        MeterId { index, number }
    }

    /// The meter, unless it has been removed.
    pub(super) fn get(&self, id: MeterId) -> Option<&Meter> {
        self.rows.get(id.index as usize)?.as_ref().filter(|meter| meter.number == id.number)
    }

    pub(super) fn get_mut(&mut self, id: MeterId) -> Option<&mut Meter> {
        self.rows.get_mut(id.index as usize)?.as_mut().filter(|meter| meter.number == id.number)
    }

    pub(super) fn find(&self, number: u64) -> Option<MeterId> {
        self.by_number.get(&number).map(|&index| MeterId { index, number })
    }

    pub(super) fn remove(&mut self, id: MeterId) -> Option<Meter> {
        self.get(id)?;
        self.by_number.remove(&id.number);
        self.reserved.insert(id);
        self.rows[id.index as usize].take()
    }

    /// The row of a meter that was removed can be reused.
    pub(super) fn release(&mut self, id: MeterId) {
        if self.reserved.remove(&id) {
            self.free.push(id.index);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// All meters, in the order in which they connected.
    pub(super) fn iter(&self) -> impl Iterator<Item = (MeterId, &Meter)> {
        self.by_number.iter().filter_map(|(&number, &index)| {
            let id = MeterId { index, number };
            Some((id, self.get(id)?))
        })
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Meter> {
        self.rows.iter_mut().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(number: u64) -> Meter {
        Meter {
            number,
            received: 0,
            durable: 0,
            down_expected: 0,
            down_written: 0,
            framing: MessageFraming::Stream,
            share_used: 0,
            share_round: 0,
            shard: 0,
            closing: false,
            eof: false,
            eof_durable: false,
            server_fin: false,
            fin_sent: false,
            notifies: false,
        }
    }

    #[test]
    fn a_row_is_reused_only_after_the_socket_of_its_meter_is_closed() {
        let mut table = MeterTable::default();
        let first = table.insert(meter(0));
        table.remove(first);
        let second = table.insert(meter(1));
        assert_ne!(second.index, first.index, "the socket of the first meter waits for its FIN");
        table.release(first);
        table.release(first);
        table.release(second);
        assert_eq!(table.insert(meter(2)).index, first.index);
        assert_eq!(table.insert(meter(3)).index, 2, "a row is released once, after its meter");
        assert_eq!(table.get(second).map(|meter| meter.number), Some(1));
    }
}
