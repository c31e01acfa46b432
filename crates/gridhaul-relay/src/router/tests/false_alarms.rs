//! Links that work are not reported as failed.

use super::world::{Delay, World};

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

fn no_link_fails(hours: f64) {
    for (seed, delay) in DELAYS.into_iter().enumerate() {
        let mut world = World::new(delay, 0.05, seed as u64);
        world.run(hours * 3_600.0);
        assert_eq!(world.log, [], "{delay:?}");
    }
}

#[test]
fn no_link_fails_with_5_per_cent_loss_and_round_trips_up_to_3_s() {
    no_link_fails(HOURS);
}

#[test]
#[ignore = "24 hours of virtual time for each link: about two minutes"]
fn no_link_fails_in_24_hours() {
    no_link_fails(HOURS_LONG);
}
