//! Proxies in a run: nodes on the way of a connection that do more than forward.
//!
//! `wire.rs` builds one machine for each connection and proxy by its `recipe.rs`, `course.rs` is what happens at
//! them, `outcome.rs` what is said of them, and `refuse.rs` names what cannot be done. The rules
//! are those of [`gridhaul_core::pep`].

mod course;
mod outcome;
mod recipe;
mod refuse;
mod wire;

use gridhaul_core::pep::{BufferStatus, Proxy, Side, TimeAverage};
use gridhaul_scenario::scenario::PacketsWhileDown;
use gridhaul_scenario::units::Instant;

pub(crate) use course::{Context, Passage, TakenIn};
pub(crate) use outcome::ProxySums;
use recipe::Recipe;
pub(crate) use refuse::refusals;
pub(crate) use wire::ProxyWiring;

/// The proxies of a run. Without any, all of it is empty.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    /// Number of the first unit of each flow; empty where there are no units.
    pub first: Vec<u32>,
    pub units: Vec<Unit>,
}

/// A proxy, as far as one connection is concerned.
#[derive(Debug)]
pub(crate) struct Unit {
    pub flow: u32,
    machine: Box<dyn Proxy>,
    recipe: Recipe,
    /// Places in the list of routes of the links that lead on to the left and to the right.
    next: [u32; 2],
    /// Crashes that are still to come, the next one last: when, until when, and what becomes of
    /// packets meanwhile.
    crashes: Vec<(Instant, Instant, PacketsWhileDown)>,
    /// While it is down: until when, and what becomes of packets.
    down: Option<(Instant, PacketsWhileDown)>,
    /// Payload of both directions of which the only copy is here.
    bytes_at_risk: TimeAverage,
    /// How often it has crashed.
    crashed: u32,
    /// Data segments that it has sent again.
    repeated: u64,
    /// Where what was sent ends, toward the left and the right, as far as sequence numbers tell.
    sent_up_to: [Option<u32>; 2],
}

impl Unit {
    pub(crate) fn next_deadline(&self) -> Instant {
        let crash = self.crashes.last().map_or(Instant::NEVER, |crash| crash.0);
        let own = match self.down {
            Some((until, _)) => until,
            None => self.machine.next_deadline(),
        };
        own.min(crash)
    }

    /// Whether what arrives ends here and goes on over another connection.
    const fn terminates_connections(&self) -> bool {
        self.recipe.mode.terminates_connections()
    }

    /// What it has of the payload from one side, if it takes over any; `sent` is how much was sent
    /// to it. The proxy counts from where it entered the connection, this from the beginning.
    pub(crate) fn forwarded(&self, from: Side, sent: u64) -> Option<BufferStatus> {
        let held = self.machine.buffer_status(from);
        // A unit that only lets pass has received nothing yet.
        if !self.terminates_connections() || held.received == 0 {
            return None;
        }
        let Some(first) = self.machine.first_sequence_number(from) else { return Some(held) };
        let behind_syn = self.recipe.isns[from.index()].wrapping_add(1);
        // Sequence numbers wrap: of all positions with this number, the one next to what was sent.
        let received = first.wrapping_add(held.received as u32).wrapping_sub(behind_syn);
        let lag = (sent as u32).wrapping_sub(received).cast_signed();
        let entered = sent.saturating_add_signed(-i64::from(lag)).saturating_sub(held.received);
        let received = held.received + entered;
        let (taken, released) = (held.acknowledged + entered, held.released + entered);
        Some(BufferStatus { received, acknowledged: taken, released, ..held })
    }

    fn note_held(&mut self, now: Instant) {
        let bytes_at_risk = self.machine.bytes_at_risk();
        if bytes_at_risk != self.bytes_at_risk.value() {
            self.bytes_at_risk.set(now, bytes_at_risk);
        }
    }
}
