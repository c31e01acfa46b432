//! Connections of `split` that continue in the next version of the program.

use gridhaul_scenario::units::{Duration, Instant};

use super::drain::drain;
use super::host::Plan;
use super::world::{World, rule, settings};
use crate::packet::{BridgePort, EndCause, EngineSettings};
use crate::protocol::DecodeError;

const LIMIT: Duration = Duration::from_secs(300);

fn split() -> EngineSettings {
    settings(&rule("split"))
}

/// Replaces the bridge as an upgrade does, and returns the number of connections that continue.
fn upgrade(world: &mut World) -> usize {
    drain(world);
    let state = world.engine.hand_over();
    world.engine.stop(world.now);
    world.send_of_bridge();
    assert!(world.engine.is_drained());
    world.restart(EngineSettings { mtus: world.engine.settings().mtus, ..split() });
    state.map_or(0, |state| world.engine.adopt(world.now, &state).unwrap())
}

#[test]
fn bulk_transfers_continue_with_translated_sequence_numbers() {
    for seed in 0..20 {
        let mut world = World::new(split()).with_seed(seed);
        for (client, is_v6) in [(BridgePort::First, false), (BridgePort::Second, true)] {
            let plans = [Plan::new(true, 3_000_000), Plan::new(false, 1_000_000)];
            world.connect(client, is_v6, plans);
        }
        world.faults.loss = 5;
        world.run(Instant::ZERO + Duration::from_millis(300));
        assert!(world.engine.totals().at_risk > 0);
        let begun = world.now;
        assert_eq!(upgrade(&mut world), 2, "{seed}");
        assert!(world.now < begun + Duration::from_secs(5), "{:?}", world.now);
        assert_eq!(world.engine.totals().connections, 2);
        assert_eq!(world.engine.take_newly_at_risk().len(), 0, "protected by the previous version");
        world.run(world.now + Duration::from_millis(50));
        assert_eq!(world.engine.take_newly_at_risk().len(), 2, "the hosts need the translation");
        // Further versions continue the same connections.
        assert_eq!(upgrade(&mut world), 2, "{seed}");
        world.run_to_end(LIMIT);
        world.assert_complete();
        world.run(world.now + Duration::from_secs(200));
        assert!(world.hosts.iter().all(|host| !host.was_reset));
        assert_eq!(world.engine.counters().ended(EndCause::Closed), 2);
        assert_eq!(world.engine.take_no_longer_at_risk().len(), 2);
    }
}

/// At any time: while data flows in both directions, between FIN of both hosts, with slow readers,
/// and with faults on the links.
#[test]
fn connections_of_any_state_survive_upgrades() {
    for seed in 0..100_u64 {
        let mut world = World::new(split()).with_seed(seed);
        for number in 0..4 {
            let bytes = [0, 3_000, 60_000, 400_000];
            let (first, second) = (bytes[(seed % 4) as usize], bytes[(seed / 4 % 4) as usize]);
            let client = Plan { closes_after_peer: number == 1, ..Plan::new(true, first) };
            let server = Plan { closes_after_peer: number == 2, ..Plan::new(false, second) };
            let client = Plan { closes: number != 1, ..client };
            let server = Plan { closes: number != 2, ..server };
            let slow = (number == 3).then_some((20_000, Duration::from_millis(40)));
            let port = BridgePort::BOTH[number % 2];
            world.connect(port, number > 1, [client, Plan { reads: slow, ..server }]);
        }
        for _ in 0..3 {
            world.run(world.now + Duration::from_millis(50 + seed * 7));
            (world.faults.loss, world.faults.duplication, world.faults.reordering) = (10, 10, 20);
            upgrade(&mut world);
        }
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn connections_that_are_being_opened_survive_an_upgrade() {
    for ms in 0..50 {
        let mut world = World::new(split());
        world.connect(BridgePort::First, false, [Plan::new(true, 30_000), Plan::new(false, 500)]);
        world.run(Instant::ZERO + Duration::from_millis(ms));
        upgrade(&mut world);
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn segments_are_divided_for_a_host_with_a_smaller_mtu() {
    for (mtu, window) in [(576, 200_000), (296, 60_000)] {
        let mut world = World::new(EngineSettings { mtus: [9_000; 2], ..split() });
        // Each host has stated its MSS to the proxy, and knows only that of the proxy.
        let plan = |opens, mtu, has_window_scale| Plan {
            mtu,
            peer_mtu: 9_000,
            window,
            has_window_scale,
            ..Plan::new(opens, 600_000)
        };
        let has_window_scale = window > 65_535;
        let plans = [plan(true, 9_000, true), plan(false, mtu, has_window_scale)];
        world.connect(BridgePort::First, false, plans);
        world.run(Instant::ZERO + Duration::from_millis(60));
        assert_eq!(upgrade(&mut world), 1);
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn the_hosts_are_reset_when_the_translation_ends() {
    let mut world = World::new(split());
    let plan = |opens| Plan { closes: false, ..Plan::new(opens, 5_000) };
    world.connect(BridgePort::First, false, [plan(true), plan(false)]);
    world.run(Instant::ZERO + Duration::from_secs(1));
    assert_eq!(upgrade(&mut world), 1);
    for host in &mut world.hosts {
        host.connection.write(100);
    }
    world.run(world.now + Duration::from_secs(1));
    world.engine.stop(world.now);
    world.send_of_bridge();
    world.run(world.now + Duration::from_secs(1));
    assert!(world.hosts.iter().all(|host| host.was_reset));
}

/// Acknowledged data has not arrived: without the proxy, it would be lost.
#[test]
fn a_connection_with_bytes_at_risk_is_not_handed_over() {
    let mut world = World::new(split());
    let server = Plan { reads: Some((0, Duration::from_secs(1))), ..Plan::new(false, 0) };
    world.connect(BridgePort::First, false, [Plan::new(true, 3_000_000), server]);
    world.run(Instant::ZERO + Duration::from_secs(2));
    drain(&mut world);
    assert!(world.engine.totals().at_risk > 0);
    assert!(!world.engine.is_drained());
    assert_eq!(world.engine.hand_over(), None);
    world.engine.stop(world.now);
    world.send_of_bridge();
    world.run(world.now + Duration::from_secs(1));
    assert!(world.hosts[0].was_reset);
}

#[test]
fn the_state_of_another_version_is_refused() {
    let mut world = World::new(split());
    world.connect(BridgePort::First, false, [Plan::new(true, 500_000), Plan::new(false, 0)]);
    world.run(Instant::ZERO + Duration::from_millis(60));
    drain(&mut world);
    let mut state = world.engine.hand_over().unwrap();
    world.restart(split());
    let truncated = world.engine.adopt(world.now, &state[..state.len() - 1]);
    assert_eq!(truncated, Err(DecodeError::Truncated("state of connections")));
    state[0] = 2;
    assert!(matches!(world.engine.adopt(world.now, &state), Err(DecodeError::Undefined(_))));
    assert_eq!(world.engine.totals().connections, 0);
}
