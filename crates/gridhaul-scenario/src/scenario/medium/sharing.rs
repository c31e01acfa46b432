//! The transmitters that share a medium.

use std::collections::BTreeMap;

use super::{CsmaCaParameters, Medium};
use crate::scenario::{Directions, Scenario, assigned_member};
use crate::units::Duration;

/// A medium with the numbers of the directions that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SharedMedium {
    /// Nodes contend.
    CsmaCa {
        /// Name of the medium.
        name: String,
        /// Times and windows.
        parameters: CsmaCaParameters,
        /// The directions of each node: a node transmits on one of them at a time.
        stations: Vec<Vec<u32>>,
    },
    /// Directions have time slots.
    Tdma {
        /// Length of a slot.
        slot: Duration,
        /// Guard time at the end of a slot.
        guard: Duration,
        /// The direction of each slot of a frame.
        slots: Vec<u32>,
    },
}

impl Directions {
    /// The media of a scenario that links share.
    #[must_use]
    pub fn media(&self, scenario: &Scenario) -> Vec<SharedMedium> {
        let used = scenario.medium.iter().filter(|(name, _)| scenario.shares_medium(name));
        used.map(|(name, medium)| match medium {
            Medium::CsmaCa(keys) => SharedMedium::CsmaCa {
                name: name.clone(),
                parameters: keys.parameters(),
                stations: self.stations(scenario, name),
            },
            Medium::Tdma(keys) => {
                let order = match keys.order.is_empty() {
                    true => scenario.directions_on(name).map(|sender| sender.direction).collect(),
                    false => keys.order.clone(),
                };
                let slots = order.iter().flat_map(|direction| self.members_of(direction));
                SharedMedium::Tdma { slot: keys.slot, guard: keys.guard, slots: slots.collect() }
            }
        })
        .collect()
    }

    /// The directions on a medium, by the node that sends on them.
    fn stations(&self, scenario: &Scenario, medium: &str) -> Vec<Vec<u32>> {
        let mut stations: Vec<Vec<u32>> = Vec::new();
        let mut known: BTreeMap<(String, u64), usize> = BTreeMap::new();
        for Sender { direction, node } in scenario.directions_on(medium) {
            let nodes = u64::from(scenario.node.get(&node).map_or(1, |node| node.count));
            let members: Vec<u32> = self.members_of(&direction).collect();
            let links = members.len() as u64;
            for (member, number) in (0..).zip(members) {
                // With more nodes than links, the nodes of a link have one modem together.
                let station = match nodes > links {
                    true => (direction.clone(), member),
                    false => (node.clone(), assigned_member(member, links, nodes)),
                };
                let index = *known.entry(station).or_insert(stations.len());
                if index == stations.len() {
                    stations.push(Vec::new());
                }
                stations[index].push(number);
            }
        }
        stations
    }

    /// Numbers of the directions of a row.
    fn members_of(&self, name: &str) -> impl Iterator<Item = u32> {
        let row = self.rows().iter().position(|(row, _)| row == name);
        let rows = self.row_of().iter().zip(0..);
        rows.filter(move |(of, _)| Some(**of as usize) == row).map(|(_, number)| number)
    }
}

/// A direction, and the node that sends on it.
pub(in crate::scenario) struct Sender {
    pub(in crate::scenario) direction: String,
    node: String,
}

impl Scenario {
    /// Whether a link uses this medium.
    pub(in crate::scenario) fn shares_medium(&self, medium: &str) -> bool {
        self.link.values().any(|link| link.medium.as_deref() == Some(medium))
    }

    /// The directions on a medium, in the order of the file.
    pub(in crate::scenario) fn directions_on(&self, medium: &str) -> impl Iterator<Item = Sender> {
        let links =
            self.link.iter().filter(move |(_, link)| link.medium.as_deref() == Some(medium));
        links.flat_map(|(name, link)| {
            let forward = link.forward().map(|_| ("forward", &link.from));
            let reverse = link.reverse().map(|_| ("reverse", &link.to));
            forward.into_iter().chain(reverse).map(move |(side, node)| Sender {
                direction: format!("{name}.{side}"),
                node: node.clone(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(medium: &str) -> Vec<SharedMedium> {
        let text = format!(
            "title = 'street'\nduration = '1 s'\n\
             [node]\nmeter = {{ count = 3 }}\nlamp = {{}}\nhead = {{}}\n\
             [medium.street]\n{medium}\n[medium.spare.tdma]\nslot = '1 ms'\n\
             [link.drop]\nfrom = 'meter'\nto = 'head'\nmedium = 'street'\nboth.rate = '1 Mbit/s'\n\
             [link.light]\nfrom = 'head'\nto = 'lamp'\nmedium = 'street'\n\
             forward.rate = '1 Mbit/s'\n\
             [flow.up]\nfrom = 'meter'\nto = 'head'\nload = 'bulk'\n"
        );
        let scenario = Scenario::from_toml(&text, "street.toml").expect("a scenario");
        Directions::new(&scenario).media(&scenario)
    }

    #[test]
    fn the_directions_of_a_node_are_one_station() {
        // Directions 0 to 2: meters to head, 3 to 5: head to meters, 6: head to lamp.
        let media = media("csma_ca = {}");
        let [SharedMedium::CsmaCa { stations, .. }] = &media[..] else { panic!("{media:?}") };
        assert_eq!(*stations, [vec![0], vec![1], vec![2], vec![3, 4, 5, 6]]);
    }

    #[test]
    fn each_direction_has_a_slot_unless_the_order_is_given() {
        let slots = |keys: &str| {
            let media = media(keys);
            let [SharedMedium::Tdma { slots, .. }] = &media[..] else { panic!("{media:?}") };
            slots.clone()
        };
        assert_eq!(slots("tdma = { slot = '5 ms' }"), [0, 1, 2, 3, 4, 5, 6]);
        let order = "tdma = { slot = '5 ms', order = ['light.forward', 'drop.forward', \
                     'light.forward', 'drop.reverse'] }";
        assert_eq!(slots(order), [6, 0, 1, 2, 6, 3, 4, 5]);
    }
}
