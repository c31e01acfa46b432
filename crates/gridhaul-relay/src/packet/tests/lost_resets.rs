//! Resets that are lost on the link to a host that only receives.

use gridhaul_scenario::units::{Duration, Instant};

use super::host::Plan;
use super::world::{World, rule, settings};
use crate::packet::BridgePort;

const RECEIVER: usize = 1;

#[test]
fn a_host_whose_reset_was_lost_is_reset_when_another_relay_probes_it() {
    for mode in ["reflect", "spoof", "split"] {
        let mut world = World::new(settings(&rule(mode)));
        let plan = |opens, sends| Plan { closes: false, ..Plan::new(opens, sends) };
        world.connect(BridgePort::First, false, [plan(true, 40_000), plan(false, 0)]);
        world.run(Instant::ZERO + Duration::from_secs(5));
        assert_eq!(world.hosts[RECEIVER].received(), 40_000, "{mode}");
        world.link_mtus[1] = 0;
        world.hosts[0].connection.reset();
        world.run(Instant::ZERO + Duration::from_secs(6));
        world.link_mtus[1] = 1_500;
        world.run(Instant::ZERO + Duration::from_secs(10));
        assert!(!world.hosts[RECEIVER].was_reset, "{mode}: its reset was lost");
        let probe = world.hosts[0].probe();
        world.inject(BridgePort::First, probe);
        world.run(Instant::ZERO + Duration::from_secs(11));
        assert!(world.hosts[RECEIVER].was_reset, "{mode}");
    }
}
