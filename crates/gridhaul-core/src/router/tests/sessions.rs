//! Restarts of a router, and probes of others.

use gridhaul_scenario::units::{Duration, Instant};

use super::world::{CENTRE, Delay, OTHER, PREFERRED, TERMINAL, World, settings};
use crate::router::{Event, Failure, LinkState, Machine, Probe, link_number};

#[test]
fn a_router_that_starts_again_is_known_again() {
    let mut world = World::new(Delay::Constant(0.1), 0.02, 1);
    world.run(100.0);
    let now = Instant::from_secs_f64(100.0);
    world.machines[CENTRE] = Machine::new(now, settings(33, None));
    world.run(200.0);
    assert_eq!(world.log, [], "no link fails for it");
    let refused = world.machines[TERMINAL].counters().refused_probes;
    assert!(refused > 0 && refused < 10, "before the terminal is known: {refused}");
    world.kill(TERMINAL, PREFERRED, 200.0, f64::MAX);
    world.kill(CENTRE, PREFERRED, 200.0, f64::MAX);
    world.run(210.0);
    for router in [TERMINAL, CENTRE] {
        assert_eq!(world.switches(router, 200.0).len(), 1, "reports are used again");
    }
}

/// A probe of a session that neither router has.
fn foreign_probe() -> Probe {
    Probe {
        session: 99,
        peer_session: 98,
        link: link_number("preferred"),
        interval: Duration::from_millis(200),
        number: 1,
        reports: Vec::new(),
        padded_to: None,
    }
}

/// Probes of former runs are still on their way when both routers start, as after a power failure.
#[test]
fn routers_that_have_received_late_probes_of_former_runs_find_each_other() {
    let mut world = World::new(Delay::Constant(0.1), 0.0, 1);
    for machine in &mut world.machines {
        machine.handle_probe(Instant::ZERO, PREFERRED, &foreign_probe());
    }
    world.run(15.0);
    let now = Instant::from_secs_f64(15.0);
    for machine in &world.machines {
        assert!(machine.peer_is_known(now), "{:?}", machine.counters());
    }
}

#[test]
fn probes_of_others_have_no_effect() {
    let mut world = World::new(Delay::Constant(0.1), 0.0, 1);
    world.run(10.0);
    let now = Instant::from_secs_f64(10.0);
    let probe = foreign_probe();
    let machine = &mut world.machines[TERMINAL];
    machine.handle_probe(now, PREFERRED, &probe);
    // The peer's own probe over another link, as after a mistake in the configuration.
    let other = Probe { session: 22, peer_session: 11, link: link_number("other"), ..probe };
    machine.handle_probe(now, PREFERRED, &other);
    assert_eq!(machine.counters().refused_probes, 2);
    assert!(machine.peer_is_known(now));
    world.run(100.0);
    assert_eq!(world.log, []);
    assert_eq!(world.machines[TERMINAL].counters().refused_probes, 2);
}

#[test]
fn a_link_that_the_peer_does_not_have_is_left_until_the_peer_has_it() {
    let mut world = World::new(Delay::Constant(0.1), 0.0, 1);
    let mut renamed = settings(22, None);
    renamed.links[PREFERRED].name = "preffered".to_owned();
    world.machines[CENTRE] = Machine::new(Instant::ZERO, renamed);
    world.run(20.0);
    let state = LinkState::Failed(Failure::UnknownToPeer);
    for router in [TERMINAL, CENTRE] {
        assert_eq!(world.machines[router].state(PREFERRED), state);
        assert_eq!(world.machines[router].selected(0), OTHER);
        let events = world.log.iter().filter(|entry| entry.router == router);
        let named = events.filter(|entry| entry.event == Event::State { link: PREFERRED, state });
        assert_eq!(named.count(), 1, "the reports of each probe repeat it");
    }
    world.machines[CENTRE] = Machine::new(Instant::from_secs_f64(20.0), settings(33, None));
    world.run(60.0);
    assert_eq!(world.machines[TERMINAL].state(PREFERRED), LinkState::Usable);
    assert_eq!(world.machines[TERMINAL].selected(0), PREFERRED);
}
