//! The end of the bridge without loss, as before an upgrade.

use gridhaul_scenario::units::{Duration, Instant};

use super::cases::MODES;
use super::host::Plan;
use super::world::{World, rule, settings};
use crate::packet::{BridgePort, EndCause};

/// Interval in which the event loop drains.
const INTERVAL: Duration = Duration::from_millis(20);

/// Time for which an upgrade waits by default.
const LIMIT: Duration = Duration::from_secs(10);

/// A bridge in the middle of bulk transfers in both directions.
fn transfers(mode: &str) -> World {
    let mut world = World::new(settings(&rule(mode)));
    for (client, is_v6) in [(BridgePort::First, false), (BridgePort::Second, true)] {
        world.connect(client, is_v6, [Plan::new(true, 3_000_000), Plan::new(false, 1_000_000)]);
    }
    world.faults.loss = 5;
    world.run(Instant::ZERO + Duration::from_millis(300));
    world
}

/// Drains until the bridge can end, or the limit is reached.
pub(super) fn drain(world: &mut World) {
    let limit = world.now + LIMIT;
    while !world.engine.is_drained() && world.now < limit {
        world.engine.drain(world.now);
        world.send_of_bridge();
        world.run(world.now + INTERVAL);
    }
}

#[test]
fn bulk_transfers_continue_without_the_bridge() {
    for mode in ["reflect", "spoof", "snoop", "ack"] {
        let mut world = transfers(mode);
        assert_eq!(world.engine.totals().connections, 2, "{mode}");
        drain(&mut world);
        assert!(world.engine.is_drained(), "{mode}: {:?}", world.engine.totals());
        assert_eq!(world.engine.counters().ended(EndCause::Stopped), 2, "{mode}");
        world.run_to_end(Duration::from_secs(300));
        world.assert_complete();
        assert_eq!(world.engine.totals().lost, 0, "{mode}");
    }
}

#[test]
fn connections_that_the_bridge_terminates_are_reset_without_loss() {
    let mut world = transfers("split");
    assert!(world.engine.totals().at_risk > 0);
    world.engine.drain(world.now);
    world.run(world.now + Duration::from_secs(1));
    assert_eq!(world.engine.totals().at_risk, 0, "acknowledged end to end");
    assert_eq!(world.engine.totals().connections, 2);
    world.engine.stop(world.now);
    world.send_of_bridge();
    world.run(world.now + Duration::from_secs(1));
    assert!(world.hosts.iter().all(|host| host.was_reset));
    assert_eq!(world.engine.totals().lost, 0);
}

#[test]
fn no_bytes_become_at_risk_during_a_drain() {
    for mode in MODES {
        let mut world = transfers(mode);
        let mut at_risk = world.engine.totals().at_risk;
        while at_risk > 0 {
            world.engine.drain(world.now);
            world.send_of_bridge();
            world.run(world.now + Duration::from_millis(1));
            let now = world.engine.totals().at_risk;
            assert!(now <= at_risk, "{mode}: {at_risk} bytes, and then {now}");
            at_risk = now;
        }
    }
}
