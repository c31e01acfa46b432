//! From a scenario to a world: links for each member of a group, ends, applications and routes.

mod measurement;

use std::sync::Arc;

use gridhaul_core::link::LinkSet;
use gridhaul_core::load::{
    Application, DEFAULT_START_SPREAD, DeadlineCounter, Demand, InFlightMessages, SharedLoad,
    StartSchedule,
};
use gridhaul_core::random::RandomStream;
use gridhaul_core::tcp::Connection;
use gridhaul_data::trace::Playback;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Direction, Flow as FlowSpec, Load, Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant};

use self::measurement::{ledger, recorder};
use crate::audit::LinkAudit;
use crate::capture::Tap;
use crate::collect::Wiring;
use crate::events::Events;
use crate::flow::{Ends, Flow};
use crate::layout::{Layout, members};
use crate::network::{ARRIVED, Link, Network, Observer};
use crate::packet::Packet;
use crate::proxy::ProxyWiring;
use crate::stacks::{Stacks, stacks};
use crate::world::World;

/// Builds the world of one run.
pub(crate) fn build(
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
    record: bool,
) -> Result<World, RunError> {
    let links = links(scenario, layout, replication, record)?;
    let mut routes = Vec::new();
    let mut flows = Vec::new();
    let mut starts = Vec::new();
    let mut playbacks = Vec::new();
    let mut into = Vec::new();
    let wiring = Wiring::new(scenario, &layout.plan);
    let mut proxies = ProxyWiring::new(scenario)?;
    for (row, (name, spec)) in scenario.flow.iter().enumerate() {
        let way = &layout.plan.flows[row];
        let group = members(scenario, &spec.from, &spec.to);
        let first = flows.len() as u32;
        let to_stack = spec.to_stack.as_ref().filter(|_| way.next.is_none());
        let names = [spec.stack.as_ref(), to_stack.or(spec.stack.as_ref())];
        let mut stacks = stacks(scenario, names, spec.ip);
        let load = SharedLoad::from(&spec.load);
        let opening = StartSchedule::of(spec, scenario.connections(spec));
        let marks = [0, 1].map(|way| proxies.marks(row, way));
        let mut begins = [u32::MAX; 2];
        flows.reserve_exact((group * u64::from(spec.count)) as usize);
        for number in 0..group * u64::from(spec.count) {
            let member = number % group;
            let out = route(layout.directions.of(&way.out, member, group), &marks[0]);
            let back = route(layout.directions.of(&way.back, member, group), &marks[1]);
            begins = [share(&mut routes, begins[0], &out), share(&mut routes, begins[1], &back)];
            let seed = MemberSeed { scenario, name, replication, number };
            let sizes = || wiring.sizes(row);
            let waits = wiring.receive(&mut stacks, way.next, (member, group), sizes);
            let (demand, start, opens) = begin(&seed, &load, &opening);
            // A connection that exists from the start has nothing to open.
            let opens = if opens_by_handshake(spec, &stacks) { opens } else { start };
            starts.push(opens);
            let app = Some(Application::new(demand, start, ()));
            let ends = ends(&seed, spec, &stacks);
            let mut flow =
                Flow { row: row as u32, ends, app, routes: begins, watch: u64::MAX, cwnd: 0 };
            proxies.add((flows.len() as u32, row), begins, || seed.isns(), &stacks);
            if waits && let Ends::Tcp(ends) = &mut flow.ends {
                ends[1].read_on_demand();
            }
            flows.push(flow);
            into.push(wiring.outlet_for(way.next, member, group));
        }
        playbacks.extend(Playback::open(scenario, name, first..flows.len() as u32)?);
    }
    let first = flows.len() as u32;
    for (flow, outlet, opens) in upstream(scenario, layout, &wiring, replication, &mut routes) {
        flows.push(flow);
        into.push(outlet);
        starts.push(opens);
    }
    let proxies = proxies.finish(flows.len());
    let recorder = recorder(scenario, layout, &flows, &starts).filter(|_| record);
    let start = Instant::ZERO;
    let (warmup, end) = (start + scenario.warmup, start + scenario.duration);
    let ledger = ledger(scenario, layout, &flows, warmup..end);
    let events = events(&links, flows.len(), playbacks.len(), proxies.units.len());
    Ok(World {
        net: Network { events, links, detached: Packet::blank(), routes },
        ledger,
        before: None,
        collect: wiring.build(into, first),
        flows,
        under_way: InFlightMessages::default(),
        starts,
        proxies,
        playbacks,
        failure: None,
        recorder,
    })
}

/// The event queue of a run.
fn events(
    links: &LinkSet<Packet, Observer>,
    flows: usize,
    playbacks: usize,
    units: usize,
) -> Events {
    let events = Events::new(links.len(), flows, playbacks, units);
    if links.iter().all(Link::is_plain) { events.with_monotonic_links() } else { events }
}

