//! Messages over TCP that have not arrived at the end of a run.

use gridhaul_scenario::units::{Duration, Instant};

use super::RunState;
use crate::flow::Flow;

/// The messages of a row that were ready in the measurement interval and have not arrived by its
/// end.
#[derive(Debug, Default)]
pub(crate) struct Undelivered {
    /// Time since each message was ready.
    pub waiting: Vec<Duration>,
    /// The number of these messages that were never sent because their connection failed to open.
    pub unsent: u64,
}

impl Undelivered {
    /// Adds the messages that the application of a flow has written to its connection.
    pub(crate) fn add(&mut self, flow: &Flow, state: RunState<'_>) {
        let unsent = flow.has_failed_to_open();
        let Some(app) = &flow.app else { return };
        for ready in app.undelivered(state.in_flight) {
            self.add_message(ready, unsent, state);
        }
    }

    /// Adds the messages of a row that aggregators have accepted.
    pub(crate) fn add_forwarded(&mut self, row: u32, state: RunState<'_>) {
        for (index, connection) in state.aggregators.connections.iter().enumerate() {
            let upstream = &state.flows[state.aggregators.first_flow as usize + index];
            let unsent = upstream.has_failed_to_open();
            for message in &connection.messages {
                let is_message = message.ready != Instant::NEVER;
                if is_message && state.flows[message.origin as usize].row == row {
                    self.add_message(message.ready, unsent, state);
                }
            }
        }
    }

    fn add_message(&mut self, ready: Instant, unsent: bool, state: RunState<'_>) {
        if state.counters.measured.contains(&ready) {
            self.waiting.push(state.end().since(ready));
            self.unsent += u64::from(unsent);
        }
    }
}
