//! Nodes and links that the caller has made fail. A direction works while it and the nodes at both
//! of its ends work.

use std::collections::BTreeSet;

use gridhaul_scenario::scenario::{Scenario, assigned_member};

use super::SessionError;
use super::address::{member_number, split_member};
use super::link_change::SelectedDirection;

/// The nodes and directions that do not work.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures {
    /// Numbers of directions.
    directions: BTreeSet<u32>,
    /// Index of a node in the scenario, and the number of the member.
    nodes: BTreeSet<(usize, u64)>,
}

impl Failures {
    /// A direction fails, or works again.
    pub(super) fn set_direction(&mut self, index: u32, up: bool) {
        if up {
            self.directions.remove(&index);
        } else {
            self.directions.insert(index);
        }
    }

    /// A node, a member of a group or all members of a group fail, or work again.
    pub(super) fn set_node(
        &mut self,
        scenario: &Scenario,
        text: &str,
        up: bool,
    ) -> Result<(), SessionError> {
        let (name, number) = split_member(text);
        let Some((index, name, node)) = scenario.node.get_full(name) else {
            let known = scenario.node.keys().cloned().collect();
            return Err(SessionError::UnknownNode { name: name.to_owned(), known });
        };
        let count = u64::from(node.count);
        let members = match number {
            Some(_) => {
                let member = member_number(text, count)?;
                // A node that works may be told so: adapters check the names of nodes like this.
                if !up || self.nodes.contains(&(index, member)) {
                    check_own_links(scenario, name, text)?;
                }
                member..member + 1
            }
            None => 0..count,
        };
        for member in members {
            if up {
                self.nodes.remove(&(index, member));
            } else {
                self.nodes.insert((index, member));
            }
        }
        Ok(())
    }

    /// Whether a direction and the nodes at its ends work.
    pub(super) fn works(&self, scenario: &Scenario, direction: &SelectedDirection<'_>) -> bool {
        let ends = [&direction.link.from, &direction.link.to];
        let mut ends = ends.into_iter().filter_map(|end| scenario.node.get_full(end));
        !self.directions.contains(&direction.index)
            && ends.all(|(index, _, node)| {
                // The members that share a link fail together, so that one stands for all.
                let (count, links) = (u64::from(node.count), direction.count);
                let member = if count > links {
                    direction.member * count / links
                } else {
                    assigned_member(direction.member, links, count)
                };
                !self.nodes.contains(&(index, member))
            })
    }
}

/// A member of a group that shares a link with others cannot fail alone.
fn check_own_links(scenario: &Scenario, name: &str, text: &str) -> Result<(), SessionError> {
    let count = scenario.node.get(name).map_or(1, |node| node.count);
    for (link_name, link) in &scenario.link {
        let is_end = link.from == name || link.to == name;
        if is_end && scenario.link_members(link) < count {
            return Err(SessionError::Member {
                message: format!(
                    "`{text}` shares link `{link_name}` with other members, and cannot fail alone"
                ),
                help: format!("name the group `{name}`, or give each member a link of its own"),
            });
        }
    }
    Ok(())
}
