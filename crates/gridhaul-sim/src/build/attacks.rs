//! Attackers in the middle of links.

use gridhaul_core::link::{FlowSelection, LinkAttack, LinkRandomStreams, LinkSet};
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{AttackAction, AttackedPackets, Directions, ProxyMode, Scenario};

use super::flow_range::flow_range;
use crate::alterations::Alterations;
use crate::flow::Flow;
use crate::layout::Layout;
use crate::network::Observer;
use crate::packet::Packet;

/// Attacks that the simulator does not support: it does not follow altered bytes through proxies.
pub(crate) fn unsupported_attacks(scenario: &Scenario) -> Vec<Unsupported> {
    if !has_proxies(scenario) {
        return Vec::new();
    }
    let altering = scenario.attack.iter().filter(|(_, attack)| {
        let action = &attack.action;
        action.delivers_altered_data()
    });
    let unsupported = altering.map(|(name, _)| Unsupported {
        key: format!("attack.{name}.action.alter"),
        reason: "the simulator does not follow altered data through proxies; write checksum = \
                 \"invalid\", or remove the proxies"
            .to_owned(),
    });
    unsupported.collect()
}

/// Altered data of a run: tracked if an attacker alters packets, and in a session also if a link
/// corrupts them without detection.
pub(super) fn alterations(scenario: &Scenario, is_session: bool) -> Alterations {
    let is_attacked = scenario.attack.values().any(|attack| attack.action.delivers_altered_data());
    let mut directions = Directions::keys(scenario);
    let is_corrupted = is_session
        && !has_proxies(scenario)
        && directions.any(|direction| direction.corrupt_undetected.is_some());
    Alterations::new(is_attacked || is_corrupted)
}

/// Whether messages of a flow may be altered by an attacker.
pub(super) fn may_be_altered(scenario: &Scenario, flow: &str) -> bool {
    scenario.attack.values().any(|attack| {
        let selected = attack.action.packets().is_some_and(|packets| {
            packets.flows.is_none_or(|flows| flows.iter().any(|name| name == flow))
        });
        attack.action.delivers_altered_data() && selected
    })
}

/// Adds the attacks of a scenario to the directions of its links.
pub(super) fn add_attacks(
    links: &mut LinkSet<Packet, Observer>,
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
    flows: &[Flow],
) {
    for (attack_name, attack) in &scenario.attack {
        let Some(packets) = attack.action.packets() else { continue };
        let selection = selection(scenario, &packets, flows);
        let delays = matches!(attack.action, AttackAction::Delay(_));
        let mut index = 0;
        let rows = layout.directions.rows().iter().zip(Directions::keys(scenario));
        for ((row_name, count), keys) in rows {
            let (link, direction) = row_name.rsplit_once('.').unwrap_or((row_name, ""));
            for member in 0..*count {
                if packets.link.selects(link, direction, member) {
                    let random =
                        LinkRandomStreams::named(scenario.seed, replication, row_name, member);
                    let entry = links.entry_mut(index);
                    entry.observer.audit.expect_attack(delays);
                    let flows = selection.clone();
                    if let Some(attack) = LinkAttack::new(attack_name, attack, flows, random) {
                        entry.add_attack(attack, keys, random);
                    }
                }
                index += 1;
            }
        }
    }
}

/// The packets to both ends of the flows that an attack names.
fn selection(scenario: &Scenario, packets: &AttackedPackets<'_>, flows: &[Flow]) -> FlowSelection {
    let Some(names) = packets.flows else { return FlowSelection::All };
    let rows = names.iter().filter_map(|name| scenario.flow.get_index_of(name));
    FlowSelection::In(rows.map(|row| flow_range(flows, row)).collect())
}

fn has_proxies(scenario: &Scenario) -> bool {
    let mut proxies = scenario.node.values().filter_map(|node| node.proxy.as_ref());
    proxies.any(|proxy| proxy.mode != ProxyMode::None)
}
