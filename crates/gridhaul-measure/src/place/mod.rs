//! The network between the ends of a measurement on this machine.

mod sites;

use std::mem;

use anyhow::{Context, bail};
use gridhaul_data::trace::load_scenario;
use gridhaul_scenario::scenario::{Flow, Scenario, Stack};
use gridhaul_scenario::units::{Duration, Instant, WindowSize};

use crate::measurement::{
    EmulatedNetwork, Measurement, NetworkSource, Place, ScenarioNetwork, SubscriberEnd,
};
use crate::systems;

pub use sites::{Carrier, LinkCounters, Site, Sites, StopOnDrop, on_links};

/// The network of a measurement on this machine.
#[derive(Debug)]
pub struct LocalNetwork {
    /// Name in tables: `this machine`, or the scenario and the flow.
    pub name: String,
    /// The emulated flow; `None` for the loopback device.
    pub(crate) flow: Option<EmulatedFlow>,
    subscriber: SubscriberEnd,
}

/// A flow of an emulated network.
#[derive(Debug)]
pub(crate) struct EmulatedFlow {
    pub(crate) scenario: Scenario,
    pub(crate) name: String,
}

/// Name of the TCP stack with the settings of the measurement.
const STACK: &str = "command-line";

impl LocalNetwork {
    /// The network of a measurement, with its TCP settings.
    ///
    /// # Errors
    /// As [`LocalNetwork::new`].
    pub(crate) fn of_measurement(measurement: &Measurement) -> anyhow::Result<Self> {
        let connection = measurement.protocol.broker_connection();
        let subscriber = connection.map_or(SubscriberEnd::From, |connection| connection.subscriber);
        Self::new(&measurement.place, subscriber)
    }

    /// The network of a place.
    ///
    /// # Errors
    /// The scenario file cannot be read, or there is no such system or flow.
    pub fn new(place: &Place, subscriber: SubscriberEnd) -> anyhow::Result<Self> {
        let Some(network) = place.emulated() else {
            return Ok(Self { name: "this machine".into(), flow: None, subscriber });
        };
        let (name, mut flow) = open(&network.network)?;
        let name = if network.reverse { format!("{name}, reverse") } else { name };
        if network.reverse {
            flow.reverse();
        }
        flow.set_stacks(network);
        Ok(Self { name, flow: Some(flow), subscriber })
    }

    /// Outages of all links, in seconds since the start of a schedule, which is a time on the clock
    /// of the network.
    pub(crate) fn outages(&self, start: Instant) -> Vec<[f64; 2]> {
        let links = self.flow.iter().flat_map(|flow| flow.scenario.link.values());
        let directions = links.flat_map(|link| [link.forward(), link.reverse()]).flatten();
        let outages = directions.flat_map(|direction| &direction.outage);
        let seconds = |at: Duration| at.as_secs_f64() - start.as_secs_f64();
        let mut found: Vec<_> = outages
            .map(|outage| [seconds(outage.start), seconds(outage.start + outage.length)])
            .collect();
        found.sort_by(|a, b| a[0].total_cmp(&b[0]));
        found.dedup();
        found
    }

