//! Full segments and the MTU of the links that carry them.

use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Directions, Hop, Scenario, Transport};

use super::StackParams;

/// Timestamps option with padding (RFC 7323, section 3.2 and appendix A).
const CLOCK_OPTION: u32 = 12;

/// The stacks whose full segments exceed the MTU of a link on the path of their data: gridhaul has
/// no path-MTU discovery, so that the segment size must be that of the path.
#[must_use]
pub fn oversized_segments(scenario: &Scenario) -> Vec<Unsupported> {
    let mut found = Vec::new();
    if !scenario.has_mtu() {
        return found;
    }
    for (name, flow) in &scenario.flow {
        if flow.transport != Transport::Tcp {
            continue;
        }
        // A flow without a path is invalid, which is reported elsewhere.
        let Ok(stages) = scenario.stages(name) else { continue };
        for stage in &stages {
            let key = format!("flow.{name}.stack");
            found.extend(oversized(scenario, key, stage.stack.as_ref(), stage.ip, &stage.forward));
            if flow.load.is_two_way() {
                let stack = flow.to_stack.as_ref().or(stage.stack.as_ref());
                let key = format!("flow.{name}.to_stack");
                found.extend(oversized(scenario, key, stack, stage.ip, &stage.reverse));
            }
        }
    }
    found.dedup();
    found
}

fn oversized(
    scenario: &Scenario,
    key: String,
    stack: Option<&String>,
    ip: gridhaul_scenario::scenario::IpVersion,
    path: &[Hop],
) -> Option<Unsupported> {
    let params = StackParams::named(scenario, stack, ip);
    let options = if params.has_clock_option() { CLOCK_OPTION } else { 0 };
    let packet = u64::from(params.mss + params.header + options);
    let directions = Directions::new(scenario);
    let keys: Vec<_> = Directions::keys(scenario).collect();
    for number in directions.of(path, 0, 1) {
        let row = directions.row_of()[number as usize] as usize;
        let Some(mtu) = keys[row].mtu.filter(|mtu| mtu.get() < packet) else { continue };
        let mss = mtu.get().saturating_sub(u64::from(params.header + options));
        return Some(Unsupported {
            key,
            reason: format!(
                "a full segment has {packet} B, and link.{}.mtu is {mtu}; there is no path-MTU \
                 discovery: write mss = \"{mss} B\" in the stack",
                directions.rows()[row].0
            ),
        });
    }
    None
}
