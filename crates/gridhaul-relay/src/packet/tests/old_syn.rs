//! Old duplicates of SYN at a bridge that has just started: the connection of the hosts continues.

use gridhaul_scenario::units::{Duration, Instant};

use super::cases::MODES;
use super::host::Plan;
use super::world::{Faults, World, rule, settings};
use crate::packet::{BridgePort, EndCause};

/// A connection that was opened without a proxy; then the bridge starts again with one, and
/// duplicates of SYN arrive at random times.
fn disturbed(mode: &str, seed: u64) -> World {
    let mut world = World::new(settings(&rule("none"))).with_seed(seed);
    let [has_timestamps, detects_losses] = [0, 1].map(|bit| seed >> bit & 1 == 1);
    let plan = |opens, sends| Plan { has_timestamps, ..Plan::new(opens, sends) };
    world.connect(BridgePort::First, false, [plan(true, 300_000), plan(false, 200_000)]);
    let random = |world: &mut World, below: u64| world.next_random() % below;
    let start = Duration::from_millis(30 + random(&mut world, 100));
    world.run(Instant::ZERO + start);
    let syn = world.hosts[0].syn();
    let mut settings = settings(&rule(mode));
    settings.detects_losses = detects_losses;
    world.restart(settings);
    world.faults = Faults { loss: 20, duplication: 20, reordering: 100, ..Faults::default() };
    for _ in 0..4 {
        world.inject(BridgePort::First, syn.clone());
        let pause = Duration::from_millis(random(&mut world, 60));
        world.run(world.now + pause);
    }
    world.run_to_end(Duration::from_secs(600));
    world
}

#[test]
fn an_old_duplicate_of_syn_does_not_disturb_the_connection() {
    let mut discarded = 0;
    for mode in MODES {
        for seed in 0..40 {
            let world = disturbed(mode, seed);
            println!("{mode}, seed {seed}");
            world.assert_complete();
            assert_eq!(world.memory_max, 0, "{mode}, seed {seed}: no proxy has joined");
            assert_eq!(world.engine.totals().lost, 0, "{mode}, seed {seed}");
            discarded += world.engine.counters().ended(EndCause::Handshake);
        }
    }
    assert!(discarded > 100, "proxies were opened: {discarded}");
}

/// A half-open connection: the client has forgotten it, and the server has not. Its
/// answer to the new SYN leads to a reset, and the next SYN opens a connection with a proxy.
#[test]
fn a_client_that_has_forgotten_a_connection_opens_another_one() {
    for mode in MODES {
        let mut world = World::new(settings(&rule("none")));
        let plan = |opens| Plan { closes: false, ..Plan::new(opens, 10_000) };
        world.connect(BridgePort::First, false, [plan(true), plan(false)]);
        world.run(Instant::ZERO + Duration::from_secs(5));
        world.restart(settings(&rule(mode)));
        let mut old = std::mem::take(&mut world.hosts);
        // Sequence numbers after those of the old connection (RFC 9293, section 3.4.1).
        world.first_number = 50_000_000;
        world.connect(
            BridgePort::First,
            false,
            [Plan::new(true, 10_000), Plan::new(false, 10_000)],
        );
        let new = std::mem::replace(&mut world.hosts[1], old.remove(1));
        while !world.hosts[1].was_reset {
            world.run(world.now + Duration::from_millis(10));
            assert!(world.now < Instant::ZERO + Duration::from_secs(10), "{mode}: no reset");
        }
        world.hosts[1] = new;
        world.run_to_end(Duration::from_secs(300));
        world.assert_complete();
        let opened: u64 = world.engine.counters().opened().map(|(_, count)| count).sum();
        assert!(opened >= 1, "{mode}");
    }
}
