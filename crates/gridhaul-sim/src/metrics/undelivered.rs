//! Messages over TCP that have not arrived at the end of a run.

use gridhaul_scenario::units::{Duration, Instant};

use super::State;
use crate::flow::Flow;

/// The messages of a row that were ready in the measured time and have not arrived by its end.
#[derive(Debug, Default)]
pub(crate) struct Undelivered {
    /// How long each has waited.
    pub waiting: Vec<Duration>,
    /// Of these, the messages that were never sent: their connection failed to open.
    pub unsent: u64,
}

impl Undelivered {
    /// Adds the messages that a flow has handed to its own connection.
    pub(crate) fn add(&mut self, flow: &Flow, state: State<'_>) {
        let unsent = flow.has_failed_to_open();
        let Some(app) = &flow.app else { return };
        for ready in app.undelivered(state.under_way) {
            self.add_message(ready, unsent, state);
        }
    }

    /// Adds the messages of a row that collectors have taken over.
    pub(crate) fn add_collected(&mut self, row: u32, state: State<'_>) {
        for (index, outlet) in state.aggregators.upstream.iter().enumerate() {
            let upstream = &state.flows[state.aggregators.first as usize + index];
            let unsent = upstream.has_failed_to_open();
            for message in &outlet.messages {
                let is_message = message.ready != Instant::NEVER;
                if is_message && state.flows[message.origin as usize].row == row {
                    self.add_message(message.ready, unsent, state);
                }
            }
        }
    }

    fn add_message(&mut self, ready: Instant, unsent: bool, state: State<'_>) {
        if state.counters.measured.contains(&ready) {
            self.waiting.push(state.end().since(ready));
            self.unsent += u64::from(unsent);
        }
    }
}
