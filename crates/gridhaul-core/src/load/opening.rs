//! When equal flows begin their loads and open their connections.

use gridhaul_scenario::scenario::{Flow, Load};
use gridhaul_scenario::units::{Duration, Instant};

use super::Demand;
use crate::chance::Chance;

/// When the members of a flow begin their loads and open their connections (`start_spread`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    start: Instant,
    rule: Rule,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Load and connection begin at the same random time within this span after `start`.
    WithLoad(Duration),
    /// The load begins at `start`, and the connection opens with its first message.
    WithFirstMessage,
    /// The load begins at `start`, and the connection opens at a random time before the event, which
    /// follows after this span.
    BeforeEvent(Duration),
}

/// The span over which equal flows without a natural phase are spread by default. Long against a round
/// trip, so that handshakes do not collide; short against a run.
pub const DEFAULT_START_SPREAD: Duration = Duration::from_secs(1);

impl Opening {
    /// The rule for a flow that stands for this many `connections`.
    #[must_use]
    pub fn of(flow: &Flow, connections: u64) -> Self {
        let start = Instant::ZERO + flow.start;
        let rule = match flow.start_spread {
            Some(spread) => Rule::WithLoad(spread),
            None => default_rule(&flow.load, connections),
        };
        Self { start, rule }
    }

    /// When the load of a member begins. `chance` is the member's stream for its start.
    #[must_use]
    pub fn load_begins(&self, chance: &mut Chance) -> Instant {
        match self.rule {
            Rule::WithLoad(spread) => self.start + chance.uniform(spread),
            Rule::WithFirstMessage | Rule::BeforeEvent(_) => self.start,
        }
    }

    /// When a member opens its connection, whose load, `demand`, begins at `load_begins`.
    /// [`Instant::NEVER`] where that follows from a recording, or where there is never a message.
    #[must_use]
    pub fn connection_opens(
        &self,
        load_begins: Instant,
        demand: &Demand,
        chance: &mut Chance,
    ) -> Instant {
        match self.rule {
            Rule::WithLoad(_) => load_begins,
            Rule::BeforeEvent(span) => {
                load_begins + chance.uniform(span.saturating_sub(Duration::from_nanos(1)))
            }
            Rule::WithFirstMessage => with_first_message(load_begins, demand, chance),
        }
    }
}

fn default_rule(load: &Load, connections: u64) -> Rule {
    let spread = |span| Rule::WithLoad(if connections > 1 { span } else { Duration::ZERO });
    match &*load.plain() {
        Load::Bulk | Load::Transfer(_) => spread(DEFAULT_START_SPREAD),
        Load::RequestResponse(keys) => {
            let cycle = keys.think + keys.pause;
            spread(if cycle.is_zero() { DEFAULT_START_SPREAD } else { cycle })
        }
        Load::Poisson(keys) if keys.synchronised => Rule::WithLoad(Duration::ZERO),
        Load::OnOff(keys) if keys.synchronised => Rule::WithLoad(Duration::ZERO),
        Load::Burst(keys) if !keys.at.is_zero() => Rule::BeforeEvent(keys.at),
        // Synchronised clocks tick together from `start` on, so their connections open together.
        Load::Periodic(_)
        | Load::Poisson(_)
        | Load::OnOff(_)
        | Load::Burst(_)
        | Load::Trace(_)
        | Load::Application(_) => Rule::WithFirstMessage,
    }
}

fn with_first_message(begins: Instant, demand: &Demand, chance: &mut Chance) -> Instant {
    match demand {
        Demand::Open(source) => source.coming(),
        // Its bursts are in their stationary state: those that are under way at `begins` began at
        // different times before, so their members do not open all at the same instant.
        Demand::Greedy(greedy) if greedy.bursts.active() => {
            let rest = greedy.bursts.until().since(begins);
            begins + chance.uniform(rest.min(DEFAULT_START_SPREAD))
        }
        Demand::Greedy(greedy) => greedy.bursts.until(),
        Demand::Recorded => Instant::NEVER,
        Demand::Endless | Demand::Limited(_) | Demand::Dialogue(_) => begins,
    }
}
