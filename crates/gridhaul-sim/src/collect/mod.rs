//! Collectors in a run: connections that end at them, and the connections that lead on.
//!
//! `plan.rs` finds out from the scenario which there are, `wire.rs` builds them, `course.rs` is
//! what happens at them, and `refuse.rs` names what cannot be collected. The rules are those of
//! [`gridhaul_core::pep::aggregation`]; here is what only a simulation knows: whose message it is
//! that comes out at the far end.

mod course;
mod outcome;
mod plan;
mod refuse;
mod wire;

use std::collections::VecDeque;

use gridhaul_core::pep::aggregation::SegmentAggregator;
use gridhaul_core::tcp::Segment;
use gridhaul_scenario::scenario::Load;

use crate::audit::CollectorAudit;
use crate::parcel::Parcel;

pub(crate) use course::Context;
pub(crate) use outcome::Levels;
use plan::Group;
pub(crate) use plan::Plan;
pub(crate) use refuse::refusals;
pub(crate) use wire::Wiring;

/// The collectors of a run. Without any, all of it is empty.
#[derive(Debug, Default)]
pub(crate) struct Collectors {
    /// For each flow, the outlet through which goes on what it delivers, or [`NO_OUTLET`].
    pub into: Vec<u32>,
    /// Number of the first flow that is an upstream connection. Outlet i has the i-th of them.
    pub first: u32,
    pub outlets: Vec<Outlet>,
    pub machines: Vec<Machine>,
}

/// Stands where a flow is at its end.
pub(crate) const NO_OUTLET: u32 = u32::MAX;

/// One collector.
#[derive(Debug)]
pub(crate) struct Machine {
    pub aggregate: SegmentAggregator,
    pub audit: CollectorAudit,
    /// Whether it closes windows instead of dropping.
    pub waits: bool,
}

/// What goes on over one upstream connection.
#[derive(Debug)]
pub(crate) struct Outlet {
    /// The collector, and which of its outlets this is.
    pub machine: u32,
    pub slot: u32,
    /// Messages that are not whole at the far end yet, in order.
    pub parcels: VecDeque<Parcel>,
    /// Where the last message ended that was whole there.
    pub delivered: u64,
}

impl Collectors {
    /// The outlet through which goes on what a flow delivers.
    #[inline]
    pub(crate) fn outlet_after(&self, flow: u32) -> Option<u32> {
        self.into.get(flow as usize).copied().filter(|&outlet| outlet != NO_OUTLET)
    }

    /// Whether a collector has to be asked if it takes a segment to this end.
    #[inline]
    pub(crate) fn takes(&self, to: u32, segment: &Segment) -> bool {
        !self.into.is_empty()
            && segment.len > 0
            && !to.is_multiple_of(2)
            && self.into[to as usize / 2] != NO_OUTLET
    }

    /// Whether this end belongs to a collector that sends from it.
    #[inline]
    pub(crate) fn sends_from(&self, end: u32) -> bool {
        !self.outlets.is_empty() && end >= 2 * self.first && end.is_multiple_of(2)
    }

    /// The outlet whose connection this flow is.
    #[inline]
    pub(crate) fn outlet_of(&self, flow: u32) -> Option<usize> {
        let outlet = flow.checked_sub(self.first)? as usize;
        (outlet < self.outlets.len()).then_some(outlet)
    }
}

/// Smallest and largest message of a load in bytes. A byte stream is cut into pieces of a segment.
fn sizes(load: &Load, mss: u32) -> (u64, u64) {
    let size = match &*load.plain() {
        Load::Periodic(load) => load.size.get(),
        Load::Poisson(load) => load.size.get(),
        Load::OnOff(load) => load.size.get(),
        Load::RequestResponse(load) => load.request.get(),
        Load::Burst(load) => load.size.get(),
        // Not known before a trace is played, and not asked for: see `refuse.rs`.
        Load::Trace(_) => 1,
        Load::Bulk | Load::Transfer(_) | Load::Application(_) => u64::from(mss),
    };
    (size, size)
}
