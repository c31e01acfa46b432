//! Keys of idle connections whose values the kernel cannot have.

use gridhaul_scenario::scenario::{Flow, Scenario};
use gridhaul_scenario::units::Duration;

/// Largest time of `TCP_KEEPIDLE` and `TCP_KEEPINTVL` in seconds, and largest number of probes
/// (`MAX_TCP_KEEPIDLE`, `MAX_TCP_KEEPCNT`, include/net/tcp.h).
const KEEP_ALIVE_MAX: Duration = Duration::from_secs(32_767);
const PROBES_MAX: u32 = 127;

pub(super) fn unsupported_idle_keys(
    scenario: &Scenario,
    flow: &Flow,
) -> Vec<(&'static str, String)> {
    let mut unsupported = Vec::new();
    if let Some(keys) = flow.keep_alive {
        for (key, time) in [("keep_alive.idle", keys.idle), ("keep_alive.interval", keys.interval)]
        {
            if !is_whole(time) || time > KEEP_ALIVE_MAX {
                let reason = "the kernel has whole seconds up to 32,767 s; use such a time, or \
                              backend `sim`";
                unsupported.push((key, reason.to_owned()));
            }
        }
        if keys.probes > PROBES_MAX {
            let reason = format!("the kernel sends at most {PROBES_MAX} probes; use fewer");
            unsupported.push(("keep_alive.probes", reason));
        }
    }
    let Some(nat) = flow.nat else { return unsupported };
    if !is_whole(nat.idle_timeout) {
        let reason = "the kernel has whole seconds; use such a time, or backend `sim`";
        unsupported.push(("nat.idle_timeout", reason.to_owned()));
    }
    let others = scenario.flow.values().filter(|other| other.to == flow.to);
    if others.filter_map(|other| other.nat).any(|other| other.idle_timeout != nat.idle_timeout) {
        let reason = "the NATs of flows to the same node have one timeout in the emulator; use \
                      equal times, or backend `sim`";
        unsupported.push(("nat.idle_timeout", reason.to_owned()));
    }
    unsupported
}

fn is_whole(time: Duration) -> bool {
    time.as_nanos().is_multiple_of(1_000_000_000)
}
