//! Builds the state of a run from a scenario: links for each member of a group, ends, applications
//! and routes.

mod attacks;
mod equal_paths;
mod flow_range;
mod measurement;

use std::sync::Arc;

use gridhaul_core::link::LinkSet;
use gridhaul_core::load::{
    Application, CoapMember, CoapRules, ConnectionManager, ConnectionRules, DEFAULT_START_SPREAD,
    DeadlineCounter, Demand, IdleRules, InFlightMessages, SessionRules, SharedLoad, StartSchedule,
};
use gridhaul_core::random::RandomStream;
use gridhaul_core::tcp::Connection;
use gridhaul_data::trace::Playback;
use gridhaul_scenario::backend::{Progress, RunError};
use gridhaul_scenario::scenario::{Direction, Flow as FlowSpec, Load, Scenario, Transport};
use gridhaul_scenario::units::{Duration, Instant};

use self::attacks::{add_attacks, alterations};
use self::equal_paths::{EqualPaths, RowRoutes};
use self::flow_range::flow_range;
use self::measurement::{counters, recorder};
use crate::addresses::addresses;
use crate::aggregation::{GroupMember, Wiring};
use crate::audit::{LinkAudit, directions_on};
use crate::capture::Tap;
use crate::event_log::EventLogs;
use crate::events::Events;
use crate::external_messages::ExternalMessages;
use crate::flow::{Ends, Flow};
use crate::fragmentation::Fragmentation;
use crate::hybrid_router::HybridRouters;
use crate::layout::{Layout, members};
use crate::managed_flow::ManagedFlow;
use crate::network::{END_OF_ROUTE, Link, Network, Observer};
use crate::packet::Packet;
use crate::proxy::ProxyWiring;
use crate::stacks::{Stacks, negotiate_mss, stacks};
use crate::world::World;

pub(crate) use self::attacks::unsupported_attacks;
pub(crate) use self::equal_paths::unsupported_paths;

/// Members that are built between two checks for an interruption: a few milliseconds.
const MEMBERS_BETWEEN_CHECKS: u64 = 4096;

