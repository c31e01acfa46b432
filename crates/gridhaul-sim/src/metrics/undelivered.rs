//! Messages over TCP that have not arrived at the end of a run.

use gridhaul_core::load::WaitingTimes;
use gridhaul_scenario::units::Instant;

use super::RunState;
use crate::flow::Flow;

/// The messages of a row that were ready in the measurement interval and have not arrived by its
/// end.
#[derive(Debug, Default)]
pub(crate) struct Undelivered {
    /// Time since each message was ready.
    pub waiting: WaitingTimes,
    /// The number of these messages that cannot arrive because their connection, or an upstream
    /// connection of their aggregators, failed to open.
    pub unsent: u64,
}

impl Undelivered {
    /// Adds the messages that the application of the flow with this number has written to its
    /// connection.
    pub(crate) fn add(&mut self, index: usize, state: RunState<'_>) {
        let unsent = state.aggregators.has_failed_to_open(state.flows, index as u32);
        for ready in written(&state.flows[index], state) {
            self.add_message(ready, unsent, state);
        }
    }

    /// Adds the messages of a row that aggregators have accepted.
    pub(crate) fn add_forwarded(&mut self, row: u32, state: RunState<'_>) {
        for (ready, unsent) in forwarded(row, state) {
            self.add_message(ready, unsent, state);
        }
    }

    fn add_message(&mut self, ready: Instant, unsent: bool, state: RunState<'_>) {
        if !state.counters.measured.contains(&ready) {
            return;
        }
        self.waiting.add(state.end().since(ready));
        self.unsent += u64::from(unsent);
    }
}

/// When the messages were ready that the application of a flow has written to its connection,
/// including those from before the measured time.
pub(super) fn written<'a>(
    flow: &'a Flow,
    state: RunState<'a>,
) -> impl Iterator<Item = Instant> + 'a {
    let messages = flow.app.iter().flat_map(move |app| app.undelivered(state.in_flight));
    messages.chain(flow.unconfirmed()).filter(move |ready| *ready < state.end())
}

/// When the messages of a row were ready that aggregators have accepted, and whether an upstream
/// connection that would forward them failed to open; including those from before the measured
/// time.
pub(super) fn forwarded(
    row: u32,
    state: RunState<'_>,
) -> impl Iterator<Item = (Instant, bool)> + '_ {
    let connections = state.aggregators.connections.iter().enumerate();
    connections.flat_map(move |(index, connection)| {
        let upstream = state.aggregators.first_flow + index as u32;
        let unsent = state.aggregators.has_failed_to_open(state.flows, upstream);
        let own = connection.messages.iter().filter(move |message| {
            let is_message = message.ready != Instant::NEVER;
            is_message
                && state.flows[message.origin as usize].row == row
                && message.ready < state.end()
        });
        own.map(move |message| (message.ready, unsent))
    })
}
