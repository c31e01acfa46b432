//! Kills of the collector at any time, on links that lose packets: no acknowledged byte is lost.

use gridhaul_scenario::units::Duration;

use super::host::Options;
use super::world::{Conditions, Times, World};

/// Options of the hosts of a run.
const HOSTS: [Options; 4] = [
    Options::LINUX,
    Options::SMALL,
    Options { sack: false, ..Options::LINUX },
    Options { timestamps: false, ..Options::LINUX },
];

const CONDITIONS: Conditions = Conditions {
    lost: 20,
    duplicated: 5,
    delays: Times::new(5, 20),
    commits: Times::new(1, 40),
    space: u64::MAX,
};

/// Bytes that a host has written and that are not acknowledged, at most.
const OUTSTANDING_MAX: u64 = 40_000;

/// Results of all kills of a run.
#[derive(Debug, Default)]
struct Totals {
    acknowledged: u64,
    connections: u64,
    closes: u64,
}

fn kill_repeatedly(seed: u64, cycles: u64) -> Totals {
    let mut world = World::new(seed, CONDITIONS);
    for options in HOSTS {
        world.connect(options);
    }
    let mut totals = Totals::default();
    for _ in 0..cycles {
        let time = Duration::from_millis(50 + world.random.below(500));
        let steps = 1 + world.random.below(5);
        for _ in 0..steps {
            for (row, options) in HOSTS.into_iter().enumerate() {
                if world.hosts[row].is_closed() {
                    totals.acknowledged += world.hosts[row].acknowledged();
                    totals.connections += 1;
                    world.reconnect(row, options);
                }
                let bytes = 1 + world.random.below(15_000);
                let closes = world.random.below(20) == 0;
                let host = &mut world.hosts[row];
                if host.tcp.is_open() && !host.is_closing && host.outstanding() < OUTSTANDING_MAX {
                    host.tcp.write(bytes);
                    if closes {
                        host.is_closing = true;
                        host.tcp.close();
                        totals.closes += 1;
                    }
                }
            }
            world.run_for(Duration::from_nanos(time.as_nanos() / steps));
        }
        world.kill();
        (0..HOSTS.len()).for_each(|row| world.check(row));
    }
    world.check_log();
    totals
}

#[test]
fn a_thousand_kills_lose_no_acknowledged_byte() {
    let totals = kill_repeatedly(7, 1_000);
    assert!(totals.acknowledged > 2_000_000 && totals.connections > 300, "{totals:?}");
    assert!(totals.closes > 20, "{totals:?}");
}
