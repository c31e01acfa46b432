//! From a scenario to a world: links for each member of a group, ends, applications and routes.

use std::sync::Arc;

use gridhaul_core::chance::Chance;
use gridhaul_core::link::{LinkChance, LinkDirection};
use gridhaul_core::load::Demand;
use gridhaul_core::tcp::{Connection, StackParams};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{
    Direction, Flow as FlowSpec, Hop, Load, Scenario, Stack, Transport,
};
use gridhaul_scenario::units::Instant;

use crate::app::NO_MESSAGE;
use crate::audit::LinkAudit;
use crate::capture::{Addresses, Tap};
use crate::dialogue::Dialogue;
use crate::events::Events;
use crate::flow::{App, Ends, Flow, Outbox};
use crate::judge::Judge;
use crate::measure::Ledger;
use crate::network::{ARRIVED, LinkSlot, LinkStats, Network};
use crate::playback::Playback;
use crate::record::Recorder;
use crate::world::World;

/// The rows of an answer, which follow from the scenario alone.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Name and number of equal flows of each row.
    pub flows: Vec<(String, u64)>,
    /// Name and number of equal directions of each row.
    pub links: Vec<(String, u64)>,
    /// Row of each direction in the order in which they are made.
    pub link_row: Vec<u32>,
    /// For each link and direction: number of its first member.
    first: Vec<[Option<u32>; 2]>,
}

impl Layout {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let mut layout =
            Self { flows: Vec::new(), links: Vec::new(), link_row: Vec::new(), first: Vec::new() };
        for (name, link) in &scenario.link {
            let members = u64::from(scenario.link_members(link));
            let mut first = [None; 2];
            let ways = [("forward", link.forward()), ("backward", link.backward())];
            for (side, (way, _)) in ways.iter().enumerate().filter(|(_, (_, way))| way.is_some()) {
                first[side] = Some(layout.link_row.len() as u32);
                layout.link_row.extend((0..members).map(|_| layout.links.len() as u32));
                layout.links.push((format!("{name}.{way}"), members));
            }
            layout.first.push(first);
        }
        for (name, flow) in &scenario.flow {
            let members = members(scenario, &flow.from, &flow.to) * u64::from(flow.count);
            layout.flows.push((name.clone(), members));
        }
        layout
    }

    /// The directions that the hops take for a member of a group of this size, and the end.
    fn directions(&self, hops: &[Hop], member: u64, group: u64) -> impl Iterator<Item = u32> {
        let directions = hops.iter().map(move |hop| {
            let first = self.first[hop.link][usize::from(!hop.forward)].unwrap_or(0);
            let row = self.link_row[first as usize] as usize;
            first + (member * self.links[row].1 / group) as u32
        });
        directions.chain([ARRIVED])
    }
}

/// A group on either side makes one flow for each of its members.
fn members(scenario: &Scenario, from: &str, to: &str) -> u64 {
    scenario.members(from, to).map_or(1, u64::from)
}

