//! The network of a measurement, as the arguments name it.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, bail};
use gridhaul_data::trace::load_scenario;
use gridhaul_measure::network::{Carrier, Sites, on_prepared_links};
use gridhaul_measure::systems;
use gridhaul_scenario::scenario::{Flow, Scenario, Stack};
use gridhaul_scenario::units::{Duration, Instant};

use crate::args::{PlaceArgs, ProtocolArgs, SubscriberEnd};

/// The network of a measurement.
#[derive(Debug)]
pub(super) struct Place {
    /// Name in tables: `this machine`, or the scenario and the flow.
    pub(super) name: String,
    /// The scenario and the flow; `None` for this machine.
    pub(super) network: Option<(Scenario, String)>,
    subscriber: SubscriberEnd,
}

/// Interruption by the user.
#[derive(Debug, Clone)]
pub(super) struct Interrupt {
    flag: Arc<AtomicBool>,
}

/// Name of the TCP stack with the settings of the command line.
const STACK: &str = "command-line";

impl Place {
    /// The network of a protocol, with the TCP settings that the arguments give.
    ///
    /// # Errors
    /// As [`Place::new`], or there are TCP settings without an emulated network.
    pub(super) fn of_protocol(args: &ProtocolArgs) -> anyhow::Result<Self> {
        let mut place = Self::new(&args.place)?;
        let (control, window) =
            (args.connection.congestion_control, args.connection.receive_window);
        if control.is_none() && window.is_none() {
            return Ok(place);
        }
        let Some((scenario, flow)) = &mut place.network else {
            let option =
                if control.is_some() { "--congestion-control" } else { "--receive-window" };
            bail!(
                "{option} needs an emulated network\n  help: add --scenario FILE or --system NAME"
            );
        };
        let flow = &mut scenario.flow[&**flow];
        let both = [flow.stack.take(), flow.to_stack.take()];
        let own = |name: &Option<String>| name.as_ref().and_then(|it| scenario.stack.get(it));
        let from = own(&both[0]).cloned().unwrap_or_default();
        let to = own(&both[1]).cloned().unwrap_or_else(|| from.clone());
        let stacks = [from, to].map(|stack| Stack {
            congestion_control: control.or(stack.congestion_control),
            receive_window: window.or(stack.receive_window),
            ..stack
        });
        flow.stack = Some(STACK.to_owned());
        let [from, to] = stacks;
        if from != to {
            let name = format!("{STACK}-to");
            flow.to_stack = Some(name.clone());
            scenario.stack.insert(name, to);
        }
        scenario.stack.insert(STACK.to_owned(), from);
        Ok(place)
    }

    /// The network that the arguments name.
    ///
    /// # Errors
    /// The scenario file cannot be read, or there is no such system or flow.
    pub(super) fn new(args: &PlaceArgs) -> anyhow::Result<Self> {
        let subscriber = args.subscriber;
        let (origin, mut scenario) = match (&args.scenario, &args.system) {
            (Some(file), _) => {
                let scenario = load_scenario(file)?.points()?.swap_remove(0).scenario;
                (file.display().to_string(), scenario)
            }
            (None, Some(name)) => (format!("system {name}"), system(name)?),
            (None, None) => {
                return Ok(Self { name: "this machine".into(), network: None, subscriber });
            }
        };
        let first = scenario.flow.keys().next().cloned();
        let flow = args.flow.clone().or(first).context("the scenario has no flow")?;
        if !scenario.flow.contains_key(&flow) {
            let known: Vec<_> = scenario.flow.keys().map(String::as_str).collect();
            bail!("{origin}: there is no flow `{flow}`\n  help: choose from: {}", known.join(", "));
        }
        if args.reverse {
            reverse(&mut scenario, &flow);
        }
        let name = match &args.system {
            Some(_) => origin,
            None => format!("{origin}, flow {flow}"),
        };
        let name = if args.reverse { format!("{name}, reverse") } else { name };
        Ok(Self { name, network: Some((scenario, flow)), subscriber })
    }

    /// Outages of all links, in seconds since the start of a schedule, which is a time on the clock of the network.
    pub(super) fn outages(&self, start: Instant) -> Vec<[f64; 2]> {
        let links = self.network.iter().flat_map(|(scenario, _)| scenario.link.values());
        let directions = links.flat_map(|link| [link.forward(), link.reverse()]).flatten();
        let outages = directions.flat_map(|direction| &direction.outage);
        let seconds = |at: Duration| at.as_secs_f64() - start.as_secs_f64();
        let mut found: Vec<_> =
            outages.map(|it| [seconds(it.start), seconds(it.start + it.length)]).collect();
        found.sort_by(|a, b| a[0].total_cmp(&b[0]));
        found.dedup();
        found
    }

    /// Runs `work` between both ends of the network, while its links forward what `carrier` says. `prepare` is called before they
    /// do, and starts what the ends need.
    ///
    /// # Errors
    /// The network cannot be made on this machine, or `prepare` or `work` failed.
    pub(super) fn enter<P, T>(
        &self,
        carrier: Carrier,
        prepare: impl FnOnce(&Sites<'_>) -> anyhow::Result<P>,
        work: impl FnOnce(&Sites<'_>, P) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let placed = |sites: &Sites<'_>, prepared: anyhow::Result<P>| match self.subscriber {
            SubscriberEnd::From => work(sites, prepared?),
            SubscriberEnd::To => work(&sites.subscribing_at_broker(), prepared?),
        };
        match &self.network {
            None => {
                let sites = Sites::loopback();
                placed(&sites, prepare(&sites))
            }
            Some((scenario, flow)) => {
                on_prepared_links(scenario, flow, carrier, prepare, placed)?.0
            }
        }
    }
}

impl Interrupt {
    /// Sets the flag on Ctrl-C and SIGTERM. To be called once in the program.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub(super) fn new() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&flag);
        ctrlc::set_handler(move || set.store(true, Ordering::Relaxed))
            .context("installing the handler of Ctrl-C")?;
        Ok(Self { flag })
    }

    /// The flag, which ends a run.
    pub(super) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Whether the user has interrupted the program.
    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

/// Exchanges both ends of a flow.
fn reverse(scenario: &mut Scenario, name: &str) {
    let Flow { from, to, stack, to_stack, .. } = &mut scenario.flow[name];
    mem::swap(from, to);
    // Without `to_stack`, both ends have the same one.
    if to_stack.is_some() {
        if stack.is_none() {
            *stack = Some(STACK.to_owned());
            scenario.stack.insert(STACK.to_owned(), Stack::default());
        }
        mem::swap(stack, to_stack);
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