/// The connections that lead on from collectors, the outlet into which each delivers, and when each
/// opens.
fn upstream(
    scenario: &Scenario,
    layout: &Layout,
    wiring: &Wiring<'_>,
    replication: u32,
    routes: &mut Vec<u32>,
) -> Vec<(Flow, u32, Instant)> {
    let mut flows = Vec::new();
    for (index, group) in layout.plan.groups.iter().enumerate() {
        let name = group.row_name();
        let names = [group.stack.as_ref(), group.to_stack.as_ref()];
        let mut stacks = stacks(scenario, names, group.ip);
        for member in 0..group.count {
            let begins = [&group.out, &group.back].map(|hops| {
                let hops = layout.directions.of(hops, member, group.count);
                share(routes, u32::MAX, &route(hops, &[]))
            });
            let seed = MemberSeed { scenario, name: &name, replication, number: member };
            let sizes = || wiring.carried(index);
            let place = (member, group.count);
            let waits = wiring.receive(&mut stacks, group.next, place, sizes);
            let mut ends = connections(&seed, &stacks);
            ends[1].receive_only();
            if waits {
                ends[1].read_on_demand();
            }
            let row = layout.group_row[index];
            let flow = Flow::upstream(row, ends, begins);
            // They stay open for long: they do not open all at the same instant.
            let spread = wiring.start_spread(group).unwrap_or(DEFAULT_START_SPREAD);
            let spread =
                if group.count > 1 && stacks.0.handshake { spread } else { Duration::ZERO };
            let opens = Instant::ZERO + seed.chance("start").uniform(spread);
            flows.push((flow, wiring.outlet_for(group.next, member, group.count), opens));
        }
    }
    flows
}

/// Who judges the messages of each flow, if they have a deadline.
fn judges(scenario: &Scenario, layout: &Layout) -> Vec<Option<DeadlineCounter>> {
    let (warmup, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
    let judge = |deadline| DeadlineCounter::new(deadline, warmup, end);
    let flows = scenario.flow.values().map(|flow| flow.effective_deadline().map(judge));
    let upstream = layout.flows[scenario.flow.len()..].iter().map(|_| None);
    flows.chain(upstream).collect()
}

/// A route with its end: the directions of its hops, and the marks of the proxies, each behind so
/// many hops, in order.
fn route(directions: impl Iterator<Item = u32>, marks: &[(usize, u32)]) -> Vec<u32> {
    let mut marks = marks.iter().peekable();
    let mut route = Vec::new();
    for (index, direction) in directions.enumerate() {
        route.push(direction);
        route.extend(marks.next_if(|(after, _)| *after == index + 1).map(|(_, mark)| mark));
    }
    route.push(ARRIVED);
    route
}

/// Where a route begins in the list of routes: `previous`, that of the member before, if it is the
/// same, or else behind all others.
fn share(routes: &mut Vec<u32>, previous: u32, route: &[u32]) -> u32 {
    if routes.get(previous as usize..).is_some_and(|known| known.starts_with(route)) {
        return previous;
    }
    let begin = routes.len() as u32;
    routes.extend(route);
    begin
}

fn links(
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
    record: bool,
) -> Result<LinkSet<Packet, Observer>, RunError> {
    let observer = |name: &str, member, keys: &Direction| {
        let tapped = record && member == 0 && scenario.record.captures(name);
        Observer { audit: LinkAudit::new(keys), tap: tapped.then(|| Box::new(Tap::new(name))) }
    };
    LinkSet::of_scenario(scenario, &layout.directions, replication, observer)
        .map_err(|diagnostic| RunError::Invalid(diagnostic.to_string()))
}

/// Where the chance of one member of a flow comes from.
struct MemberSeed<'a> {
    scenario: &'a Scenario,
    name: &'a str,
    replication: u32,
    number: u64,
}

impl MemberSeed<'_> {
    fn chance(&self, purpose: &str) -> RandomStream {
        RandomStream::named(self.scenario.seed, self.replication, self.name, self.number, purpose)
    }

    /// Initial sequence numbers of both ends.
    fn isns(&self) -> [u32; 2] {
        let mut chance = self.chance("isn");
        [chance.below(1 << 32) as u32, chance.below(1 << 32) as u32]
    }
}

fn ends(seed: &MemberSeed<'_>, spec: &FlowSpec, stacks: &Stacks) -> Ends {
    if spec.transport != Transport::Tcp {
        return Ends::Datagram {
            echo: spec.transport == Transport::Echo,
            header: spec.ip.datagram_headers().get() as u8,
        };
    }
    let mut ends = connections(seed, stacks);
    if !matches!(spec.load, Load::RequestResponse(_) | Load::Transfer(_)) {
        // The others never write at the far end, nor close it.
        ends[1].receive_only();
    }
    Ends::Tcp(ends)
}

/// The two ends of a connection.
fn connections(seed: &MemberSeed<'_>, stacks: &Stacks) -> [Connection; 2] {
    let (near, far) = stacks.clone();
    let [isn, peer_isn] = seed.isns();
    if near.handshake {
        [Connection::connect(near, isn), Connection::listen(far, peer_isn)]
    } else {
        [
            Connection::established(Arc::clone(&near), isn, &far, peer_isn),
            Connection::established(far, peer_isn, &near, isn),
        ]
    }
}

/// What a member demands, when its load begins, and when its connection opens.
fn begin(
    seed: &MemberSeed<'_>,
    load: &SharedLoad<'_>,
    opening: &StartSchedule,
) -> (Demand, Instant, Instant) {
    let mut chance = seed.chance("start");
    let begins = opening.load_begins(&mut chance);
    let demand = Demand::of_member(load, begins, seed.chance("load"));
    let opens = opening.connection_opens(begins, &demand, &mut chance);
    (demand, begins, opens)
}

/// Whether a flow has connections that are opened by a handshake.
fn opens_by_handshake(spec: &FlowSpec, stacks: &Stacks) -> bool {
    spec.transport == Transport::Tcp && stacks.0.handshake
}
