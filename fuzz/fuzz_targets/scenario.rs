//! Arbitrary text: parsing never panics, and a valid scenario is written and parsed again to an
//! equal scenario, and has points.

#![no_main]

use gridhaul_scenario::Scenario;
use libfuzzer_sys::fuzz_target;

/// Maximum number of sweep points per input, which limits the time.
const POINTS: usize = 64;

fuzz_target!(|text: &str| {
    match Scenario::from_toml(text, "fuzz.toml") {
        Ok(scenario) => check(&scenario),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn check(scenario: &Scenario) {
    scenario.validate().expect("a parsed scenario is valid");
    let merged = scenario.to_toml();
    let again = Scenario::from_toml(&merged, "merged.toml");
    let again = again.unwrap_or_else(|error| panic!("{error}\nin the merged scenario\n{merged}"));
    assert_eq!(*scenario, again, "\n{merged}");
    assert_eq!(scenario.sha256(), again.sha256());
    for flow in scenario.flow.keys() {
        scenario.routes(flow).expect("a valid scenario has routes");
    }
    let count = scenario.point_count().expect("a valid scenario has a sweep");
    if count <= POINTS
        && let Ok(points) = scenario.points()
    {
        assert_eq!(points.len(), count);
    }
}
