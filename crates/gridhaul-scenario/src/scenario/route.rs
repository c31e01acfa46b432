//! Routing: the paths of flows, in the same way for all backends.

use std::collections::VecDeque;

use super::error::Diagnostic;
use super::{Direction, FloodAttack, Flow, Link, Scenario, Transport, suggest};

/// One direction of a link on the path of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hop {
    /// Index of the link in [`Scenario::link`].
    pub link: usize,
    /// Whether packets cross the link from its `from` to its `to` node, or in the reverse
    /// direction.
    pub forward: bool,
}

/// The path of a flow and its reverse path. Member i of n uses link ⌊i·k/n⌋ of the k links of an
/// entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routes {
    /// Path from `from` to `to`.
    pub forward: Vec<Hop>,
    /// Reverse path from `to` to `from`; empty for datagrams, which have no reply.
    pub reverse: Vec<Hop>,
}

impl Hop {
    /// The direction of the link, with its keys.
    ///
    /// # Panics
    /// The hop does not belong to this scenario.
    #[must_use]
    pub fn direction(self, scenario: &Scenario) -> &Direction {
        let link = &scenario.link[self.link];
        let direction = if self.forward { link.forward() } else { link.reverse() };
        direction.expect("a route consists of existing directions")
    }
}

impl Hop {
    /// The node from which packets enter the hop.
    ///
    /// # Panics
    /// The hop does not belong to this scenario.
    #[must_use]
    pub fn source(self, scenario: &Scenario) -> &str {
        let link = &scenario.link[self.link];
        if self.forward { &link.from } else { &link.to }
    }
}

impl Scenario {
    /// Number of flows that one entry between these nodes represents: one per member of the larger
    /// group. `None` if a node does not exist.
    #[must_use]
    pub fn members(&self, from: &str, to: &str) -> Option<u32> {
        Some(self.node.get(from)?.count.max(self.node.get(to)?.count))
    }

    /// Number of connections that a flow entry represents: `count` per member. Nodes that do not
    /// exist count as one.
    #[must_use]
    pub fn connections(&self, flow: &Flow) -> u64 {
        u64::from(self.members(&flow.from, &flow.to).unwrap_or(1)) * u64::from(flow.count)
    }

    /// Port of the `from` end of a connection in captures of the simulator, by the number of the
    /// connection among all connections of the scenario.
    #[must_use]
    pub const fn captured_port(connection: u64) -> u16 {
        1024 + (connection % 60_000) as u16
    }

    /// Number of links that this entry represents: one per member of the larger group, or of the
    /// smaller group if the link is shared (one link between a group and a single node).
    #[must_use]
    pub fn link_members(&self, link: &Link) -> u32 {
        let count = |name: &str| self.node.get(name).map_or(1, |node| node.count);
        let (from, to) = (count(&link.from), count(&link.to));
        if link.shared { from.min(to) } else { from.max(to) }
    }

    /// The path and reverse path of a flow: the given routes, or else the paths with the fewest
    /// links; of equally short paths the one whose links come first in the file.
    ///
    /// # Errors
    /// There is no such flow or no path, or a given route does not connect the nodes.
    pub fn routes(&self, flow: &str) -> Result<Routes, Diagnostic> {
        let Some(found) = self.flow.get(flow) else {
            let known: Vec<_> = self.flow.keys().map(String::as_str).collect();
            let remedy = suggest::remedy(flow, &known);
            return Err(Diagnostic::new("flow", format!("there is no flow {flow:?}"), remedy));
        };
        Network::new(self).routes(flow, found)
    }

    /// The reverse path from the `to` end of a flow to its `from` end, also for datagrams, which a
    /// user's program may answer. `None` if there is no such path.
    #[must_use]
    pub fn reverse_path(&self, flow: &str) -> Option<Vec<Hop>> {
        Network::new(self).reverse_path(flow, self.flow.get(flow)?).ok()
    }
}

/// Links by the node that they leave, so that a search visits each link once.
pub(super) struct Network<'s> {
    scenario: &'s Scenario,
    /// For each node, the hops that leave it and the nodes they lead to.
    leaving: Vec<Vec<(Hop, usize)>>,
}

