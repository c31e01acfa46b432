//! Names of nodes and of members of groups, and the flow between two of them.

use gridhaul_scenario::scenario::{Load, Scenario, assigned_member};
use indexmap::IndexMap;

use super::SessionError;

/// A node, or a member of a group of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Node<'a> {
    name: &'a str,
    member: u64,
    /// Members of its group.
    count: u64,
}

/// The flow that leads from one node to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Path {
    /// Index of the flow in the scenario.
    pub(super) row: usize,
    /// Number of the flow within the row.
    pub(super) member: u32,
}

/// The flows of load `external`, as indices by sender and receiver.
#[derive(Debug)]
pub(super) struct ExternalFlows(IndexMap<String, IndexMap<String, Vec<usize>>>);

impl ExternalFlows {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let mut flows = Self(IndexMap::new());
        for (row, flow) in scenario.flow.values().enumerate() {
            if is_external(&flow.load) {
                let receivers = flows.0.entry(flow.from.clone()).or_default();
                receivers.entry(flow.to.clone()).or_default().push(row);
            }
        }
        flows
    }

    /// The flow from one node to another, such as from `meter[3]` to `head`.
    pub(super) fn path(
        &self,
        scenario: &Scenario,
        from: &str,
        to: &str,
    ) -> Result<Path, SessionError> {
        let (source, sink) = (node(scenario, from)?, node(scenario, to)?);
        let rows = self.0.get(source.name).and_then(|receivers| receivers.get(sink.name));
        for &row in rows.into_iter().flatten() {
            let size = source.count.max(sink.count);
            // Each member of the larger group has a flow, which determines the member of the other.
            let member = if source.count == size { source.member } else { sink.member };
            let ends = [source, sink].map(|end| assigned_member(member, size, end.count));
            if ends == [source.member, sink.member] {
                return Ok(Path { row, member: member as u32 });
            }
        }
        let ends = self.0.iter().flat_map(|(from, receivers)| {
            receivers.keys().map(move |to| format!("{from} to {to}"))
        });
        Err(SessionError::NoFlow {
            from: from.to_owned(),
            to: to.to_owned(),
            known: ends.collect(),
        })
    }
}

pub(super) fn is_external(load: &Load) -> bool {
    *load == Load::External
}

/// Splits a name into that of the node or link and the member, if it has one.
pub(super) fn split_member(text: &str) -> (&str, Option<&str>) {
    match text.strip_suffix(']').and_then(|text| text.split_once('[')) {
        Some((name, member)) => (name, Some(member)),
        None => (text, None),
    }
}

/// The number of a member of a group of `count`; `text` is the complete name.
pub(super) fn member_number(text: &str, count: u64) -> Result<u64, SessionError> {
    let (name, member) = split_member(text);
    let refuse = |message: String, help: String| Err(SessionError::Member { message, help });
    let range = || format!("from `{name}[0]` to `{name}[{}]`", count - 1);
    match member {
        None if count == 1 => Ok(0),
        None => refuse(
            format!("`{name}` is a group of {count}"),
            format!("name one of its members, {}", range()),
        ),
        Some(number) => match number.parse() {
            Ok(number) if number < count => Ok(number),
            _ => refuse(
                format!("there is no member `{text}`"),
                format!("the members are {}", range()),
            ),
        },
    }
}

fn node<'a>(scenario: &'a Scenario, text: &str) -> Result<Node<'a>, SessionError> {
    let (name, _) = split_member(text);
    let Some((name, node)) = scenario.node.get_key_value(name) else {
        let known = scenario.node.keys().cloned().collect();
        return Err(SessionError::UnknownNode { name: name.to_owned(), known });
    };
    let count = u64::from(node.count);
    Ok(Node { name, member: member_number(text, count)?, count })
}
