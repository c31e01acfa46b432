//! The hybrid routers of a run: relay daemons that select the link of each packet.

use gridhaul_scenario::answer::Warning;
use gridhaul_scenario::relay::{
    PacketMatch, RelayConfig, RouterClass, RouterConfig, RouterLink, RouterShaper, RouterShare,
};
use gridhaul_scenario::scenario::{FlowEnd, HybridRouter, HybridRouterClass, Scenario, Shaper};

use super::configuration::relay_config;
use super::process::{self, RelayProcess};
use super::{Folder, waited_for_processor};
use crate::error::EmulationError;
use crate::network::{Address, NetworkPlan, RouterLayout, Testbed};

/// The relay daemons of the hybrid routers of a run. Dropping this value ends them.
#[derive(Debug)]
pub(crate) struct Routers {
    /// Before the folder, so that the processes end first.
    processes: Vec<RelayProcess>,
    _folder: Option<Folder>,
}

impl Routers {
    /// Starts a daemon for each router, and waits until they have changed the routes of their
    /// nodes.
    ///
    /// # Errors
    /// The program is missing, or does not start.
    pub(crate) fn start(
        scenario: &Scenario,
        plan: &NetworkPlan,
        testbed: &Testbed,
    ) -> Result<Self, EmulationError> {
        let mut routers = Self { processes: Vec::new(), _folder: None };
        if plan.routers.is_empty() {
            return Ok(routers);
        }
        let program = process::program()?;
        let folder = Folder::create()?;
        for (index, layout) in plan.routers.iter().enumerate() {
            let Some((node, router)) = router_of(scenario, layout) else { continue };
            let text = configuration(scenario, plan, (layout, node, router));
            let file = folder.write(&format!("router{index}"), &text)?;
            let name = format!("hybrid router at `{node}`");
            let namespace = &testbed.namespaces[layout.node];
            routers.processes.push(RelayProcess::start(&program, &file, namespace, name)?);
        }
        for process in &mut routers.processes {
            process.await_ready()?;
        }
        routers._folder = Some(folder);
        Ok(routers)
    }

    /// The first router that has ended before the run, with its messages.
    ///
    /// # Errors
    /// A router has ended.
    pub(crate) fn check(&mut self) -> Result<(), EmulationError> {
        self.processes.iter_mut().try_for_each(RelayProcess::check)
    }

    /// A warning if the daemons have waited for a processor: their probes were late.
    pub(crate) fn disturbance(&self) -> Option<Warning> {
        waited_for_processor(self.processes.iter())
    }
}

fn router_of<'s>(
    scenario: &'s Scenario,
    layout: &RouterLayout,
) -> Option<(&'s str, &'s HybridRouter)> {
    let (name, node) = scenario.node.get_index(layout.node)?;
    Some((name.as_str(), node.router.as_ref()?))
}

/// The configuration of a daemon.
fn configuration(
    scenario: &Scenario,
    plan: &NetworkPlan,
    (layout, node, router): (&RouterLayout, &str, &HybridRouter),
) -> String {
    let family = plan.flows[layout.probes].family;
    let address = |side| Address { flow: layout.probes as u16, side, number: 0 }.ip(family);
    let link = |(name, port): (&String, &usize)| {
        let leads = plan.ports[*port].leads;
        let shaper = leads.and_then(|hop| hop.direction(scenario).active_shaper());
        let link = RouterLink {
            device: plan.ports[*port].device.clone(),
            gateway: Vec::new(),
            probe_interval: router.probe_interval,
            probe_size: None,
            shaper: shaper.map(|shaper| shaper_of(scenario, plan, shaper)),
        };
        (name.clone(), link)
    };
    let class = |(name, class): (&String, &HybridRouterClass)| {
        let packets = PacketMatch {
            opened_by: class.opened_by,
            acknowledgements: class.acknowledgements,
            to: class.flows.iter().flat_map(|flow| blocks(scenario, plan, flow)).collect(),
            ..PacketMatch::default()
        };
        (name.clone(), RouterClass { packets, links: class.links.clone() })
    };
    let destinations = plan.destinations(layout);
    let config = RelayConfig {
        router: Some(RouterConfig {
            address: address(layout.side).to_string(),
            peer: address(layout.side.peer()).to_string(),
            port: PROBE_PORT,
            destinations: destinations.iter().map(ToString::to_string).collect(),
            except: Vec::new(),
            detection_time: router.detection_time,
            hold_time: router.hold_time,
            table: FIRST_TABLE,
            state: "state".to_owned(),
            link: router.links.iter().zip(&layout.ports).map(link).collect(),
            class: router.class.iter().map(class).collect(),
        }),
        ..relay_config(node)
    };
    config.to_toml()
}

fn shaper_of(scenario: &Scenario, plan: &NetworkPlan, shaper: &Shaper) -> RouterShaper {
    let share = shaper.share.iter().map(|(flow, share)| {
        let to = blocks(scenario, plan, flow);
        let packets = PacketMatch { to, ..PacketMatch::default() };
        let share = RouterShare { packets, guarantee: share.guarantee, limit: share.limit };
        (flow.clone(), share)
    });
    RouterShaper {
        rate: shaper.rate,
        burst: shaper.burst,
        queue: shaper.queue,
        share: share.collect(),
    }
}

/// Addresses of both ends of a flow: a link carries data to one of them, and acknowledgements to
/// the other.
fn blocks(scenario: &Scenario, plan: &NetworkPlan, flow: &str) -> Vec<String> {
    let Some(number) = scenario.flow.get_index_of(flow) else { return Vec::new() };
    let family = plan.flows[number].family;
    let block = |side| Address::block(number as u16, side, family).to_string();
    [FlowEnd::From, FlowEnd::To].map(block).to_vec()
}

/// The defaults of a relay. Each node has a namespace of its own, in which nothing else uses them.
const PROBE_PORT: u16 = 4_784;
const FIRST_TABLE: u32 = 7_100;
