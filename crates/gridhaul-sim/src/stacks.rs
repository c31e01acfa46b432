//! The TCP parameters of the two ends of a connection.

use std::sync::Arc;

use gridhaul_core::tcp::{SegmentPaths, StackParams};
use gridhaul_scenario::scenario::{Hop, IpVersion, Scenario};

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

/// The stacks of ends between which these paths lead, with the segment sizes that their handshake
/// yields.
pub(crate) fn negotiate_mss(
    scenario: &Scenario,
    stacks: &mut Stacks,
    forward: &[Hop],
    reverse: &[Hop],
) {
    let offered = [Arc::clone(&stacks.1), Arc::clone(&stacks.0)];
    let ends = [(&mut stacks.0, forward, reverse), (&mut stacks.1, reverse, forward)];
    for ((params, data, reverse), peer) in ends.into_iter().zip(offered) {
        let mut negotiated = (**params).clone();
        negotiated.negotiate_mss(scenario, SegmentPaths { data, reverse }, &peer);
        if negotiated.mss < params.mss {
            *params = Arc::new(negotiated);
        }
    }
}

/// The stack with this name. The phases of its timers are random unless the scenario uses no random
/// numbers.
pub(crate) fn stack(scenario: &Scenario, name: Option<&String>, ip: IpVersion) -> StackParams {
    let mut params = StackParams::named(scenario, name, ip);
    params.policy.random_timer_phase &= !scenario.is_deterministic();
    params
}
