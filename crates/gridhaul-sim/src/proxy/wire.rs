//! From a scenario to units: which connections pass which proxies, and where on their routes.

use std::sync::Arc;

use gridhaul_core::pep::{Side, TimeAverage};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Flow, FlowEnd, Proxy, ProxyPosition, Scenario};
use gridhaul_scenario::units::Instant;

use super::recipe::Recipe;
use super::{Proxies, Unit};
use crate::network::AT_PROXY;
use crate::stacks::Stacks;

/// The proxies on the way of each row of flows.
#[derive(Debug)]
pub(crate) struct ProxyWiring<'s> {
    rows: Vec<Vec<Place<'s>>>,
    proxies: Proxies,
}

/// A proxy on the way of a row.
#[derive(Debug)]
struct Place<'s> {
    proxy: &'s Proxy,
    params: Arc<StackParams>,
    /// The same with its buffer as window, if it ends connections: what its neighbours are offered.
    offers: Option<Arc<StackParams>>,
    point: ProxyPosition,
}

impl<'s> ProxyWiring<'s> {
    pub(crate) fn new(scenario: &'s Scenario) -> Result<Self, RunError> {
        let rows = scenario.flow.iter().map(|(name, flow)| {
            let points = scenario
                .proxy_positions(name)
                .map_err(|error| RunError::Invalid(error.to_string()))?;
            Ok(points.into_iter().filter_map(|point| place(scenario, flow, point)).collect())
        });
        Ok(Self { rows: rows.collect::<Result<_, RunError>>()?, proxies: Proxies::default() })
    }

    /// What stands in the list of routes on the way out (0) or back (1) of a row, each behind so
    /// many hops, in order.
    pub(crate) fn marks(&self, row: usize, way: usize) -> Vec<(usize, u32)> {
        let places = self.rows[row].iter().zip(AT_PROXY..);
        let mut marks: Vec<_> =
            places.map(|(place, mark)| (place.point.hops_before[way], mark)).collect();
        marks.sort_by_key(|&(after, _)| after);
        marks
    }

    /// Adds the units of a connection, whose routes begin at these places of the list.
    pub(crate) fn add(
        &mut self,
        (flow, row): (u32, usize),
        begins: [u32; 2],
        isns: impl FnOnce() -> [u32; 2],
        hosts: &Stacks,
    ) {
        if self.rows[row].is_empty() {
            return;
        }
        let isns = isns();
        self.proxies.first.resize(flow as usize + 1, u32::MAX);
        self.proxies.first[flow as usize] = self.proxies.units.len() as u32;
        for (index, place) in self.rows[row].iter().enumerate() {
            // Before it on the way out stand its hops and the marks of the proxies before it; on
            // the way back those of the proxies behind it.
            let behind = self.rows[row].len() - 1 - index;
            let right = begins[0] + (place.point.hops_before[0] + index + 1) as u32;
            let left = begins[1] + (place.point.hops_before[1] + behind + 1) as u32;
            let toward = match place.proxy.served() {
                FlowEnd::From => Side::Client,
                FlowEnd::To => Side::Server,
            };
            let recipe = Recipe {
                mode: place.proxy.mode,
                params: Arc::clone(&place.params),
                buffer: place.proxy.buffer,
                hold: place.proxy.max_ack_delay,
                toward,
                isns,
                established: (!hosts.0.handshake).then(|| {
                    let places = &self.rows[row];
                    let left = places[..index].iter().rev().find_map(|place| place.offers.as_ref());
                    let right = places[index + 1..].iter().find_map(|place| place.offers.as_ref());
                    [left.unwrap_or(&hosts.0), right.unwrap_or(&hosts.1)].map(Arc::clone)
                }),
            };
            let crashes = place.proxy.crash.iter().rev().map(|crash| {
                let at = Instant::ZERO + crash.at;
                (at, at + crash.down, crash.packets)
            });
            self.proxies.units.push(Unit {
                flow,
                machine: recipe.first(),
                recipe,
                next: [left, right],
                crashes: crashes.collect(),
                down: None,
                bytes_at_risk: TimeAverage::default(),
                crashed: 0,
                repeated: 0,
                sent_up_to: [None; 2],
            });
        }
    }

    pub(crate) fn finish(mut self, flows: usize) -> Proxies {
        if !self.proxies.units.is_empty() {
            self.proxies.first.resize(flows, u32::MAX);
        }
        self.proxies
    }
}

fn place<'s>(scenario: &'s Scenario, flow: &Flow, point: ProxyPosition) -> Option<Place<'s>> {
    let proxy = scenario.node[point.node].proxy.as_ref()?;
    let stack = proxy.stack.as_ref().or(flow.stack.as_ref());
    let params = StackParams::named(scenario, stack, flow.ip);
    let offered = || StackParams { receive_window: proxy.window(), ..params.clone() };
    let offers = proxy.mode.terminates_connections().then(|| Arc::new(offered()));
    Some(Place { proxy, params: Arc::new(params), offers, point })
}
