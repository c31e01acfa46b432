//! Restarts of a relay without a lease on the packets of a kernel's bridge: the next relay finds
//! open connections whose state is lost.

use gridhaul_scenario::units::{Duration, Instant};

use super::cases::MODES;
use super::host::Plan;
use super::world::{World, rule, settings};
use crate::packet::BridgePort;

const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn hosts_are_reset_if_the_earlier_relay_has_lost_acknowledged_bytes() {
    for mode in ["reflect", "spoof"] {
        let rule = format!("{}buffer = \"256 KiB\"\n", rule(mode));
        let mut world = World::new(settings(&rule));
        world.connect(BridgePort::First, false, [Plan::new(true, 900_000), Plan::new(false, 0)]);
        world.run(Instant::ZERO + Duration::from_millis(40));
        // The second link loses data that the proxy has acknowledged. A sender whose window was
        // closed would only probe, which proves nothing.
        world.link_mtus[1] = 100;
        let before = world.engine.totals().at_risk;
        while world.engine.totals().at_risk < before + 5_000 {
            world.run(world.now + Duration::from_millis(1));
        }
        let at_risk = world.engine.totals().at_risk;
        assert!(at_risk < 150_000, "{mode}: {at_risk}");
        world.link_mtus[1] = 100_000;
        world.restart(settings(&rule));
        world.run_to_end(LIMIT);
        assert!(world.hosts.iter().all(|host| host.was_reset), "{mode}");
        let lost = world.engine.totals().lost;
        assert!((1..=at_risk).contains(&lost), "{mode}: {lost} of {at_risk} bytes");
    }
}

#[test]
fn hosts_whose_connection_was_split_are_reset() {
    for seed in 0..20 {
        let mut world = World::new(settings(&rule("split"))).with_seed(seed);
        world.connect(BridgePort::First, false, [Plan::new(true, 900_000), Plan::new(false, 0)]);
        world.run(Instant::ZERO + Duration::from_millis(60));
        world.restart(settings(&rule("split")));
        world.run_to_end(LIMIT);
        assert!(world.hosts.iter().all(|host| host.was_reset), "{seed}");
        assert!(world.now < Instant::ZERO + Duration::from_secs(10), "{:?}", world.now);
    }
}

#[test]
fn connections_that_have_lost_nothing_continue_after_a_restart() {
    for mode in MODES.into_iter().filter(|mode| *mode != "split") {
        let mut world = World::new(settings(&rule(mode)));
        let plan = |opens| Plan { closes: false, ..Plan::new(opens, 40_000) };
        world.connect(BridgePort::Second, false, [plan(true), plan(false)]);
        world.run(Instant::ZERO + Duration::from_secs(5));
        world.restart(settings(&rule(mode)));
        world.faults.loss = 30;
        for host in &mut world.hosts {
            host.plan.sends += 200_000;
            host.connection.write(200_000);
            host.connection.close();
        }
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn the_next_connection_of_the_same_hosts_has_a_proxy() {
    let mut world = World::new(settings(&rule("reflect")));
    let plan = |opens| Plan { closes: false, ..Plan::new(opens, 10_000) };
    world.connect(BridgePort::First, false, [plan(true), plan(false)]);
    world.run(Instant::ZERO + Duration::from_secs(5));
    world.restart(settings(&rule("reflect")));
    for host in &mut world.hosts {
        host.plan.sends += 10_000;
        host.connection.write(10_000);
    }
    world.run(Instant::ZERO + Duration::from_secs(10));
    assert_eq!(world.engine.totals().connections, 1, "observed");
    // The hosts forget the connection; the next one has the same addresses and ports.
    world.hosts.clear();
    world.connect(BridgePort::First, false, [Plan::new(true, 10_000), Plan::new(false, 10_000)]);
    world.run_to_end(LIMIT);
    world.assert_complete();
    let opened: u64 = world.engine.counters().opened().map(|(_, count)| count).sum();
    assert_eq!(opened, 1);
}
