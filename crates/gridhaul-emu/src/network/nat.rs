//! The NAT of a flow: connection tracking of the kernel (nf_conntrack) at its `to` end, with rules
//! of nftables for segments of connections that are not tracked.

use gridhaul_linux::{apply_ruleset, set_sysctl};
use gridhaul_scenario::scenario::{Nat, NatAnswer};

use super::plan::NetworkPlan;
use super::ports::server_port;
use crate::error::EmulationError;

/// Sets up the NATs of the flows that end at a node, inside its namespace. Their timeouts are equal
/// (`unsupported_idle_keys`), because a namespace has one.
pub(super) fn configure_nats(
    plan: &NetworkPlan,
    node: usize,
    name: &str,
) -> Result<(), EmulationError> {
    let flows = (0..).zip(&plan.flows).filter(|(_, flow)| flow.ends[1] == node);
    let nats: Vec<(u16, Nat)> =
        flows.filter_map(|(number, flow)| Some((server_port(number), flow.idle?.nat?))).collect();
    let Some((_, Nat { idle_timeout, .. })) = nats.first() else { return Ok(()) };
    let needs = |error| EmulationError::Nat { reason: Box::new(error) };
    // The rules come first: they load the module that has the settings.
    apply_ruleset(&ruleset(&nats), name).map_err(needs)?;
    let timeout = (idle_timeout.as_nanos() / 1_000_000_000).to_string();
    set_sysctl("netfilter/nf_conntrack_tcp_timeout_established", &timeout).map_err(needs)?;
    // A segment without SYN makes no entry.
    set_sysctl("netfilter/nf_conntrack_tcp_loose", "0").map_err(needs)?;
    // Windows and checksums are matters of the ends.
    set_sysctl("netfilter/nf_conntrack_tcp_be_liberal", "1").map_err(needs)?;
    set_sysctl("netfilter/nf_conntrack_checksum", "0").map_err(needs)
}

/// The rules of nft(8). RST of the NAT itself must pass: towards the device, and over the loopback
/// device towards the server.
fn ruleset(nats: &[(u16, Nat)]) -> String {
    let rules = |port: &str| {
        let rule = |(number, nat): &(u16, Nat)| {
            let treatment = match nat.answers {
                NatAnswer::Drop => "drop",
                NatAnswer::Reset => "reject with tcp reset",
            };
            format!("tcp {port} {number} ct state invalid {treatment}\n")
        };
        nats.iter().map(rule).collect::<String>()
    };
    format!(
        "table inet nat {{\nchain arriving {{\ntype filter hook input priority 0\n\
         iifname \"lo\" accept\n{}}}\nchain leaving {{\ntype filter hook output priority 0\n\
         tcp flags & rst == rst accept\n{}}}\n}}\n",
        rules("dport"),
        rules("sport"),
    )
}
