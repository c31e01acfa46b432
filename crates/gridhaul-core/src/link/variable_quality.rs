//! Delay and loss of a direction that follow a trace.

use std::sync::Arc;

use gridhaul_scenario::scenario::{LinkSteps, LinkTraceContent};
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRandomStreams;
use crate::random::RandomStream;

/// Delay and loss at the time at which a transmission ends.
#[derive(Debug, Clone)]
pub(super) struct VariableQuality {
    steps: Arc<LinkSteps>,
    random: RandomStream,
}

impl VariableQuality {
    /// Delay and loss of a trace; `None` for one of delivery opportunities.
    pub(super) fn of_trace(trace: &LinkTraceContent, random: LinkRandomStreams) -> Option<Self> {
        match trace {
            LinkTraceContent::Deliveries(_) => None,
            LinkTraceContent::Steps(steps) => {
                Some(Self { steps: Arc::clone(steps), random: random.stream("loss in trace") })
            }
        }
    }

    /// Delay in addition to that of the direction.
    pub(super) fn delay(&self, sent: Instant) -> Duration {
        self.steps.at(sent).delay
    }

    /// Whether the next packet is lost.
    pub(super) fn loses(&mut self, sent: Instant) -> bool {
        self.random.occurs(self.steps.at(sent).loss.into())
    }
}
