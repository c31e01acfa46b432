//! Ways through the network: the one rule that all backends share.

use std::collections::VecDeque;

use super::error::Diagnostic;
use super::{Direction, Flow, Link, Scenario, Transport, suggest};

/// One direction of a link on the way of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hop {
    /// Index of the link in [`Scenario::link`].
    pub link: usize,
    /// Whether it is crossed from its `from` to its `to`, or the other way.
    pub forward: bool,
}

/// The ways of a flow. Member i of n takes link ⌊i·k/n⌋ of the k links that an entry stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// From `from` to `to`.
    pub forward: Vec<Hop>,
    /// From `to` back to `from`; empty for datagrams, which nobody answers.
    pub reverse: Vec<Hop>,
}

impl Hop {
    /// What the scenario says of it.
    ///
    /// # Panics
    /// It is none of this scenario's.
    #[must_use]
    pub fn direction(self, scenario: &Scenario) -> &Direction {
        let link = &scenario.link[self.link];
        let direction = if self.forward { link.forward() } else { link.reverse() };
        direction.expect("a route crosses directions that exist")
    }
}

impl Scenario {
    /// Number of flows that one entry between these nodes stands for: one for each member of the
    /// larger group. `None` where a node does not exist.
    #[must_use]
    pub fn members(&self, from: &str, to: &str) -> Option<u32> {
        Some(self.node.get(from)?.count.max(self.node.get(to)?.count))
    }

    /// Number of connections that an entry stands for: `count` for each member. Nodes that do not
    /// exist count once.
    #[must_use]
    pub fn connections(&self, flow: &Flow) -> u64 {
        u64::from(self.members(&flow.from, &flow.to).unwrap_or(1)) * u64::from(flow.count)
    }

    /// Number of links that this entry stands for: one for each member of the larger group or,
    /// where it is shared, of the smaller one (of the one group, where the other is a single
    /// node: one link).
    #[must_use]
    pub fn link_members(&self, link: &Link) -> u32 {
        let count = |name: &str| self.node.get(name).map_or(1, |node| node.count);
        let (from, to) = (count(&link.from), count(&link.to));
        if link.shared { from.min(to) } else { from.max(to) }
    }

    /// The ways of a flow, as written or else those with the fewest links; of equally short ways
    /// the one whose links come first in the file.
    ///
    /// # Errors
    /// No such flow, no way, or a written way that does not connect.
    pub fn routes(&self, flow: &str) -> Result<Routes, Diagnostic> {
        let Some(found) = self.flow.get(flow) else {
            let known: Vec<_> = self.flow.keys().map(String::as_str).collect();
            let remedy = suggest::remedy(flow, &known);
            return Err(Diagnostic::new("flow", format!("there is no flow {flow:?}"), remedy));
        };
        Network::new(self).routes(flow, found)
    }

    /// The way from the `to` end of a flow back to its `from` end, for datagrams too: programs of one's
    /// own may answer them. `None` where the links have none.
    #[must_use]
    pub fn reverse_path(&self, flow: &str) -> Option<Vec<Hop>> {
        Network::new(self).reverse_path(flow, self.flow.get(flow)?).ok()
    }
}

/// Links by the node they leave, so that a search looks at each link once.
pub(super) struct Network<'s> {
    scenario: &'s Scenario,
    /// For each node, the hops that leave it and the nodes they lead to.
    leaving: Vec<Vec<(Hop, usize)>>,
}

/// One of the two ways of a flow, for search and for messages.
struct PathRequest<'a> {
    key: String,
    from: &'a str,
    to: &'a str,
    written: Option<&'a [String]>,
    members: u32,
}

