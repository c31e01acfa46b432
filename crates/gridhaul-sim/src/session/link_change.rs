//! Changes of links during a session.

use gridhaul_core::link::DirectionChange;
use gridhaul_scenario::scenario::{Direction, Directions, Link, Scenario};
use gridhaul_scenario::units::{BitRate, Duration, Probability};

use super::SessionError;
use super::address::{member_number, split_member};

/// A change of a link; absent values stay as they are. Rate, delay and loss apply to packets that
/// reach the link from then on.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LinkChange {
    /// Whether the link works. While it does not, packets in transmission are lost, as in an
    /// outage of mode `drop`.
    pub up: Option<bool>,
    /// Transmission rate.
    pub rate: Option<BitRate>,
    /// Propagation delay.
    pub delay: Option<Duration>,
    /// Probability of an independent loss; replaces any other loss process.
    pub loss: Option<Probability>,
}

/// A direction of a member of a link.
pub(super) struct SelectedDirection<'a> {
    pub(super) index: u32,
    pub(super) row_name: String,
    pub(super) member: u64,
    /// Number of members of the link.
    pub(super) count: u64,
    pub(super) link: &'a Link,
    pub(super) keys: &'a Direction,
}

impl LinkChange {
    /// The change of each direction.
    pub(super) fn checked(&self, name: &str) -> Result<DirectionChange, SessionError> {
        let Self { up, rate, delay, loss } = *self;
        if rate == Some(BitRate::from_bits_per_sec(0)) {
            return Err(SessionError::LinkValue(format!(
                "link `{name}`: a rate of 0 would never transmit\n  help: use `up = false` for a \
                 link that fails"
            )));
        }
        Ok(DirectionChange { up, rate, delay, loss })
    }
}

/// The directions that a name selects.
pub(super) fn select<'a>(
    scenario: &'a Scenario,
    directions: &'a Directions,
    name: &str,
) -> Result<Vec<SelectedDirection<'a>>, SessionError> {
    let (wanted, number) = split_member(name);
    let mut selected = Vec::new();
    for row in rows(scenario, directions) {
        if wanted == row.name || wanted == row.link_name {
            match number {
                Some(_) => selected.push(row.direction(member_number(name, row.count)?)),
                None => selected.extend((0..row.count).map(|member| row.direction(member))),
            }
        }
    }
    if selected.is_empty() {
        let known = scenario.link.keys().cloned().collect();
        return Err(SessionError::UnknownLink { name: wanted.to_owned(), known });
    }
    Ok(selected)
}

/// The directions of the links of a node, or of the group of which the node is a member.
pub(super) fn of_node<'a>(
    scenario: &'a Scenario,
    directions: &'a Directions,
    node: &str,
) -> Vec<SelectedDirection<'a>> {
    let rows = rows(scenario, directions);
    let own = rows.filter(|row| row.link.from == node || row.link.to == node);
    own.flat_map(|row| (0..row.count).map(move |member| row.direction(member))).collect()
}

/// The equal directions of the members of a link.
#[derive(Clone, Copy)]
struct Row<'a> {
    name: &'a str,
    link_name: &'a str,
    first: u32,
    count: u64,
    link: &'a Link,
    keys: &'a Direction,
}

impl<'a> Row<'a> {
    fn direction(&self, member: u64) -> SelectedDirection<'a> {
        let Self { name, first, count, link, keys, .. } = *self;
        let index = first + member as u32;
        SelectedDirection { index, row_name: name.to_owned(), member, count, link, keys }
    }
}

fn rows<'a>(
    scenario: &'a Scenario,
    directions: &'a Directions,
) -> impl Iterator<Item = Row<'a>> + 'a {
    let mut next = 0;
    let keys = Directions::keys(scenario);
    directions.rows().iter().zip(keys).filter_map(move |((name, count), keys)| {
        let first = next;
        next += *count as u32;
        let link_name = name.rsplit_once('.').map_or(name.as_str(), |(link, _)| link);
        let link = scenario.link.get(link_name)?;
        Some(Row { name, link_name, first, count: *count, link, keys })
    })
}
