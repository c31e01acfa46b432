//! Random faults of the links: the bytes of both streams arrive unchanged, or the hosts are reset.

use gridhaul_scenario::units::Duration;
use proptest::prelude::*;

use super::cases::MODES;
use super::host::Plan;
use super::world::{Faults, World, rule, settings};
use crate::packet::BridgePort;

fn faults() -> impl Strategy<Value = Faults> {
    let probability = || 0..60_u64;
    let faults = (probability(), probability(), probability(), probability(), probability());
    faults.prop_map(|(loss, duplication, reordering, corruption, option)| Faults {
        loss,
        duplication,
        reordering,
        corruption,
        option,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn streams_arrive_unchanged_over_links_with_faults(
        mode in prop::sample::select(MODES.to_vec()),
        faults in faults(),
        seed in any::<u64>(),
        sizes in (0..60_000_u64, 0..60_000_u64),
        mtus in prop::sample::select(vec![[1_500, 1_500], [576, 1_500], [1_500, 296]]),
        client in prop::sample::select(BridgePort::BOTH.to_vec()),
        is_v6 in any::<bool>(),
    ) {
        // IPv6 needs 1280 bytes.
        let [client_mtu, server_mtu] = if is_v6 { [1_500, 1_280] } else { mtus };
        let mut world = World::new(settings(&rule(mode))).with_seed(seed);
        world.faults = faults;
        let plan = |opens, sends, mtu, peer_mtu| Plan { mtu, peer_mtu, ..Plan::new(opens, sends) };
        world.connect(client, is_v6, [
            plan(true, sizes.0, client_mtu, server_mtu),
            plan(false, sizes.1, server_mtu, client_mtu),
        ]);
        world.run_to_end(Duration::from_secs(1_200));
        // Bytes are compared on arrival. A host may give up on a bad link, but no acknowledged byte
        // disappears without a reset.
        let [client, server] = &world.hosts[..] else { unreachable!("two hosts") };
        let is_complete = client.received() == sizes.1 && server.received() == sizes.0;
        let was_reset = client.was_reset || server.was_reset;
        let received = (client.received(), server.received());
        prop_assert!(is_complete || was_reset, "{mode}: {received:?}");
        prop_assert!(world.memory_max <= 4 * 65_536 + 3_000, "{}", world.memory_max);
    }

    /// Arbitrary bytes in frames that look like segments of a connection.
    #[test]
    fn arbitrary_frames_do_no_harm(
        mode in prop::sample::select(MODES.to_vec()),
        frames in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(any::<u8>(), 0..200)),
            1..60,
        ),
    ) {
        let mut world = World::new(settings(&rule(mode)));
        let plans = [Plan::new(true, 20_000), Plan::new(false, 20_000)];
        world.connect(BridgePort::First, false, plans);
        world.run(world.now + Duration::from_millis(40));
        for (is_first, bytes) in frames {
            let from = if is_first { BridgePort::First } else { BridgePort::Second };
            world.inject(from, bytes);
        }
        world.run_to_end(Duration::from_secs(300));
        world.assert_complete();
    }
}
