//! Creates the hybrid routers of a scenario and finds the routes that cross their links.

use std::collections::BTreeMap;

use gridhaul_core::random::RandomStream;
use gridhaul_core::router::{LinkSettings, Machine, Settings};
use gridhaul_scenario::scenario::{
    Hop, HybridRouter as RouterKeys, HybridRouterClass, OpeningSide, Scenario,
};
use gridhaul_scenario::units::Instant;

use super::{HybridRouter, HybridRouters, RouterLink};
use crate::flow::Flow;
use crate::layout::Layout;
use crate::network::END_OF_ROUTE;

/// A place in the list of routes at which packets leave a router over one of its links.
struct Departure {
    /// Row of the flow.
    row: usize,
    /// Side of the router on which the connection was opened.
    opened_by: OpeningSide,
}

impl HybridRouters {
    /// The routers that are on. The routes of their probes are added to the list of routes, and
    /// those of flows begin with the first link of their class.
    pub(crate) fn new(
        scenario: &Scenario,
        layout: &Layout,
        replication: u32,
        flows: &[Flow],
        routes: &mut Vec<u32>,
    ) -> Self {
        let keys: Vec<_> = scenario.hybrid_routers().collect();
        let end_of_flows = routes.len();
        let routers = keys.iter().zip(1..).map(|(&(name, router), session)| {
            let named = (name.as_str(), router);
            let peer = keys.iter().position(|(other, _)| **other == router.peer).unwrap_or(0);
            let links = links(scenario, layout, named, keys[peer].1, routes);
            let departures = departures(&links, flows, &routes[..end_of_flows]);
            let starts_at = first_probe(scenario, replication, named);
            let machine = Machine::new(starts_at, settings(router, session));
            let mut created = HybridRouter {
                machine,
                starts_at,
                peer: peer as u32,
                links,
                departures: vec![Vec::new(); router.class.len() + 1],
            };
            for (index, departure) in departures {
                created.departures[class_of(scenario, router, &departure)].push(index);
            }
            for (class, indices) in created.departures.iter().enumerate() {
                let first = created.links[created.machine.selected(class)].direction;
                indices.iter().for_each(|index| routes[*index as usize] = first);
            }
            created
        });
        let routers = routers.collect();
        Self { routers, flows: flows.len() as u32, in_transit: BTreeMap::new(), next_id: 0 }
    }
}

/// When a router sends its first probe: routers do not start at the same time.
fn first_probe(
    scenario: &Scenario,
    replication: u32,
    (name, router): (&str, &RouterKeys),
) -> Instant {
    let mut random = RandomStream::named(scenario.seed, replication, name, 0, "first probe");
    Instant::ZERO + random.uniform(router.probe_interval)
}

fn settings(router: &RouterKeys, session: u32) -> Settings {
    let link = |name: &String| LinkSettings {
        name: name.clone(),
        probe_interval: router.probe_interval,
        large_probe: None,
        has_carrier: true,
    };
    let number = |name: &String| router.links.iter().position(|link| link == name);
    // Links that a class does not name follow in the order of the router.
    let order = |class: &HybridRouterClass| -> Vec<usize> {
        let rest = router.links.iter().filter(|link| !class.links.contains(link));
        class.links.iter().chain(rest).filter_map(number).collect()
    };
    let classes = router.class.values().map(order);
    Settings {
        session,
        detection_time: router.detection_time,
        hold_time: router.hold_time,
        links: router.links.iter().map(link).collect(),
        classes: classes.chain([(0..router.links.len()).collect()]).collect(),
    }
}

/// The links of a router, with a route for the probes of each.
fn links(
    scenario: &Scenario,
    layout: &Layout,
    (name, router): (&str, &RouterKeys),
    peer: &RouterKeys,
    routes: &mut Vec<u32>,
) -> Vec<RouterLink> {
    let link = |link_name: &String| {
        let (index, _, link) = scenario.link.get_full(link_name)?;
        let hop = Hop { link: index, forward: link.from == name };
        let direction = layout.directions.of(&[hop], 0, 1).next()?;
        let at_peer = peer.links.iter().position(|other| other == link_name)?;
        let probe_route = routes.len() as u32;
        routes.extend([direction, END_OF_ROUTE]);
        Some(RouterLink { direction, probe_route, at_peer })
    };
    router.links.iter().filter_map(link).collect()
}

/// The places in the list of routes at which packets leave a router over one of these links.
/// Members of a group that have the same route share its places.
fn departures(links: &[RouterLink], flows: &[Flow], routes: &[u32]) -> BTreeMap<u32, Departure> {
    let mut found = BTreeMap::new();
    for flow in flows {
        // The `from` end opens connections: their first packet crosses the router on its route.
        let opening = [OpeningSide::ThisSide, OpeningSide::Peer];
        for (start, opened_by) in flow.routes.into_iter().zip(opening) {
            let route = routes.iter().enumerate().skip(start as usize);
            for (index, entry) in route.take_while(|(_, entry)| **entry != END_OF_ROUTE) {
                if links.iter().any(|link| link.direction == *entry) {
                    let row = flow.row as usize;
                    found.insert(index as u32, Departure { row, opened_by });
                }
            }
        }
    }
    found
}

/// Number of the class of the packets that leave a router at a place: the last number is that of
/// packets without a class.
fn class_of(scenario: &Scenario, router: &RouterKeys, departure: &Departure) -> usize {
    let flow = scenario.flow.get_index(departure.row).map(|(name, _)| name);
    let has_packets = |class: &HybridRouterClass| {
        let is_named = flow.is_some_and(|flow| class.flows.contains(flow));
        (class.flows.is_empty() || is_named)
            && class.opened_by.is_none_or(|side| side == departure.opened_by)
    };
    router.class.values().position(has_packets).unwrap_or(router.class.len())
}