/// Builds the world of one run.
pub(crate) fn build(
    scenario: &Scenario,
    layout: &Layout,
    repeat: u32,
    record: bool,
) -> Result<World, RunError> {
    let links = links(scenario, layout, repeat, record)?;
    let mut routes = Vec::new();
    let mut flows = Vec::new();
    let mut playbacks = Vec::new();
    for (row, (name, spec)) in scenario.flow.iter().enumerate() {
        let ways = scenario.routes(name).map_err(|error| RunError::Invalid(error.to_string()))?;
        let group = members(scenario, &spec.from, &spec.to);
        let first = flows.len() as u32;
        let stacks = stacks(scenario, spec);
        let mut begins = [u32::MAX; 2];
        flows.reserve_exact((group * u64::from(spec.count)) as usize);
        for number in 0..group * u64::from(spec.count) {
            let member = number % group;
            let [out, back] = [&ways.out, &ways.back]
                .map(|hops| layout.directions(hops, member, group).collect::<Vec<u32>>());
            begins = [share(&mut routes, begins[0], &out), share(&mut routes, begins[1], &back)];
            let seed = MemberSeed { scenario, name, repeat, number };
            flows.push(flow(&seed, spec, &stacks, row as u32, begins));
        }
        playbacks.extend(Playback::open(scenario, name, first..flows.len() as u32)?);
    }
    let recorder = scenario.record.interval.filter(|_| record).map(|interval| {
        let names = |rows: &[(String, u64)]| rows.iter().map(|(name, _)| name.clone()).collect();
        Recorder::new(interval, names(&layout.flows), names(&layout.links), layout.link_row.clone())
    });
    let start = Instant::ZERO;
    Ok(World {
        net: Network {
            events: Events::new(links.len(), flows.len(), playbacks.len()),
            links,
            routes,
        },
        ledger: Ledger::new(judges(scenario)),
        flows,
        playbacks,
        failure: None,
        recorder,
        warmup: start + scenario.warmup,
        end: start + scenario.duration,
    })
}

/// Who judges the messages of each flow, if they have a deadline.
fn judges(scenario: &Scenario) -> Vec<Option<Judge>> {
    let (warmup, end) = (Instant::ZERO + scenario.warmup, Instant::ZERO + scenario.duration);
    let judge = |deadline| Judge::new(deadline, warmup, end);
    scenario.flow.values().map(|flow| flow.deadline_in_force().map(judge)).collect()
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
    repeat: u32,
    record: bool,
) -> Result<Vec<LinkSlot>, RunError> {
    let mut slots = Vec::with_capacity(layout.link_row.len());
    for (name, link) in &scenario.link {
        let ways = [("forward", link.forward()), ("backward", link.backward())];
        for (way, direction) in ways {
            let Some(direction) = direction else { continue };
            let full_name = format!("{name}.{way}");
            let tapped = record && scenario.record.pcap.iter().any(|wanted| wanted == name);
            for member in 0..u64::from(scenario.link_members(link)) {
                let chance = LinkChance::named(scenario.seed, repeat, &full_name, member);
                slots.push(LinkSlot {
                    link: LinkDirection::new(direction, chance),
                    audit: LinkAudit::new(direction),
                    stats: LinkStats::default(),
                    observers: Box::default(),
                    tap: (tapped && member == 0).then(|| Box::new(Tap::new(&full_name))),
                    watched: false,
                });
            }
        }
    }
    observe(scenario, layout, &mut slots)?;
    for slot in &mut slots {
        slot.watched =
            slot.tap.is_some() || !slot.observers.is_empty() || slot.audit.wants_accepted();
    }
    Ok(slots)
}

/// Lets directions know of the use of those they are paired with.
fn observe(scenario: &Scenario, layout: &Layout, slots: &mut [LinkSlot]) -> Result<(), RunError> {
    let row_of = |name: &str| layout.links.iter().position(|(row, _)| row == name);
    let latency = |direction: &Direction| {
        direction.load_latency.as_ref().and_then(|latency| latency.paired_with.clone())
    };
    for (name, link) in &scenario.link {
        for (way, direction) in [("forward", link.forward()), ("backward", link.backward())] {
            let Some(pair) = direction.and_then(latency) else { continue };
            let (Some(own), Some(other)) = (row_of(&format!("{name}.{way}")), row_of(&pair)) else {
                return Err(RunError::Invalid(format!("no direction {pair:?} to pair with")));
            };
            let of_row = |row: usize| {
                let rows = layout.link_row.iter().enumerate();
                rows.filter(move |(_, of)| **of as usize == row).map(|(slot, _)| slot)
            };
            let own: Vec<usize> = of_row(own).collect();
            for (index, slot) in of_row(other).enumerate() {
                let observer = own[index.min(own.len() - 1)] as u32;
                let mut observers = slots[slot].observers.to_vec();
                observers.push(observer);
                slots[slot].observers = observers.into();
            }
        }
    }
    Ok(())
}

