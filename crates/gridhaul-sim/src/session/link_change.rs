//! Changes of links during a session.

use gridhaul_core::link::DirectionChange;
use gridhaul_scenario::scenario::{Direction, Directions, Scenario};
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
    directions: &Directions,
    name: &str,
) -> Result<Vec<SelectedDirection<'a>>, SessionError> {
    let (wanted, number) = split_member(name);
    let mut selected = Vec::new();
    let mut first = 0;
    for ((row, count), keys) in directions.rows().iter().zip(Directions::keys(scenario)) {
        let link = row.rsplit_once('.').map_or(row.as_str(), |(link, _)| link);
        if wanted == row || wanted == link {
            let members = match number {
                Some(_) => {
                    let member = member_number(name, *count)?;
                    member..member + 1
                }
                None => 0..*count,
            };
            selected.extend(members.map(|member| SelectedDirection {
                index: first + member as u32,
                row_name: row.clone(),
                member,
                keys,
            }));
        }
        first += *count as u32;
    }
    if selected.is_empty() {
        let known = scenario.link.keys().cloned().collect();
        return Err(SessionError::UnknownLink { name: wanted.to_owned(), known });
    }
    Ok(selected)
}