/// Builds the state of one run. An interruption ends it, because millions of members take seconds.
pub(crate) fn build(
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
    progress: &dyn Progress,
) -> Result<World, RunError> {
    let mut links = links(scenario, layout, replication, progress)?;
    let (mut routes, mut flows, mut starts, mut forwarded_by) = (vec![], vec![], vec![], vec![]);
    let (mut playbacks, mut external) = (Vec::new(), ExternalMessages::default());
    let wiring = Wiring::new(scenario, &layout.aggregation);
    let mut proxies = ProxyWiring::new(scenario)?;
    for (row, (name, spec)) in scenario.flow.iter().enumerate() {
        let (stage, first) = (&layout.aggregation.flows[row], flows.len() as u32);
        let group = members(scenario, &spec.from, &spec.to);
        let to_stack = spec.to_stack.as_ref().filter(|_| stage.next.is_none());
        let names = [spec.stack.as_ref(), to_stack.or(spec.stack.as_ref())];
        let mut stacks = stacks(scenario, names, spec.ip);
        negotiate_mss(scenario, &mut stacks, &stage.forward, &stage.reverse);
        let load = SharedLoad::from(&spec.load);
        let session = SessionRules::of(scenario, name, spec);
        let schedule = StartSchedule::of(spec, scenario.connections(spec));
        let entries = [0, 1].map(|direction| proxies.route_entries(row, direction));
        let mut row_routes = RowRoutes::new(scenario, spec, stage, entries);
        flows.reserve_exact((group * u64::from(spec.count)) as usize);
        for number in 0..group * u64::from(spec.count) {
            ensure_wanted(number, progress)?;
            let member = number % group;
            let seed = MemberSeed { scenario, name, replication, number };
            let route_starts = row_routes.of_member(&seed, (layout, group), &mut routes);
            let place = GroupMember { number: member, of: group };
            let backpressure = wiring.receive(&mut stacks, stage.next, place, || wiring.sizes(row));
            let (demand, start, opens) = begin(&seed, &load, &schedule);
            // A connection without a handshake does not open.
            starts.push(if opens_by_handshake(spec, &stacks) { opens } else { start });
            let app = Application::new(demand.acknowledged(session.as_ref()), start, ());
            let mut flow = member_flow(&seed, spec, (row as u32, route_starts), &stacks, app);
            proxies.add((flows.len() as u32, row), route_starts, || seed.isns(), &stacks);
            if backpressure && let Ends::Tcp(ends) = &mut flow.ends {
                ends[1].read_on_demand();
            }
            flows.push(flow);
            forwarded_by.push(wiring.upstream_for(stage.next, member, group));
        }
        manage_ends(&mut flows[first as usize..], scenario, (row, replication), &stacks, group);
        confirm_messages(&mut flows[first as usize..], scenario, row, replication);
        external.add_row(spec, row as u32, first..flows.len() as u32);
        playbacks.extend(Playback::open(scenario, name, first..flows.len() as u32)?);
    }
    let own = flows.len() as u32;
    for (flow, next, opens) in upstream(scenario, layout, &wiring, replication, &mut routes) {
        flows.push(flow);
        forwarded_by.push(next);
        starts.push(opens);
    }
    let proxies = proxies.finish(flows.len());
    let hybrid_routers = HybridRouters::new(scenario, layout, replication, &flows, &mut routes);
    identify_flows(&mut links, scenario, layout, replication, &flows);
    let events = events(&links, flows.len(), &playbacks, &external, proxies.instances.len())
        .with_routers(hybrid_routers.count());
    Ok(World {
        event_logs: EventLogs::new(scenario, &flows, replication, progress)?,
        recorder: recorder(scenario, replication, layout, (&flows, &starts), progress)?,
        net: Network { events, links, detached: Packet::blank(), routes },
        counters: counters(scenario, layout, &flows),
        warmup: None,
        aggregators: wiring.build(forwarded_by, own),
        flows,
        in_flight: InFlightMessages::default(),
        starts,
        proxies,
        hybrid_routers,
        playbacks,
        alterations: alterations(scenario, external.is_active()),
        fragmentation: Fragmentation::new(scenario, &layout.directions),
        external,
        failure: None,
    })
}

/// Ends the building of members after an interruption.
fn ensure_wanted(number: u64, progress: &dyn Progress) -> Result<(), RunError> {
    let is_checked = number.is_multiple_of(MEMBERS_BETWEEN_CHECKS);
    if is_checked && progress.is_interrupted() { Err(RunError::Interrupted) } else { Ok(()) }
}

/// The flow of one member.
fn member_flow(
    seed: &MemberSeed<'_>,
    spec: &FlowSpec,
    (row, routes): (u32, [u32; 2]),
    stacks: &Stacks,
    app: Application,
) -> Flow {
    let ends = ends(seed, spec, stacks);
    Flow { row, ends, app: Some(app), routes, notify_at: u64::MAX, cwnd: 0 }
}

/// Makes the flows known to the schedulers and shapers of the links, and to their attackers.
fn identify_flows(
    links: &mut LinkSet<Packet, Observer>,
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
    flows: &[Flow],
) {
    links.classify_flows(scenario, |row| flow_range(flows, row));
    add_attacks(links, scenario, layout, replication, flows);
}

/// The event queue of a run with these recorded traces and external messages.
fn events(
    links: &LinkSet<Packet, Observer>,
    flows: usize,
    playbacks: &[Playback],
    external: &ExternalMessages,
    instances: usize,
) -> Events {
    let (traces, channels) = (playbacks.len(), external.channels());
    let events = Events::new(links.len() + links.media(), flows, traces + channels, instances);
    // A session may change its links.
    let is_monotonic = channels == 0 && links.iter().all(Link::is_plain);
    if is_monotonic { events.with_monotonic_links() } else { events }
}

