//! Keys of hybrid routers that this backend does not support.

use gridhaul_core::router::link_number;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Hop, HybridRouter, Scenario};

/// The keys of hybrid routers and of their links that this backend cannot simulate, with reasons.
pub(crate) fn unsupported_routers(scenario: &Scenario) -> Vec<Unsupported> {
    let mut found = Vec::new();
    for (name, router) in scenario.hybrid_routers() {
        for (class, keys) in &router.class {
            if keys.acknowledgements {
                found.push(Unsupported {
                    key: format!("node.{name}.router.class.{class}.acknowledgements"),
                    reason: "the simulator selects links by flow and direction; use backend \
                             `emu`, or other conditions"
                        .to_owned(),
                });
            }
        }
        for (index, link) in router.links.iter().enumerate() {
            found.extend(unsupported_link(scenario, (name, router), index, link));
        }
    }
    found
}

fn unsupported_link(
    scenario: &Scenario,
    (name, router): (&str, &HybridRouter),
    index: usize,
    link_name: &str,
) -> Option<Unsupported> {
    let unsupported = |key: String, reason: String| Some(Unsupported { key, reason });
    let earlier = &router.links[..index];
    if let Some(other) = earlier.iter().find(|other| link_number(other) == link_number(link_name)) {
        return unsupported(
            format!("node.{name}.router.links[{index}]"),
            format!("probes cannot distinguish this name from {other:?}; rename the link"),
        );
    }
    let link = scenario.link.get(link_name)?;
    if link.forward().is_none() || link.reverse().is_none() {
        return unsupported(
            format!("node.{name}.router.links[{index}]"),
            format!(
                "link `{link_name}` is one-way, and the simulator's hybrid routers need both \
                 directions; use backend `emu`, or add the other direction"
            ),
        );
    }
    let suffix = if link.from == name { "forward" } else { "reverse" };
    let direction =
        Hop { link: scenario.link.get_index_of(link_name)?, forward: link.from == name }
            .direction(scenario);
    if direction.active_shaper().is_some() {
        return unsupported(
            format!("link.{link_name}.{suffix}.shaper"),
            "the shapers of the simulator have no share for the probes of a hybrid router; use \
             backend `emu`, or set `on = false` for the shaper"
                .to_owned(),
        );
    }
    let limits = [("mtu", direction.mtu.is_some()), ("mss_clamp", direction.mss_clamp.is_some())];
    let (key, _) = limits.into_iter().find(|(_, is_set)| *is_set)?;
    unsupported(
        format!("link.{link_name}.{suffix}.{key}"),
        format!(
            "the simulator's hybrid routers have links without a limit of the packet size; use \
             backend `emu`, or remove `{key}`"
        ),
    )
}