/// A search for the path or reverse path of a flow.
struct PathRequest<'a> {
    key: String,
    from: &'a str,
    to: &'a str,
    route: Option<&'a [String]>,
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
            route: flow.route.as_deref(),
            members: self.members(flow),
        })?;
        let reverse = match flow.transport {
            Transport::Datagram => Vec::new(),
            Transport::Tcp | Transport::Echo | Transport::Coap => self.reverse_path(name, flow)?,
        };
        Ok(Routes { forward, reverse })
    }

    /// The path of the datagrams of a flood.
    pub(super) fn flood_path(
        &self,
        key: &str,
        flood: &FloodAttack,
    ) -> Result<Vec<Hop>, Diagnostic> {
        self.path(&PathRequest {
            key: format!("{key}.route"),
            from: &flood.from,
            to: &flood.to,
            route: flood.route.as_deref(),
            members: self.scenario.members(&flood.from, &flood.to).unwrap_or(1),
        })
    }

    fn reverse_path(&self, name: &str, flow: &Flow) -> Result<Vec<Hop>, Diagnostic> {
        self.path(&PathRequest {
            key: format!("flow.{name}.reverse_route"),
            from: &flow.to,
            to: &flow.from,
            route: flow.reverse_route.as_deref(),
            members: self.members(flow),
        })
    }

    fn members(&self, flow: &Flow) -> u32 {
        self.scenario.members(&flow.from, &flow.to).unwrap_or(1)
    }

    fn path(&self, request: &PathRequest<'_>) -> Result<Vec<Hop>, Diagnostic> {
        if let Some(route) = request.route {
            return self.follow(request, route);
        }
        if let Some(found) = self.search(request, |node| self.passable(node, request.members)) {
            return Ok(found);
        }
        let message = format!("there is no path from `{}` to `{}`", request.from, request.to);
        // The path does not exist; further searches only find out why.
        if self.search(request, |_| true).is_some() {
            return Err(Diagnostic::new(
                &request.key,
                format!("{message} except through a group, whose member is not determined"),
                "a flow may pass only groups that are not larger than its own; insert a single \
                 node",
            ));
        }
        let remedy = match self.search(&request.reversed(), |_| true) {
            Some(_) => {
                "the links between them are one-way: add the reverse direction to one of them"
            }
            None => "add a link between them, or links through other nodes",
        };
        Err(Diagnostic::new(&request.key, message, remedy))
    }

    /// Follows a given route from link to link.
    fn follow(&self, request: &PathRequest<'_>, route: &[String]) -> Result<Vec<Hop>, Diagnostic> {
        let (mut at, mut hops) = (request.from, Vec::new());
        for (index, name) in route.iter().enumerate() {
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
                        "link `{name}` connects `{}` and `{}`, but the route is at `{at}` here",
                        link.from, link.to
                    ),
                    format!("list the links from `{}` to `{}` in order", request.from, request.to),
                );
            };
            let direction = if forward { link.forward() } else { link.reverse() };
            if direction.is_none() {
                return fail(
                    format!("link `{name}` is one-way and does not lead from `{at}` to `{next}`"),
                    format!(
                        "add `{}` to it, or use another link",
                        if forward { "forward" } else { "reverse" }
                    ),
                );
            }
            let last = index + 1 == route.len();
            let node = self.scenario.node.get_index_of(next);
            if !last && node.is_some_and(|node| !self.passable(node, request.members)) {
                return fail(
                    format!("the route passes the group `{next}`, whose member is not determined"),
                    "a flow may pass only groups that are not larger than its own".into(),
                );
            }
            hops.push(Hop { link: number, forward });
            at = next;
        }
        if at != request.to || hops.is_empty() {
            return Err(Diagnostic::new(
                &request.key,
                format!("the route ends at `{at}`, not at `{}`", request.to),
                format!("list all links from `{}` to `{}` in order", request.from, request.to),
            ));
        }
        Ok(hops)
    }

    /// Breadth-first search: the path with the fewest links; among equals, the first in the file.
    fn search(
        &self,
        request: &PathRequest<'_>,
        passable: impl Fn(usize) -> bool,
    ) -> Option<Vec<Hop>> {
        let start = self.scenario.node.get_index_of(request.from)?;
        let goal = self.scenario.node.get_index_of(request.to)?;
        let mut reached: Vec<Option<(Hop, usize)>> = vec![None; self.leaving.len()];
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            // A group at the start may be of any size: the flow begins at each of its members.
            if node != start && !passable(node) {
                continue;
            }
            for (hop, next) in &self.leaving[node] {
                if *next != start && reached[*next].is_none() {
                    reached[*next] = Some((*hop, node));
                    if *next == goal {
                        return Some(unwind(&reached, start, goal));
                    }
                    queue.push_back(*next);
                }
            }
        }
        None
    }

    /// Whether the member of this node is determined for a flow with `members` members.
    fn passable(&self, node: usize, members: u32) -> bool {
        let count = self.scenario.node.get_index(node).map_or(1, |(_, node)| node.count);
        count <= members
    }
}

impl PathRequest<'_> {
    fn reversed(&self) -> Self {
        Self { key: String::new(), from: self.to, to: self.from, route: None, ..*self }
    }
}

/// Whether the link leads forward from this node, and to which node.
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