/// The upstream connections of aggregators, each with the upstream connection that forwards its
/// data and the time at which it opens.
fn upstream(
    scenario: &Scenario,
    layout: &Layout,
    wiring: &Wiring<'_>,
    replication: u32,
    routes: &mut Vec<u32>,
) -> Vec<(Flow, u32, Instant)> {
    let mut flows = Vec::new();
    for (index, group) in layout.aggregation.groups.iter().enumerate() {
        let name = group.row_name();
        let names = [group.stack.as_ref(), group.to_stack.as_ref()];
        let mut stacks = stacks(scenario, names, group.ip);
        negotiate_mss(scenario, &mut stacks, &group.forward, &group.reverse);
        for member in 0..group.count {
            let seed = MemberSeed { scenario, name: &name, replication, number: member };
            let paths = [(&group.forward, "path"), (&group.reverse, "reverse path")];
            let route_starts = paths.map(|(path, purpose)| {
                let hops = EqualPaths::new(scenario, path, false).select(|| seed.stream(purpose));
                let hops = layout.directions.of(&hops, member, group.count);
                share_route(routes, u32::MAX, &route(hops, &[]))
            });
            let sizes = || wiring.carried(index);
            let member_of = GroupMember { number: member, of: group.count };
            let backpressure = wiring.receive(&mut stacks, group.next, member_of, sizes);
            let mut ends = connections(&seed, &stacks);
            ends[1].receive_only();
            if backpressure {
                ends[1].read_on_demand();
            }
            let row = layout.group_row[index];
            let flow = Flow::upstream(row, ends, route_starts);
            // Upstream connections stay open, and do not all open at the same instant.
            let spread = wiring.start_spread(group).unwrap_or(DEFAULT_START_SPREAD);
            let spread =
                if group.count > 1 && stacks.0.handshake { spread } else { Duration::ZERO };
            let opens = Instant::ZERO + seed.stream("start").uniform(spread);
            flows.push((flow, wiring.upstream_for(group.next, member, group.count), opens));
        }
    }
    flows
}

/// The deadline check of each flow whose messages have a deadline.
fn deadline_checks(scenario: &Scenario, layout: &Layout) -> Vec<Option<DeadlineCounter>> {
    let (warmup, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
    let check = |deadline| DeadlineCounter::new(deadline, warmup, end);
    let flows = scenario.flow.values().map(|flow| flow.effective_deadline().map(check));
    let upstream = layout.flows[scenario.flow.len()..].iter().map(|_| None);
    flows.chain(upstream).collect()
}

/// A route: the directions of its hops, the entries of proxies (each with the number of hops before
/// it, in order), and the end marker.
fn route(directions: impl Iterator<Item = u32>, proxies: &[(usize, u32)]) -> Vec<u32> {
    let mut proxies = proxies.iter().peekable();
    let mut route = Vec::new();
    for (index, direction) in directions.enumerate() {
        route.push(direction);
        route.extend(proxies.next_if(|(after, _)| *after == index + 1).map(|(_, entry)| entry));
    }
    route.push(END_OF_ROUTE);
    route
}

/// The index at which a route begins in the list of routes: `previous`, the index of the previous
/// member's route, if both are equal; otherwise the route is appended.
fn share_route(routes: &mut Vec<u32>, previous: u32, route: &[u32]) -> u32 {
    if routes.get(previous as usize..).is_some_and(|known| known.starts_with(route)) {
        return previous;
    }
    let start = routes.len() as u32;
    routes.extend(route);
    start
}

fn links(
    scenario: &Scenario,
    layout: &Layout,
    replication: u32,
    progress: &dyn Progress,
) -> Result<LinkSet<Packet, Observer>, RunError> {
    let addresses = Arc::new(addresses(scenario, layout));
    let mut failure = None;
    let observer = |name: &str, member, keys: &Direction| {
        let recorded = replication == scenario.record.replication;
        let tapped = recorded && member == 0 && scenario.record.captures(name);
        let file = if tapped { progress.recording_file() } else { Ok(None) };
        let file = file.unwrap_or_else(|error| {
            failure = Some(error);
            None
        });
        let tap = tapped.then(|| Box::new(Tap::new(name, addresses.clone(), file)));
        Observer { audit: LinkAudit::new(keys, layout.directions.trace_of(name)), tap }
    };
    let mut links = LinkSet::of_scenario(scenario, &layout.directions, replication, observer)
        .map_err(|diagnostic| RunError::Invalid(diagnostic.to_string()))?;
    for direction in layout.directions.media(scenario).iter().flat_map(directions_on) {
        links.entry_mut(direction).observer.audit.observe_medium();
    }
    failure.map_or(Ok(links), |error| Err(error.into()))
}

/// The source of the random streams of one member of a flow.
struct MemberSeed<'a> {
    scenario: &'a Scenario,
    name: &'a str,
    replication: u32,
    number: u64,
}

