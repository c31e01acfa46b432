//! The connections of the bridge, and their deadlines.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use gridhaul_scenario::units::Instant;

use super::connection::{Connection, Limits};
use super::key::ConnectionKey;
use super::key_index::KeyIndex;

/// Connections by number, which stays the same while the connection exists.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Row>,
    free: Vec<u32>,
    numbers: KeyIndex,
    /// Times at which a connection must be checked. An entry may be early, because a later
    /// deadline is not entered until the earlier one has passed. An earlier deadline is entered in
    /// addition, so that the later entry is outdated.
    deadlines: BinaryHeap<Reverse<Deadline>>,
    /// Connections that are closed and kept for a while, the oldest first. They end by their time
    /// limits, so that most entries become outdated.
    closed: VecDeque<TableEntry>,
    /// Payload of all connections.
    memory: usize,
}

/// The place of a connection, which another one may take after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TableEntry {
    pub(super) number: u32,
    pub(super) generation: u32,
}

#[derive(Debug)]
struct Row {
    connection: Option<Box<Connection>>,
    /// Counts the connections of this row, so that entries of earlier ones are recognised.
    generation: u32,
    /// Earliest entry of this connection in `deadlines`; [`Instant::NEVER`] without one.
    entered: Instant,
    /// Payload of this connection, as contained in the sum; less than 4 GiB.
    memory: u32,
    /// The connection is in `closed`.
    is_closed: bool,
}

const _: () = assert!(size_of::<Row>() <= 32);

/// Outdated entries of a list that may stay beyond the number of connections, so that a small table
/// is not searched after each event.
const OUTDATED_MAX: usize = 1_024;

impl Row {
    const EMPTY: Self = Self {
        connection: None,
        generation: 0,
        entered: Instant::NEVER,
        memory: 0,
        is_closed: false,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Deadline {
    at: Instant,
    number: u32,
    generation: u32,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Payload of all connections.
    pub(super) const fn memory(&self) -> usize {
        self.memory
    }

    pub(super) fn find(&self, key: &ConnectionKey) -> Option<u32> {
        self.numbers.find(key, |number| key_of(&self.rows, number))
    }

    pub(super) fn get(&self, number: u32) -> Option<&Connection> {
        self.rows.get(number as usize)?.connection.as_deref()
    }

    /// Number of earlier connections in the row of this one.
    pub(super) fn generation(&self, number: u32) -> Option<u32> {
        let row = self.rows.get(number as usize)?;
        row.connection.is_some().then_some(row.generation)
    }

    /// Whether the connection with this number is still the one of this generation.
    pub(super) fn has(&self, number: u32, generation: u32) -> bool {
        self.generation(number) == Some(generation)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Connection> {
        self.rows.get_mut(number as usize)?.connection.as_deref_mut()
    }

    /// The places of all connections.
    pub(super) fn entries(&self) -> impl Iterator<Item = TableEntry> {
        let rows = (0..).zip(&self.rows).filter(|(_, row)| row.connection.is_some());
        rows.map(|(number, row)| TableEntry { number, generation: row.generation })
    }

    /// All connections with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Connection)> {
        let rows = (0..).zip(&self.rows);
        rows.filter_map(|(number, row)| Some((number, row.connection.as_deref()?)))
    }

    /// Adds a connection, whose key must not be in use.
    pub(super) fn insert(&mut self, connection: Connection) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.rows.push(Row::EMPTY);
            (self.rows.len() - 1) as u32
        });
        self.numbers.insert(&connection.key, number, |number| key_of(&self.rows, number));
        let row = &mut self.rows[number as usize];
        row.connection = Some(Box::new(connection));
        (row.entered, row.memory, row.is_closed) = (Instant::NEVER, 0, false);
        number
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Box<Connection>> {
        let row = self.rows.get_mut(number as usize)?;
        let connection = row.connection.take()?;
        row.generation = row.generation.wrapping_add(1);
        self.memory -= std::mem::take(&mut row.memory) as usize;
        self.numbers.remove(&connection.key, number);
        self.free.push(number);
        Some(connection)
    }

    /// Updates memory and deadline of a connection that has handled an event.
    pub(super) fn update(&mut self, number: u32, limits: &Limits) {
        let Some(row) = self.rows.get_mut(number as usize) else { return };
        let Some(connection) = &row.connection else { return };
        let memory = connection.memory();
        self.memory = self.memory - row.memory as usize + memory;
        row.memory = memory as u32;
        if !row.is_closed && connection.is_over() {
            row.is_closed = true;
            self.closed.push_back(TableEntry { number, generation: row.generation });
        }
        let at = connection.deadline(limits);
        if at < row.entered {
            row.entered = at;
            self.deadlines.push(Reverse(Deadline { at, number, generation: row.generation }));
        }
        self.remove_outdated();
    }

