//! Links that work are not reported as failed.

use super::world::{Delay, Logged, World};
use crate::router::{Event, LinkState, Machine};

/// Hours of each link in the short test, and in the long one.
const HOURS: f64 = 0.5;
const HOURS_LONG: f64 = 24.0;

/// Delays in one direction: half of the round-trip time.
const DELAYS: [Delay; 9] = [
    Delay::Constant(0.05),
    Delay::Constant(0.25),
    Delay::Constant(0.5),
    Delay::Constant(1.0),
    Delay::Constant(1.5),
    Delay::Uniform(0.05, 0.25),
    Delay::Uniform(0.05, 1.5),
    Delay::Queue { least: 0.05, largest: 1.5, slope: 0.1 },
    Delay::Queue { least: 0.05, largest: 1.5, slope: 0.5 },
];

/// Runs two links with each delay, in which no link may fail. Returns how often a link was
/// suspected, in all four directions of all delays.
fn suspicions(hours: f64) -> u64 {
    let mut all = 0;
    for (seed, delay) in DELAYS.into_iter().enumerate() {
        let mut world = World::new(delay, 0.05, seed as u64);
        world.run(hours * 3_600.0);
        let is_failure = |entry: &&Logged| {
            matches!(entry.event, Event::State { state: LinkState::Failed(_), .. })
        };
        let failures: Vec<_> = world.log.iter().filter(is_failure).collect();
        assert!(failures.is_empty(), "{delay:?}: {failures:?}");
        let counters = world.machines.each_ref().map(Machine::counters);
        let suspicions: u64 = counters.iter().map(|counters| counters.suspicions).sum();
        let refuted: u64 = counters.iter().map(|counters| counters.refuted_suspicions).sum();
        println!("{delay:?}: {suspicions} suspicions");
        assert_eq!(suspicions, refuted, "{delay:?}");
        all += suspicions;
    }
    all
}

#[test]
fn no_link_fails_with_5_per_cent_loss_and_round_trips_up_to_3_s() {
    assert_eq!(suspicions(HOURS), 0);
}

#[test]
#[ignore = "24 hours of virtual time for each link: about three minutes"]
fn no_link_fails_in_24_hours_and_hardly_any_is_suspected() {
    assert!(suspicions(HOURS_LONG) <= 3, "in 36 directions");
}