impl MemberSeed<'_> {
    fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::named(self.scenario.seed, self.replication, self.name, self.number, purpose)
    }

    /// Initial sequence numbers of both ends.
    fn isns(&self) -> [u32; 2] {
        let mut random = self.stream("isn");
        [random.below(1 << 32) as u32, random.below(1 << 32) as u32]
    }
}

/// Replaces the ends of the flows of a row by ones that open and close, if its keys request this.
/// Members with the same number in the group have the same pair of hosts.
fn manage_ends(
    flows: &mut [Flow],
    scenario: &Scenario,
    (row, replication): (usize, u32),
    stacks: &Stacks,
    group: u64,
) {
    let Some((name, spec)) = scenario.flow.get_index(row) else { return };
    let Some(rules) = ConnectionRules::of(spec).map(Arc::new) else { return };
    let idle = IdleRules::of(spec);
    for (number, flow) in (0..).zip(flows) {
        let seed = MemberSeed { scenario, name, replication, number };
        let manager = ConnectionManager::new(Arc::clone(&rules), seed.stream("reconnect"));
        let hosts = (number % group) as u32;
        let managed = ManagedFlow::new(manager, stacks.clone(), seed.isns(), hosts, idle);
        flow.ends = Ends::Managed(Box::new(managed));
    }
}

/// Replaces the ends of the flows of a row by those of confirmable messages, if its transport
/// requests this.
fn confirm_messages(flows: &mut [Flow], scenario: &Scenario, row: usize, replication: u32) {
    let Some((name, spec)) = scenario.flow.get_index(row) else { return };
    let Some(rules) = CoapRules::of(spec).map(Arc::new) else { return };
    for (number, flow) in (0..).zip(flows) {
        let seed = MemberSeed { scenario, name, replication, number };
        let member = CoapMember::new(Arc::clone(&rules), seed.stream("coap"));
        flow.ends = Ends::Coap(Box::new(member));
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
    if !spec.load.is_two_way() && !matches!(spec.load, Load::Transfer(_)) {
        // The `to` end of the other loads neither writes nor closes.
        ends[1].receive_only();
    }
    Ends::Tcp(ends)
}

/// The two ends of a connection.
fn connections(seed: &MemberSeed<'_>, stacks: &Stacks) -> [Connection; 2] {
    let (from, to) = stacks.clone();
    let [isn, peer_isn] = seed.isns();
    if from.handshake {
        [Connection::connect(from, isn), Connection::listen(to, peer_isn)]
    } else {
        [
            Connection::established(Arc::clone(&from), isn, &to, peer_isn),
            Connection::established(to, peer_isn, &from, isn),
        ]
    }
}

/// The demand of a member, the start of its load, and the time at which its connection opens.
fn begin(
    seed: &MemberSeed<'_>,
    load: &SharedLoad<'_>,
    schedule: &StartSchedule,
) -> (Demand, Instant, Instant) {
    let mut random = seed.stream("start");
    let begins = schedule.load_begins(&mut random);
    let demand = Demand::of_member(load, begins, seed.stream("load"));
    let opens = schedule.connection_opens(begins, &demand, &mut random);
    (demand, begins, opens)
}

/// Whether the connections of a flow open with a handshake.
fn opens_by_handshake(spec: &FlowSpec, stacks: &Stacks) -> bool {
    spec.transport == Transport::Tcp && stacks.0.handshake
}