    /// Runs `work` between both ends of the network, while its links forward what `carrier` states.
    /// `prepare` is called before they do, and starts what the ends need.
    ///
    /// # Errors
    /// The network cannot be made on this machine, or `prepare` or `work` failed.
    pub fn enter<P, T>(
        &self,
        carrier: Carrier,
        prepare: impl FnOnce(&Sites<'_>) -> anyhow::Result<P>,
        work: impl FnOnce(&Sites<'_>, P) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let placed = |sites: &Sites<'_>, prepared: anyhow::Result<P>| match self.subscriber {
            SubscriberEnd::From => work(sites, prepared?),
            SubscriberEnd::To => work(&sites.subscribing_at_broker(), prepared?),
        };
        match &self.flow {
            None => {
                let sites = Sites::loopback();
                placed(&sites, prepare(&sites))
            }
            Some(EmulatedFlow { scenario, name }) => {
                on_links(scenario, name, carrier, prepare, placed)?.0
            }
        }
    }
}

/// The flow of a system or a scenario, and its name in tables.
fn open(network: &NetworkSource) -> anyhow::Result<(String, EmulatedFlow)> {
    let (origin, scenario, flow) = match network {
        NetworkSource::System(name) => (format!("system {name}"), system(name)?, None),
        NetworkSource::Scenario(ScenarioNetwork { file, flow }) => {
            let scenario = load_scenario(file)?.points()?.swap_remove(0).scenario;
            (file.display().to_string(), scenario, flow.clone())
        }
    };
    let first = scenario.flow.keys().next().cloned();
    let flow = flow.or(first).context("the scenario has no flow")?;
    if !scenario.flow.contains_key(&flow) {
        let known: Vec<_> = scenario.flow.keys().map(String::as_str).collect();
        bail!("{origin}: there is no flow `{flow}`\n  help: choose from: {}", known.join(", "));
    }
    let name = match network {
        NetworkSource::System(_) => origin,
        NetworkSource::Scenario(_) => format!("{origin}, flow {flow}"),
    };
    Ok((name, EmulatedFlow { scenario, name: flow }))
}

impl EmulatedFlow {
    /// Exchanges both ends of the flow.
    fn reverse(&mut self) {
        let Flow { from, to, stack, to_stack, .. } = &mut self.scenario.flow[&*self.name];
        mem::swap(from, to);
        // Without `to_stack`, both ends have the same one.
        if to_stack.is_some() {
            if stack.is_none() {
                *stack = Some(STACK.to_owned());
                self.scenario.stack.insert(STACK.to_owned(), Stack::default());
            }
            mem::swap(stack, to_stack);
        }
    }

    /// Sets the TCP settings of the measurement at both ends, if it has any.
    fn set_stacks(&mut self, network: &EmulatedNetwork) {
        let (control, window) = (network.congestion_control, network.receive_window);
        if control.is_none() && window.is_none() {
            return;
        }
        let scenario = &mut self.scenario;
        let flow = &mut scenario.flow[&*self.name];
        let both = [flow.stack.take(), flow.to_stack.take()];
        let own = |name: &Option<String>| name.as_ref().and_then(|name| scenario.stack.get(name));
        let from = own(&both[0]).cloned().unwrap_or_default();
        let to = own(&both[1]).cloned().unwrap_or_else(|| from.clone());
        let [from, to] = [from, to].map(|stack| Stack {
            congestion_control: control.or(stack.congestion_control),
            receive_window: window.or(stack.receive_window),
            ..stack
        });
        flow.stack = Some(STACK.to_owned());
        if from != to {
            let name = format!("{STACK}-to");
            flow.to_stack = Some(name.clone());
            scenario.stack.insert(name, to);
        }
        scenario.stack.insert(STACK.to_owned(), from);
        if window.is_some() {
            self.limit_other_windows(window);
        }
    }

    /// Limits the windows of the other flows, whose loads have no effect: the kernel has one limit
    /// for all connections of a node.
    fn limit_other_windows(&mut self, receive_window: Option<WindowSize>) {
        let scenario = &mut self.scenario;
        let other = format!("{STACK}-other");
        for flow in scenario.flow.values_mut().filter(|flow| flow.stack.is_none()) {
            flow.stack = Some(other.clone());
        }
        scenario.stack.insert(other, Stack::default());
        for stack in scenario.stack.values_mut() {
            stack.receive_window = receive_window;
        }
    }
}

/// The scenario of a system.
fn system(name: &str) -> anyhow::Result<Scenario> {
    let Some(scenario) = systems::scenario(name) else {
        let known: Vec<_> = systems::names().collect();
        bail!("--system: there is no system \"{name}\"\n  help: choose from: {}", known.join(", "));
    };
    Ok(scenario?)
}
