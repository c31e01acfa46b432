//! Links that swallow large packets only.

use super::world::{CENTRE, Delay, OTHER, PREFERRED, TERMINAL, World};
use crate::router::{Event, Failure, LinkState};

const FAILED: LinkState = LinkState::Failed(Failure::LargePackets);

#[test]
fn a_link_that_swallows_large_packets_is_left_within_3_s_and_used_again_when_they_arrive() {
    for (seed, round_trip) in [0.002, 0.02, 0.1, 0.5].into_iter().enumerate() {
        let mut world =
            World::with_large_probes(Delay::Constant(round_trip / 2.0), 0.05, seed as u64);
        let death = 60.0 + 0.13 * seed as f64;
        world.paths[TERMINAL][PREFERRED].dead_for_large.push((death, death + 60.0));
        world.run(death + 60.0);
        let switches = world.switches(TERMINAL, 0.0);
        assert!(switches.len() == 1 && switches[0].1 == OTHER, "{switches:?}");
        let time = switches[0].0 - death;
        assert!((0.0..3.0).contains(&time), "{time} s at {round_trip} s");
        assert_eq!(world.machines[TERMINAL].state(PREFERRED), FAILED);
        world.run(death + 70.0);
        let switches = world.switches(TERMINAL, death + 60.0);
        assert!(switches.len() == 1 && switches[0].1 == PREFERRED, "{switches:?}");
        assert_eq!(world.switches(CENTRE, 0.0), [], "the other direction works");
    }
}

#[test]
fn a_link_that_returns_for_small_packets_only_is_not_used() {
    let mut world = World::with_large_probes(Delay::Constant(0.01), 0.0, 1);
    world.kill(TERMINAL, PREFERRED, 20.0, 30.0);
    world.paths[TERMINAL][PREFERRED].dead_for_large.push((20.0, f64::MAX));
    world.run(100.0);
    let switches = world.switches(TERMINAL, 0.0);
    assert!(switches.len() == 1 && switches[0].1 == OTHER, "{switches:?}");
    assert_eq!(world.machines[TERMINAL].state(PREFERRED), FAILED);
}

#[test]
fn a_link_whose_large_packets_never_arrive_is_left() {
    let mut world = World::with_large_probes(Delay::Constant(0.01), 0.0, 1);
    world.paths[TERMINAL][PREFERRED].dead_for_large.push((0.0, f64::MAX));
    world.run(5.0);
    assert_eq!(world.machines[TERMINAL].state(PREFERRED), FAILED);
    assert_eq!(world.machines[TERMINAL].selected(0), OTHER);
}

#[test]
fn the_order_of_links_decides_if_large_packets_arrive_over_none() {
    let mut world = World::with_large_probes(Delay::Constant(0.01), 0.0, 1);
    for link in [PREFERRED, OTHER] {
        world.paths[TERMINAL][link].dead_for_large.push((20.0, f64::MAX));
    }
    world.run(60.0);
    assert_eq!(world.machines[TERMINAL].selected(0), PREFERRED);
    world.kill(TERMINAL, PREFERRED, 60.0, f64::MAX);
    world.run(65.0);
    assert_eq!(world.machines[TERMINAL].selected(0), OTHER, "small packets arrive over it");
}

#[test]
fn no_link_fails_because_of_large_probes_with_5_per_cent_loss() {
    for (seed, delay) in [Delay::Constant(0.25), Delay::Uniform(0.05, 1.5)].into_iter().enumerate()
    {
        let mut world = World::with_large_probes(delay, 0.05, seed as u64);
        world.run(3_600.0);
        let is_failure =
            |event: Event| matches!(event, Event::State { state: LinkState::Failed(_), .. });
        let failures: Vec<_> = world.log.iter().filter(|entry| is_failure(entry.event)).collect();
        assert!(failures.is_empty(), "{delay:?}: {failures:?}");
    }
}
