//! Transmission at a rate that varies with time.

use std::sync::Arc;

use gridhaul_scenario::scenario::{Direction, LinkTraceContent, RateSchedule};
use gridhaul_scenario::units::Instant;

use super::opportunities::Opportunities;
use super::outage::Outages;
use super::rate_changes::RateChanges;

/// The rate of a direction as a function of time.
#[derive(Debug, Clone)]
pub(super) enum VariableRate {
    /// Rates that change at stated times.
    Changes(RateChanges),
    /// Delivery opportunities.
    Opportunities(Opportunities),
}

impl VariableRate {
    /// The rate of a direction with `rate_change`; `None` for other directions.
    pub(super) fn of_changes(direction: &Direction) -> Option<Self> {
        let has_changes = !direction.rate_change.is_empty();
        has_changes.then(|| Self::Changes(RateChanges::new(RateSchedule::of(direction))))
    }

    /// The rate of a trace.
    pub(super) fn of_trace(trace: &LinkTraceContent) -> Self {
        match trace {
            LinkTraceContent::Deliveries(deliveries) => {
                Self::Opportunities(Opportunities::new(Arc::clone(deliveries)))
            }
            LinkTraceContent::Steps(steps) => {
                Self::Changes(RateChanges::new(RateSchedule::of_steps(Arc::clone(steps))))
            }
        }
    }

    /// End of the transmission of `bytes` that starts at `started`, outside a pause.
    pub(super) fn end_of_transmission(
        &mut self,
        outages: &Outages,
        started: Instant,
        bytes: u32,
    ) -> Instant {
        match self {
            Self::Changes(rates) => rates.end_of_transmission(outages, started, bytes),
            Self::Opportunities(opportunities) => opportunities.end_of_transmission(started, bytes),
        }
    }
}
