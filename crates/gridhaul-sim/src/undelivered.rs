//! Messages over TCP that have not arrived at the end of a run.

use gridhaul_scenario::units::{Duration, Instant};

use crate::flow::Flow;
use crate::world::World;

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
    pub(crate) fn add(&mut self, flow: &Flow, world: &World) {
        let unsent = flow.has_failed_to_open();
        let Some(app) = &flow.app else { return };
        for ready in app.undelivered(&world.under_way) {
            self.add_message(ready, unsent, world);
        }
    }

    /// Adds the messages of a row that collectors have taken over.
    pub(crate) fn add_collected(&mut self, row: u32, world: &World) {
        for (index, outlet) in world.collect.outlets.iter().enumerate() {
            let upstream = &world.flows[world.collect.first as usize + index];
            let unsent = upstream.has_failed_to_open();
            for parcel in &outlet.parcels {
                let is_message = parcel.ready != Instant::NEVER;
                if is_message && world.flows[parcel.origin as usize].row == row {
                    self.add_message(parcel.ready, unsent, world);
                }
            }
        }
    }

    fn add_message(&mut self, ready: Instant, unsent: bool, world: &World) {
        if ready >= world.warmup && ready < world.end {
            self.waiting.push(world.end.since(ready));
            self.unsent += u64::from(unsent);
        }
    }
}
