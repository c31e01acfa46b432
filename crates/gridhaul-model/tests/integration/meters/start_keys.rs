//! Keys that set the start of connections, which a steady state does not include.

use gridhaul_model::Model;
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

use super::case::FIGURE_10;

/// The keys that the warnings of an answer name.
fn subjects(backend: &dyn Backend, scenario: &Scenario) -> Vec<String> {
    let answer = backend.run(scenario, &NoProgress).unwrap_or_else(|error| panic!("{error}"));
    answer.warnings.into_iter().map(|warning| warning.about).collect()
}

#[test]
fn keys_of_the_start_of_connections_have_no_effect_and_cause_a_warning() {
    let [without, _] = FIGURE_10.both(5);
    let without = without.scenario();
    let mut with = without.clone();
    let flow = &mut with.flow["reading"];
    flow.start_spread = Some("10 s".parse().unwrap());
    flow.start = "1 s".parse().unwrap();
    let aggregator = with.node["aggregator"].aggregator.as_mut().unwrap();
    aggregator.start_spread = Some("2 s".parse().unwrap());
    let keys = [
        "flow.reading.start",
        "flow.reading.start_spread",
        "node.aggregator.aggregator.start_spread",
    ];
    for backend in [&Model::REFINED as &dyn Backend, &Model::PAPER] {
        let named = subjects(backend, &with);
        assert!(keys.iter().all(|key| named.iter().any(|named| named == key)), "{named:?}");
        let named = subjects(backend, &without);
        assert!(!keys.iter().any(|key| named.iter().any(|named| named == key)), "{named:?}");
        let points = |scenario| backend.run(scenario, &NoProgress).unwrap().points;
        assert_eq!(points(&with), points(&without));
    }
}
