//! The TCP parameters of the two ends of a connection.

use std::sync::Arc;

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::scenario::{IpVersion, Scenario};

/// The stacks of both ends, which all flows of a row share.
pub(crate) type Stacks = (Arc<StackParams>, Arc<StackParams>);

/// The stacks with these names.
pub(crate) fn stacks(
    scenario: &Scenario,
    [from, to]: [Option<&String>; 2],
    ip: IpVersion,
) -> Stacks {
    let resolve = |name: Option<&String>| Arc::new(stack(scenario, name, ip));
    let resolved = resolve(from);
    let to = if to == from { Arc::clone(&resolved) } else { resolve(to) };
    (resolved, to)
}

/// The stack with this name. The phases of its timers are random unless the scenario uses no random
/// numbers.
pub(crate) fn stack(scenario: &Scenario, name: Option<&String>, ip: IpVersion) -> StackParams {
    let mut params = StackParams::named(scenario, name, ip);
    params.policy.random_timer_phase &= !scenario.is_deterministic();
    params
}