impl<'s> Network<'s> {
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        let mut leaving = vec![Vec::new(); scenario.node.len()];
        for (index, link) in scenario.link.values().enumerate() {
            let node = |name: &str| scenario.node.get_index_of(name);
            let (Some(from), Some(to)) = (node(&link.from), node(&link.to)) else { continue };
            if link.forward().is_some() {
                leaving[from].push((Hop { link: index, forward: true }, to));
            }
            if link.reverse().is_some() {
                leaving[to].push((Hop { link: index, forward: false }, from));
            }
        }
        Self { scenario, leaving }
    }

    pub(super) fn routes(&self, name: &str, flow: &Flow) -> Result<Routes, Diagnostic> {
        let forward = self.path(&PathRequest {
            key: format!("flow.{name}.route"),
            from: &flow.from,
            to: &flow.to,
            written: flow.route.as_deref(),
            members: self.members(flow),
        })?;
        let reverse = match flow.transport {
            Transport::Datagram => Vec::new(),
            Transport::Tcp | Transport::Echo => self.reverse_path(name, flow)?,
        };
        Ok(Routes { forward, reverse })
    }

    fn reverse_path(&self, name: &str, flow: &Flow) -> Result<Vec<Hop>, Diagnostic> {
        self.path(&PathRequest {
            key: format!("flow.{name}.reverse_route"),
            from: &flow.to,
            to: &flow.from,
            written: flow.reverse_route.as_deref(),
            members: self.members(flow),
        })
    }

    fn members(&self, flow: &Flow) -> u32 {
        self.scenario.members(&flow.from, &flow.to).unwrap_or(1)
    }

    fn path(&self, request: &PathRequest<'_>) -> Result<Vec<Hop>, Diagnostic> {
        if let Some(written) = request.written {
            return self.follow(request, written);
        }
        if let Some(found) = self.search(request, |node| self.passable(node, request.members)) {
            return Ok(found);
        }
        let message = format!("there is no way from `{}` to `{}`", request.from, request.to);
        if self.search(request, |_| true).is_some() {
            return Err(Diagnostic::new(
                &request.key,
                format!("{message} except through a group, where the member is not determined"),
                "a flow passes only groups that are not larger than its own; put a single node in \
                 between",
            ));
        }
        let remedy = match self.search(&request.reversed(), |_| true) {
            Some(_) => "the links between them are one-way: give one of them its other direction",
            None => "add a link between them, or links over other nodes",
        };
        Err(Diagnostic::new(&request.key, message, remedy))
    }

    /// Follows a written way from link to link.
    fn follow(
        &self,
        request: &PathRequest<'_>,
        written: &[String],
    ) -> Result<Vec<Hop>, Diagnostic> {
        let (mut at, mut hops) = (request.from, Vec::new());
        for (index, name) in written.iter().enumerate() {
            let fail = |message: String, remedy: String| {
                Err(Diagnostic::new(format!("{}[{index}]", request.key), message, remedy))
            };
            let Some((number, _, link)) = self.scenario.link.get_full(name) else {
                let known: Vec<_> = self.scenario.link.keys().map(String::as_str).collect();
                return fail(format!("there is no link {name:?}"), suggest::remedy(name, &known));
            };
            let Some((forward, next)) = ends(link, at) else {
                return fail(
                    format!(
                        "link `{name}` joins `{}` and `{}`, but the route is at `{at}` here",
                        link.from, link.to
                    ),
                    format!("name the links from `{}` to `{}` in order", request.from, request.to),
                );
            };
            let direction = if forward { link.forward() } else { link.reverse() };
            if direction.is_none() {
                return fail(
                    format!("link `{name}` is one-way and does not lead from `{at}` to `{next}`"),
                    format!(
                        "give it `{}`, or take another link",
                        if forward { "forward" } else { "reverse" }
                    ),
                );
            }
            let last = index + 1 == written.len();
            let node = self.scenario.node.get_index_of(next);
            if !last && node.is_some_and(|node| !self.passable(node, request.members)) {
                return fail(
                    format!("the route passes the group `{next}`, but not which of its members"),
                    "a flow passes only groups that are not larger than its own".into(),
                );
            }
            hops.push(Hop { link: number, forward });
            at = next;
        }
        if at != request.to || hops.is_empty() {
            return Err(Diagnostic::new(
                &request.key,
                format!("the route ends at `{at}`, not at `{}`", request.to),
                format!("name all links from `{}` to `{}` in order", request.from, request.to),
            ));
        }
        Ok(hops)
    }

    /// Breadth first: the fewest links, and of these the first in the file.
    fn search(
        &self,
        request: &PathRequest<'_>,
        passable: impl Fn(usize) -> bool,
    ) -> Option<Vec<Hop>> {
        let start = self.scenario.node.get_index_of(request.from)?;
        let goal = self.scenario.node.get_index_of(request.to)?;
        let mut reached: Vec<Option<(Hop, usize)>> = vec![None; self.leaving.len()];
        let mut waiting = VecDeque::from([start]);
        while let Some(node) = waiting.pop_front() {
            if node != start && !passable(node) {
                continue;
            }
            for (hop, next) in &self.leaving[node] {
                if *next != start && reached[*next].is_none() {
                    reached[*next] = Some((*hop, node));
                    if *next == goal {
                        return Some(unwind(&reached, start, goal));
                    }
                    waiting.push_back(*next);
                }
            }
        }
        None
    }

    /// Whether a flow of so many members knows which member of this node it passes.
    fn passable(&self, node: usize, members: u32) -> bool {
        let count = self.scenario.node.get_index(node).map_or(1, |(_, node)| node.count);
        count <= members
    }
}

impl PathRequest<'_> {
    fn reversed(&self) -> Self {
        Self { key: String::new(), from: self.to, to: self.from, written: None, ..*self }
    }
}

/// Whether a link is crossed forward from this node, and where it leads.
fn ends<'l>(link: &'l Link, at: &str) -> Option<(bool, &'l str)> {
    match at {
        _ if link.from == at => Some((true, &link.to)),
        _ if link.to == at => Some((false, &link.from)),
        _ => None,
    }
}

fn unwind(reached: &[Option<(Hop, usize)>], start: usize, goal: usize) -> Vec<Hop> {
    let mut hops = Vec::new();
    let mut node = goal;
    while let (true, Some((hop, before))) = (node != start, reached[node]) {
        hops.push(hop);
        node = before;
    }
    hops.reverse();
    hops
}