    /// Removes outdated entries once they are the larger part: those of the idle timeout would
    /// otherwise stay for hours, one for each retransmission timer of a connection.
    fn remove_outdated(&mut self) {
        let entries_max = 2 * self.numbers.len() + OUTDATED_MAX;
        let rows = &self.rows;
        if self.deadlines.len() > entries_max {
            self.deadlines.retain(|Reverse(entry)| {
                let row = &rows[entry.number as usize];
                row.generation == entry.generation && row.entered == entry.at
            });
        }
        if self.closed.len() > entries_max {
            self.closed.retain(|TableEntry { number, generation }| {
                let row = &rows[*number as usize];
                row.generation == *generation && row.is_closed
            });
        }
    }

    /// A connection that is closed, the oldest one, to make space for another.
    pub(super) fn pop_closed(&mut self) -> Option<u32> {
        while let Some(TableEntry { number, generation }) = self.closed.pop_front() {
            let row = &mut self.rows[number as usize];
            if row.generation == generation && row.connection.is_some() {
                row.is_closed = false;
                return Some(number);
            }
        }
        None
    }

    /// When [`Self::pop_due`] returns a connection, at the earliest.
    pub(super) fn next_deadline(&self) -> Instant {
        self.deadlines.peek().map_or(Instant::NEVER, |Reverse(deadline)| deadline.at)
    }

    /// A connection whose entry has passed. [`Self::update`] enters the next one.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        loop {
            let due = self.deadlines.peek().filter(|Reverse(deadline)| deadline.at <= now)?;
            let Deadline { at, number, generation } = due.0;
            self.deadlines.pop();
            let row = &mut self.rows[number as usize];
            if row.generation == generation && row.entered == at {
                row.entered = Instant::NEVER;
                return Some(number);
            }
        }
    }
}

/// The key of the connection with this number.
fn key_of(rows: &[Row], number: u32) -> Option<&ConnectionKey> {
    rows.get(number as usize)?.connection.as_ref().map(|connection| &connection.key)
}

#[cfg(test)]
mod tests {
    use gridhaul_core::pep::{Proxy, Side};
    use gridhaul_core::tcp::{Flags, Segment};
    use gridhaul_scenario::scenario::ProxyMode;
    use gridhaul_scenario::units::Duration;

    use super::super::BridgePort;
    use super::super::connection::Opening;
    use super::super::split_observer::SplitObserver;
    use super::*;

    fn connection(proxy: SplitObserver) -> Connection {
        let hosts = ["10.0.0.1:4000", "10.0.0.2:7"].map(|host| host.parse().unwrap());
        let opening = Opening {
            key: ConnectionKey::between(hosts, [None; 2]),
            rule: 0,
            mode: ProxyMode::Split,
            client: BridgePort::First,
            proxy: Box::new(proxy),
            buffer: 0,
            own: None,
        };
        Connection::new(Instant::ZERO, opening)
    }

    fn closed() -> Connection {
        let mut proxy = SplitObserver::default();
        let reset = Segment { flags: Flags::RST, ..Segment::default() };
        proxy.handle_segment(Instant::ZERO, Side::Client, &reset);
        assert!(proxy.poll_transmit(Instant::ZERO).is_some());
        connection(proxy)
    }

    #[test]
    fn the_number_of_deadlines_is_bounded() {
        let mut table = Table::default();
        let number = table.insert(connection(SplitObserver::default()));
        for step in 1..100_000 {
            // Each deadline is earlier than the one before.
            let idle = Duration::from_secs(100) - Duration::from_nanos(step);
            table.update(number, &Limits { idle });
        }
        assert!(table.deadlines.len() <= 2 + OUTDATED_MAX, "{}", table.deadlines.len());
        let due = Instant::ZERO + Duration::from_secs(99);
        assert_eq!(table.pop_due(due), None);
        assert_eq!(table.pop_due(due + Duration::from_secs(1)), Some(number));
        assert_eq!(table.pop_due(due + Duration::from_secs(1)), None);
    }

    #[test]
    fn closed_connections_that_have_ended_leave_nothing() {
        let mut table = Table::default();
        let limits = Limits { idle: Duration::from_secs(60) };
        for _ in 0..100_000 {
            let number = table.insert(closed());
            table.update(number, &limits);
            table.remove(number);
        }
        assert!(table.closed.len() <= 2 + OUTDATED_MAX, "{}", table.closed.len());
        assert!(table.deadlines.len() <= 2 + OUTDATED_MAX, "{}", table.deadlines.len());
        let number = table.insert(closed());
        table.update(number, &limits);
        assert_eq!([table.pop_closed(), table.pop_closed()], [Some(number), None]);
    }
}
