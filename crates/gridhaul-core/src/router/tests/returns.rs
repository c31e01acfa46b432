//! Returns to a link that works again, and damping of a link that fails again and again.

use super::world::{CENTRE, Delay, OTHER, PREFERRED, TERMINAL, World};
use crate::router::LinkState;

#[test]
fn the_preferred_link_is_used_again_within_10_s() {
    for (seed, round_trip) in [0.02, 0.1, 0.5, 1.0].into_iter().enumerate() {
        let mut world = World::new(Delay::Constant(round_trip / 2.0), 0.05, seed as u64);
        world.kill(TERMINAL, PREFERRED, 20.0, 50.0);
        world.run(100.0);
        let switches = world.switches(TERMINAL, 0.0);
        assert_eq!(switches.len(), 2, "{switches:?}");
        let (time, link) = switches[1];
        assert!(link == PREFERRED && (56.0..60.0).contains(&time), "{switches:?}");
    }
}

#[test]
fn a_link_with_many_losses_is_not_used_again() {
    let mut world = World::new(Delay::Constant(0.05), 0.0, 1);
    world.kill(TERMINAL, PREFERRED, 20.0, 50.0);
    world.run(50.0);
    world.paths[TERMINAL][PREFERRED].loss = 0.4;
    world.run(200.0);
    assert_eq!(world.switches(TERMINAL, 50.0), []);
}

#[test]
fn links_that_are_held_back_are_left_early_and_their_order_causes_no_switch() {
    let mut world = World::new(Delay::Constant(0.005), 0.0, 1);
    world.kill(TERMINAL, PREFERRED, 20.0, 23.0);
    world.kill(TERMINAL, OTHER, 24.0, 26.0);
    world.kill(TERMINAL, PREFERRED, 27.0, 28.0);
    world.run(29.0);
    let switches = world.switches(TERMINAL, 0.0);
    let links: Vec<_> = switches.iter().map(|switch| switch.1).collect();
    assert_eq!(links, [OTHER, PREFERRED, OTHER], "{switches:?}");
    for (switch, death) in switches.iter().zip([20.0, 24.0, 27.0]) {
        assert!((0.0..0.6).contains(&(switch.0 - death)), "{switches:?}");
    }
}

#[test]
fn a_link_is_left_early_although_both_were_held_back_for_longer_than_the_hold_time() {
    let mut world = World::new(Delay::Constant(0.0005), 0.0, 1);
    let mut kill = |link, from, to| {
        for router in [TERMINAL, CENTRE] {
            world.kill(router, link, from, to);
        }
    };
    // The second failure of each link follows soon after its return, which damping then delays.
    kill(PREFERRED, 20.0, 23.0);
    kill(PREFERRED, 31.0, 34.0);
    kill(OTHER, 36.0, 39.0);
    kill(OTHER, 46.0, 49.0);
    kill(PREFERRED, 60.0, 63.0);
    kill(OTHER, 75.0, 78.0);
    for (death, left, other) in [(60.0, PREFERRED, OTHER), (75.0, OTHER, PREFERRED)] {
        world.run(death);
        for router in [TERMINAL, CENTRE] {
            let machine = &world.machines[router];
            for link in [PREFERRED, OTHER] {
                assert!(matches!(machine.state(link), LinkState::Holding(_)), "{router} {link}");
            }
            assert_eq!(machine.selected(0), left);
        }
        world.run(death + 0.7);
        for router in [TERMINAL, CENTRE] {
            assert_eq!(world.machines[router].state(left), LinkState::Suspected);
            let switches = world.switches(router, death);
            assert!(switches.len() == 1 && switches[0].1 == other, "{switches:?}");
            assert!(switches[0].0 < death + 0.6, "{switches:?}");
        }
    }
}

/// Switches in an hour in which the preferred link is alive and dead for these times in turn.
fn flapping(alive: f64, dead: f64) -> Vec<(f64, usize)> {
    let mut world = World::new(Delay::Constant(0.05), 0.01, 1);
    let mut time = 20.0;
    while time < 3_620.0 {
        world.kill(TERMINAL, PREFERRED, time, time + dead);
        time += dead + alive;
    }
    world.run(3_620.0);
    world.switches(TERMINAL, 0.0)
}

#[test]
fn a_link_that_fails_each_5_s_is_left_once() {
    assert_eq!(flapping(5.0, 5.0).len(), 1);
}

#[test]
fn a_flapping_link_causes_at_most_one_switch_a_minute() {
    for (alive, dead) in
        [(2.0, 2.0), (5.0, 0.7), (8.0, 4.0), (10.0, 10.0), (30.0, 3.0), (67.0, 3.0), (67.0, 0.7)]
    {
        let switches = flapping(alive, dead);
        let per_minute = switches.len() as f64 / 60.0;
        println!("{alive} s alive, {dead} s dead: {} switches in an hour", switches.len());
        assert!(per_minute <= 1.0, "{alive} {dead}: {switches:?}");
        // Each return is followed by a failure, so that every other switch leaves the link.
        assert!(switches.iter().step_by(2).all(|switch| switch.1 == OTHER));
        let returns: Vec<_> = switches.iter().skip(1).step_by(2).map(|switch| switch.0).collect();
        let spacing = returns.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(spacing.clone().all(|time| time >= 120.0), "{returns:?}");
    }
}
