//! TCP handshakes of a run: the connections that are opening, and the handshake times of the
//! others.

use std::collections::BTreeMap;

use gridhaul_core::load::HandshakeTimes;
use gridhaul_core::tcp::{Connection, State};
use gridhaul_scenario::units::Instant;

use crate::flow::Flow;

/// The handshakes of all flows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Handshakes {
    rows: Vec<Option<HandshakeTimes>>,
    /// When each connection that is opening sent its first SYN, by the number of its flow. Most
    /// connections are open after a round trip, so a column for all flows would need more memory.
    opening: BTreeMap<u32, Instant>,
}

impl Handshakes {
    /// The handshakes of this number of rows.
    pub(crate) fn new(rows: usize) -> Self {
        Self {
            rows: std::iter::repeat_with(|| None).take(rows).collect(),
            opening: BTreeMap::new(),
        }
    }

    /// The application of a flow is about to use its connection, which sends a SYN unless it
    /// already has.
    #[inline]
    pub(crate) fn on_use(&mut self, now: Instant, index: u32, client: &Connection) {
        if client.state() == State::SynSent {
            self.opening.entry(index).or_insert(now);
        }
    }

    /// A SYN-ACK has arrived at the end that opens the connection.
    #[cold]
    pub(crate) fn on_syn_ack(&mut self, now: Instant, index: u32, row: u32, client: &Connection) {
        if client.is_open()
            && let Some(started) = self.opening.remove(&index)
        {
            self.row(row).on_opened(now.since(started));
        }
    }

    /// Counts the handshakes that have failed at the end of the run.
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
