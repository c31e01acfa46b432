//! Connections of simulated hosts through each mode.

use gridhaul_scenario::units::{Duration, Instant};

use super::host::Plan;
use super::world::{World, rule, settings};
use crate::packet::{BridgePort, EndCause, UntouchedCause};

pub(super) const MODES: [&str; 5] = ["reflect", "spoof", "snoop", "ack", "split"];

/// Modes that acknowledge data in place of the receiver.
const ACKNOWLEDGING: [&str; 3] = ["reflect", "spoof", "split"];

const LIMIT: Duration = Duration::from_secs(300);

#[test]
fn connections_opened_from_either_side_are_served_over_ipv4_and_ipv6() {
    for mode in MODES {
        for (client, is_v6) in [BridgePort::First, BridgePort::Second]
            .into_iter()
            .flat_map(|port| [(port, false), (port, true)])
        {
            let mut world = World::new(settings(&rule(mode)));
            world.connect(client, is_v6, [Plan::new(true, 300_000), Plan::new(false, 100_000)]);
            world.run_to_end(LIMIT);
            world.assert_complete();
            let opened: u64 = world.engine.counters().opened().map(|(_, count)| count).sum();
            assert_eq!(opened, 1, "{mode}");
            let generated = world.engine.counters().generated;
            assert_eq!(generated > 200, ACKNOWLEDGING.contains(&mode), "{mode}: {generated}");
            world.run(world.now + Duration::from_secs(200));
            let totals = world.engine.totals();
            assert_eq!(
                (totals.connections, totals.memory, totals.at_risk, totals.lost),
                (0, 0, 0, 0)
            );
            assert_eq!(world.engine.counters().ended(EndCause::Closed), 1, "{mode}");
        }
    }
}

#[test]
fn reflect_acknowledges_every_segment_with_data() {
    let mut world = World::new(settings(&rule("reflect")));
    world.connect(BridgePort::First, false, [Plan::new(true, 1_000_000), Plan::new(false, 0)]);
    world.run_to_end(LIMIT);
    world.assert_complete();
    let segments = 1_000_000 / 1_448;
    assert!(world.hosts[0].acknowledgements >= segments, "{}", world.hosts[0].acknowledgements);
}

#[test]
fn segments_fit_every_mtu_of_the_hosts() {
    for mode in MODES {
        for mtus in
            [[1_500, 576], [576, 1_500], [296, 296], [1_500, 296], [9_000, 1_500], [9_000, 9_000]]
        {
            let mut settings = settings(&rule(mode));
            settings.mtus = [9_000; 2];
            let mut world = World::new(settings);
            let [client, server] = mtus;
            let plan = |opens, mtu, peer_mtu| Plan { mtu, peer_mtu, ..Plan::new(opens, 200_000) };
            world.connect(
                BridgePort::First,
                false,
                [plan(true, client, server), plan(false, server, client)],
            );
            world.run_to_end(LIMIT);
            world.assert_complete();
        }
    }
}