/// Where the chance of one member of a flow comes from.
struct MemberSeed<'a> {
    scenario: &'a Scenario,
    name: &'a str,
    repeat: u32,
    number: u64,
}

impl MemberSeed<'_> {
    fn chance(&self, purpose: &str) -> Chance {
        Chance::named(self.scenario.seed, self.repeat, self.name, self.number, purpose)
    }
}

fn flow(
    seed: &MemberSeed<'_>,
    spec: &FlowSpec,
    stacks: &Stacks,
    row: u32,
    routes: [u32; 2],
) -> Flow {
    let start = Instant::ZERO + spec.start + seed.chance("start").uniform(spec.start_spread);
    Flow {
        row,
        ends: ends(seed, spec, stacks),
        app: app(seed, spec, start),
        routes,
        start,
        watch: [u64::MAX; 2],
        hungry: false,
        cwnd: 0,
        datagram_bytes: 0,
    }
}

fn ends(seed: &MemberSeed<'_>, spec: &FlowSpec, stacks: &Stacks) -> Ends {
    if spec.transport != Transport::Tcp {
        return Ends::Datagram { echo: spec.transport == Transport::Echo };
    }
    let (near, far) = stacks.clone();
    let mut chance = seed.chance("isn");
    let (isn, peer_isn) = (chance.below(1 << 32) as u32, chance.below(1 << 32) as u32);
    let mut ends = if near.handshake {
        [Connection::connect(near, isn), Connection::listen(far, peer_isn)]
    } else {
        [
            Connection::established(Arc::clone(&near), isn, &far, peer_isn),
            Connection::established(far, peer_isn, &near, isn),
        ]
    };
    if !matches!(spec.load, Load::RequestResponse(_) | Load::Transfer(_)) {
        // The others never write at the far end, nor close it.
        ends[1].receive_only();
    }
    Ends::Tcp(Box::new(ends))
}

/// The stacks of both ends, which all flows of a row share.
type Stacks = (Arc<StackParams>, Arc<StackParams>);

/// The stacks of the ends of a row.
fn stacks(scenario: &Scenario, spec: &FlowSpec) -> Stacks {
    let resolve = |name: Option<&String>| {
        let stack = name.and_then(|name| scenario.stack.get(name));
        Arc::new(StackParams::resolve(stack.unwrap_or(&Stack::default())))
    };
    let near = resolve(spec.stack.as_ref());
    let far = match &spec.to_stack {
        Some(name) => resolve(Some(name)),
        None => Arc::clone(&near),
    };
    (near, far)
}

fn app(seed: &MemberSeed<'_>, spec: &FlowSpec, start: Instant) -> App {
    match Demand::new(&spec.load, start, seed.chance("load")) {
        Demand::Endless => App::Bulk,
        Demand::Limited(bytes) => App::Transfer { bytes, completed: Instant::NEVER },
        Demand::Open(mut source) => {
            let coming = source.next_message().unwrap_or(NO_MESSAGE);
            App::Messages { source, coming, outbox: Outbox::default() }
        }
        Demand::Recorded => App::Recorded { outbox: Outbox::default() },
        Demand::Greedy(load) => App::Greedy { load: Box::new(load), outbox: Outbox::default() },
        Demand::Dialogue(dialogue) => App::Dialogue(Box::new(Dialogue::new(dialogue))),
    }
}

/// Addresses for captures: nodes are numbered in the order of the scenario.
pub(crate) fn addresses(scenario: &Scenario, layout: &Layout) -> Addresses {
    let node = |name: &str| scenario.node.get_index_of(name).unwrap_or(0) as u32;
    let flows = scenario.flow.values().zip(&layout.flows);
    Addresses::new(
        flows.map(|(flow, &(_, count))| (node(&flow.from), node(&flow.to), count)).collect(),
    )
}
