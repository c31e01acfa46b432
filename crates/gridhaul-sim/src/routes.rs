//! Routes: named in the scenario, or those with the fewest links.

use std::collections::VecDeque;

use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;

/// One link of a route and the direction in which it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Index of the link in the scenario.
    pub link: usize,
    /// From `from` to `to`, or back.
    pub forward: bool,
}

/// The steps from one node to another: along `named` links, or the fewest.
pub(crate) fn route(
    scenario: &Scenario,
    from: &str,
    to: &str,
    named: Option<&[String]>,
) -> Result<Vec<Step>, RunError> {
    match named {
        Some(names) => along(scenario, from, to, names),
        None => fewest(scenario, from, to),
    }
}

fn along(
    scenario: &Scenario,
    from: &str,
    to: &str,
    names: &[String],
) -> Result<Vec<Step>, RunError> {
    let mut at = from;
    let mut steps = Vec::with_capacity(names.len());
    for name in names {
        let next = scenario.link.get_full(name.as_str()).and_then(|(index, _, link)| {
            if link.from == at && link.forward().is_some() {
                Some((Step { link: index, forward: true }, link.to.as_str()))
            } else if link.to == at && link.backward().is_some() {
                Some((Step { link: index, forward: false }, link.from.as_str()))
            } else {
                None
            }
        });
        let Some((step, node)) = next else {
            return Err(RunError::Invalid(format!("link {name:?} cannot be taken from {at:?}")));
        };
        steps.push(step);
        at = node;
    }
    if at == to {
        Ok(steps)
    } else {
        Err(RunError::Invalid(format!("the route ends at {at:?}, not at {to:?}")))
    }
}

/// Breadth first; of equally short routes the one whose links stand first in the scenario.
fn fewest(scenario: &Scenario, from: &str, to: &str) -> Result<Vec<Step>, RunError> {
    let node = |name: &str| scenario.node.get_index_of(name);
    let (Some(start), Some(goal)) = (node(from), node(to)) else {
        return Err(RunError::Invalid(format!("no node {from:?} or {to:?}")));
    };
    let mut came_by: Vec<Option<(usize, Step)>> = vec![None; scenario.node.len()];
    let mut waiting = VecDeque::from([start]);
    while let Some(at) = waiting.pop_front() {
        if at == goal {
            break;
        }
        for (index, link) in scenario.link.values().enumerate() {
            let ends = (node(&link.from), node(&link.to));
            let (Some(a), Some(b)) = ends else { continue };
            let ways = [(a, b, true, link.forward()), (b, a, false, link.backward())];
            for (near, far, forward, direction) in ways {
                let new = far != start && came_by[far].is_none();
                if near == at && new && direction.is_some() {
                    came_by[far] = Some((at, Step { link: index, forward }));
                    waiting.push_back(far);
                }
            }
        }
    }
    let mut steps = Vec::new();
    let mut at = goal;
    while at != start {
        let Some((before, step)) = came_by[at] else {
            return Err(RunError::Invalid(format!("no route from {from:?} to {to:?}")));
        };
        steps.push(step);
        at = before;
    }
    steps.reverse();
    Ok(steps)
}