#[test]
fn segments_of_proxies_fit_the_interfaces_of_the_bridge() {
    for mode in ACKNOWLEDGING {
        let mut settings = settings(&rule(mode));
        settings.mtus = [1_500, 576];
        let mut world = World::new(settings);
        // Longer packets than the second interface permits vanish; the hosts learn its MTU from the
        // MSS option that the bridge has lowered.
        world.link_mtus = [1_500, 576];
        let plan = |opens| Plan { peer_mtu: 576, ..Plan::new(opens, 100_000) };
        world.connect(BridgePort::First, false, [plan(true), plan(false)]);
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}

#[test]
fn hosts_without_window_scale_are_served() {
    for mode in MODES {
        for scales in [[false, true], [true, false], [false, false]] {
            let buffer = if mode == "ack" { "" } else { "buffer = \"200 kB\"\n" };
            let mut world = World::new(settings(&format!("{}{buffer}", rule(mode))));
            let plan = |opens, has_window_scale| Plan {
                has_window_scale,
                window: if has_window_scale { 200_000 } else { 60_000 },
                ..Plan::new(opens, 300_000)
            };
            let [client, server] = scales;
            world.connect(BridgePort::First, false, [plan(true, client), plan(false, server)]);
            world.run_to_end(LIMIT);
            world.assert_complete();
        }
    }
}

#[test]
fn many_connections_are_served_at_once() {
    for mode in MODES {
        let mut world = World::new(settings(&rule(mode)));
        for number in 0..60 {
            let client = BridgePort::BOTH[number % 2];
            let plans = [Plan::new(true, 20_000 + number as u64), Plan::new(false, 5_000)];
            world.connect(client, number % 3 == 0, plans);
        }
        world.faults.loss = 10;
        world.run_to_end(LIMIT);
        world.assert_complete();
        assert_eq!(world.engine.totals().lost, 0, "{mode}");
    }
}

#[test]
fn hosts_with_the_same_addresses_in_different_vlans_are_different() {
    for mode in MODES {
        let mut world = World::new(settings(&rule(mode)));
        let plan = |opens, vlan| Plan { vlan, ..Plan::new(opens, 50_000) };
        for vlan in [Some(7), Some(8), None] {
            world.connect(BridgePort::First, false, [plan(true, vlan), plan(false, vlan)]);
            // The next pair gets the same addresses.
            let pair = world.hosts.len() - 2;
            let (client, server) = (world.hosts[0].own, world.hosts[1].own);
            world.hosts[pair].rename(client, server);
            world.hosts[pair + 1].rename(server, client);
        }
        world.run_to_end(LIMIT);
        world.assert_complete();
        let opened: u64 = world.engine.counters().opened().map(|(_, count)| count).sum();
        assert_eq!(opened, 3, "{mode}");
    }
}

#[test]
fn each_host_gets_frames_with_the_address_and_the_service_class_of_its_peer() {
    for mode in MODES {
        let mut world = World::new(settings(&rule(mode)));
        for class in [0b1011_1000, 0b0010_1000] {
            let plan = |opens| Plan { traffic_class: class, ..Plan::new(opens, 30_000) };
            world.connect(BridgePort::First, false, [plan(true), plan(false)]);
        }
        world.run_to_end(LIMIT);
        world.assert_complete();
        for (index, host) in world.hosts.iter().enumerate() {
            let peer = if index % 2 == 0 { 2 } else { 1 };
            assert_eq!(host.last_source, [2, 0, 0, 0, (index / 2) as u8, peer], "{mode}");
            assert_eq!(host.last_traffic_class, host.plan.traffic_class, "{mode}");
        }
    }
}

#[test]
fn the_first_rule_that_matches_decides() {
    let rules = "[bridge.rule.local]\nmode = \"none\"\nservers = [\"10.0.0.0/24\"]\n\
         [bridge.rule.left]\nmode = \"spoof\"\nopened_from = \"left\"\nports = [\"6000-7000\"]\n\
         clients = [\"10.0.0.0/16\"]\n";
    let mut world = World::new(settings(rules));
    let plans = || [Plan::new(true, 1_000), Plan::new(false, 1_000)];
    for (client, is_v6) in [
        (BridgePort::First, false),
        (BridgePort::First, false),
        (BridgePort::Second, false),
        (BridgePort::First, true),
    ] {
        world.connect(client, is_v6, plans());
    }
    world.run_to_end(LIMIT);
    world.assert_complete();
    let counters = world.engine.counters();
    let opened: Vec<_> = counters.opened().filter(|(_, count)| *count > 0).collect();
    assert_eq!(opened, [("spoof", 1)]);
    assert_eq!(counters.untouched(UntouchedCause::ModeNone), 1);
    assert_eq!(counters.untouched(UntouchedCause::NoRule), 2);
}

#[test]
fn ports_are_used_again_after_a_close() {
    for mode in MODES {
        let mut world = World::new(settings(&rule(mode)));
        for _ in 0..3 {
            world.connect(
                BridgePort::First,
                false,
                [Plan::new(true, 20_000), Plan::new(false, 20_000)],
            );
            let pair = world.hosts.len() - 2;
            let (client, server) =
                ("10.9.9.1:4000".parse().unwrap(), "10.9.9.2:7000".parse().unwrap());
            world.hosts[pair].rename(client, server);
            world.hosts[pair + 1].rename(server, client);
            world.run_to_end(LIMIT);
            world.assert_complete();
            // The old hosts have forgotten the connection.
            world.hosts.clear();
            world.run(world.now + Duration::from_secs(1));
        }
        let opened: u64 = world.engine.counters().opened().map(|(_, count)| count).sum();
        assert_eq!(opened, 3, "{mode}");
    }
}

#[test]
fn half_closed_connections_continue_in_the_other_direction() {
    for mode in MODES {
        let mut world = World::new(settings(&rule(mode)));
        let server = Plan { closes: false, ..Plan::new(false, 200_000) };
        world.connect(BridgePort::First, false, [Plan::new(true, 10), server]);
        world.run(Instant::ZERO + Duration::from_secs(30));
        assert_eq!(world.hosts[0].received(), 200_000, "{mode}");
        world.hosts[1].connection.close();
        world.run_to_end(LIMIT);
        world.assert_complete();
    }
}
