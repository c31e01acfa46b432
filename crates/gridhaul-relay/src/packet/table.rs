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
    /// deadline is not entered until the earlier one has passed.
    deadlines: BinaryHeap<Reverse<Deadline>>,
    /// Connections that are closed and kept for a while, the oldest first.
    closed: VecDeque<(u32, u32)>,
    /// Payload of all connections.
    memory: usize,
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

    /// Number of earlier connections with this number.
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
            self.closed.push_back((number, row.generation));
        }
        let at = connection.deadline(limits);
        if at < row.entered {
            row.entered = at;
            self.deadlines.push(Reverse(Deadline { at, number, generation: row.generation }));
        }
    }

    /// A connection that is closed, the oldest one, to make space for another.
    pub(super) fn pop_closed(&mut self) -> Option<u32> {
        while let Some((number, generation)) = self.closed.pop_front() {
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
