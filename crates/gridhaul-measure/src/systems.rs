//! Networks of the laboratory and of the field as scenarios: the test systems of RESERVE D4.6, and
//! others of power grids. Each file gives the source of every value, or states that the value is an
//! assumption.

use gridhaul_scenario::scenario::{Scenario, ScenarioError};

/// Names and scenario files. The flow `test` passes from the field to the centre over the link
/// `access`.
const SYSTEMS: [(&str, &str); 7] = [
    ("ethernet", include_str!("../../../scenarios/systems/ethernet.toml")),
    ("5g-ready", include_str!("../../../scenarios/systems/5g-ready.toml")),
    ("5g-prototype", include_str!("../../../scenarios/systems/5g-prototype.toml")),
    ("private-lte", include_str!("../../../scenarios/systems/private-lte.toml")),
    ("gprs", include_str!("../../../scenarios/systems/gprs.toml")),
    ("plc-narrowband", include_str!("../../../scenarios/systems/plc-narrowband.toml")),
    ("plc-broadband", include_str!("../../../scenarios/systems/plc-broadband.toml")),
];

/// The flow between whose ends messages pass.
pub const FLOW: &str = "test";

/// The names of all systems.
pub fn names() -> impl Iterator<Item = &'static str> {
    SYSTEMS.iter().map(|(name, _)| *name)
}

/// The scenario of a system; `None` if there is none of this name.
#[must_use]
pub fn scenario(name: &str) -> Option<Result<Scenario, ScenarioError>> {
    let (name, text) = SYSTEMS.iter().find(|(known, _)| *known == name)?;
    Some(Scenario::from_toml(text, &format!("scenarios/systems/{name}.toml")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_system_is_a_valid_scenario_with_its_sources() {
        for (name, text) in SYSTEMS {
            let scenario = scenario(name).unwrap().unwrap();
            assert!(scenario.flow.contains_key(FLOW), "{name}");
            let link = &scenario.link["access"];
            assert!(link.forward().is_some() && link.reverse().is_some(), "{name}");
            let comment: String = text.lines().take_while(|line| line.starts_with('#')).collect();
            assert!(comment.contains("(paper `"), "{name}: the source");
            for value in ["delay", "rate", "loss"] {
                assert!(comment.contains(value), "{name}: the source of `{value}`");
            }
        }
        assert!(scenario("ethernets").is_none());
    }

    #[test]
    fn the_systems_of_the_report_are_ordered_as_in_its_conclusion() {
        let delay = |name: &str| {
            let scenario = scenario(name).unwrap().unwrap();
            let uplink = scenario.link["access"].forward().unwrap();
            uplink.delay + uplink.jitter.map_or_else(Default::default, |jitter| jitter.size)
        };
        assert!(delay("ethernet") < delay("5g-prototype"));
        assert!(delay("5g-prototype") < delay("5g-ready"));
    }
}
