//! Any text: reading it never panics, and whatever reads as a scenario writes and reads back
//! equal and has points.

#![no_main]

use gridhaul_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

/// Points that are made from one input: enough to try every kind, few enough to be quick.
const POINTS: usize = 64;

fuzz_target!(|text: &str| {
    match Scenario::from_toml(text, "fuzz.toml") {
        Ok(scenario) => check(&scenario),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn check(scenario: &Scenario) {
    scenario.validate().expect("what was read is valid");
    let merged = scenario.to_toml();
    let again = Scenario::from_toml(&merged, "merged.toml");
    let again = again.unwrap_or_else(|error| panic!("{error}\nin the merged scenario\n{merged}"));
    assert_eq!(*scenario, again, "\n{merged}");
    assert_eq!(scenario.sha256(), again.sha256());
    for flow in scenario.flow.keys() {
        scenario.routes(flow).expect("what was read has routes");
    }
    let count = scenario.point_count().expect("the sweep was read");
    if count <= POINTS
        && let Ok(points) = scenario.points()
    {
        assert_eq!(points.len(), count);
    }
}
