//! Handshakes of a run: which connections are opening, and how long the others took.

use std::collections::BTreeMap;

use gridhaul_core::load::HandshakeTimes;
use gridhaul_core::tcp::{Connection, State};
use gridhaul_scenario::units::Instant;

use crate::flow::Flow;

/// The handshakes of all flows.
#[derive(Debug, Default)]
pub(crate) struct Handshakes {
    rows: Vec<Option<HandshakeTimes>>,
    /// When each connection that is opening sent its first SYN, by the number of its flow. Most are
    /// open after a round trip: a column for all flows would cost more memory.
    opening: BTreeMap<u32, Instant>,
}

impl Handshakes {
    /// For so many rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            rows: std::iter::repeat_with(|| None).take(rows).collect(),
            opening: BTreeMap::new(),
        }
    }

    /// The application of a flow is about to use its connection, which sends SYN now unless it has.
    #[inline]
    pub(crate) fn on_use(&mut self, now: Instant, index: u32, near: &Connection) {
        if near.state() == State::SynSent {
            self.opening.entry(index).or_insert(now);
        }
    }

    /// SYN was answered at the end that opens the connection.
    #[cold]
    pub(crate) fn on_answered(&mut self, now: Instant, index: u32, row: u32, near: &Connection) {
        if near.is_open()
            && let Some(begun) = self.opening.remove(&index)
        {
            self.row(row).on_opened(now.since(begun));
        }
    }

    /// The run is over.
    pub(crate) fn finish(&mut self, flows: &[Flow]) {
        for index in std::mem::take(&mut self.opening).into_keys() {
            let flow = &flows[index as usize];
            let openings = self.row(flow.row);
            if flow.has_failed_to_open() {
                openings.on_failed();
            }
        }
    }

    /// The handshakes of a row; `None` where no connection began to open.
    pub(crate) fn of(&self, row: usize) -> Option<&HandshakeTimes> {
        self.rows[row].as_ref()
    }

    fn row(&mut self, row: u32) -> &mut HandshakeTimes {
        self.rows[row as usize].get_or_insert_default()
    }
}
