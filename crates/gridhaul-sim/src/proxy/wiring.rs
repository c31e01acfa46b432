//! Creates the proxy instances of a scenario and inserts them into the routes of connections.

use std::sync::Arc;

use gridhaul_core::pep::{MssLimit, Side, TimeAverage};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::{Flow, FlowEnd, Proxy, ProxyMode, ProxyPosition, Scenario};
use gridhaul_scenario::units::Instant;

use super::builder::ProxyBuilder;
use super::{Proxies, ProxyInstance, SentData};
use crate::network::FIRST_PROXY;
use crate::stacks::Stacks;

/// The proxies on the path of each row of flows.
#[derive(Debug)]
pub(crate) struct ProxyWiring<'s> {
    rows: Vec<Vec<PathProxy<'s>>>,
    proxies: Proxies,
}

/// A proxy on the path of a row.
#[derive(Debug)]
struct PathProxy<'s> {
    proxy: &'s Proxy,
    params: Arc<StackParams>,
    /// The same with the receive window that the proxy advertises, if it acknowledges data.
    advertised: Option<Arc<StackParams>>,
    point: ProxyPosition,
}

impl<'s> ProxyWiring<'s> {
    pub(crate) fn new(scenario: &'s Scenario) -> Result<Self, RunError> {
        let rows = scenario.flow.iter().map(|(name, flow)| {
            let points = scenario
                .proxy_positions(name)
                .map_err(|error| RunError::Invalid(error.to_string()))?;
            Ok(points.into_iter().filter_map(|point| path_proxy(scenario, flow, point)).collect())
        });
        Ok(Self { rows: rows.collect::<Result<_, RunError>>()?, proxies: Proxies::default() })
    }

    /// The proxy entries of the forward (0) or reverse (1) route of a row, each with the number of
    /// hops before it, in order.
    pub(crate) fn route_entries(&self, row: usize, direction: usize) -> Vec<(usize, u32)> {
        let proxies = self.rows[row].iter().zip(FIRST_PROXY..);
        let mut entries: Vec<_> = proxies
            .map(|(path_proxy, entry)| (path_proxy.point.hops_before[direction], entry))
            .collect();
        entries.sort_by_key(|&(after, _)| after);
        entries
    }

    /// Adds the proxy instances of a connection, whose routes begin at these indices of the list.
    pub(crate) fn add(
        &mut self,
        (flow, row): (u32, usize),
        route_starts: [u32; 2],
        isns: impl FnOnce() -> [u32; 2],
        hosts: &Stacks,
    ) {
        if self.rows[row].is_empty() {
            return;
        }
        let isns = isns();
        self.proxies.first.resize(flow as usize + 1, u32::MAX);
        self.proxies.first[flow as usize] = self.proxies.instances.len() as u32;
        for (index, path_proxy) in self.rows[row].iter().enumerate() {
            // The forward route has the hops and proxies upstream of this proxy before it; the
            // reverse route has those downstream.
            let downstream = self.rows[row].len() - 1 - index;
            let right = route_starts[0] + (path_proxy.point.hops_before[0] + index + 1) as u32;
            let left = route_starts[1] + (path_proxy.point.hops_before[1] + downstream + 1) as u32;
            let served_side = match path_proxy.proxy.served() {
                FlowEnd::From => Side::Client,
                FlowEnd::To => Side::Server,
            };
            let acknowledges_data = path_proxy.proxy.mode.acknowledges_data();
            let builder = ProxyBuilder {
                mode: path_proxy.proxy.mode,
                params: Arc::clone(&path_proxy.params),
                buffer: path_proxy.proxy.buffer,
                max_ack_delay: path_proxy.proxy.max_ack_delay,
                served_side,
                hosts: MssLimit::of_hosts([hosts.0.mss, hosts.1.mss]),
                isns,
                window_shifts: self.window_shifts(row, index, hosts),
                established: (!hosts.0.handshake).then(|| {
                    let proxies = &self.rows[row];
                    let left = proxies[..index]
                        .iter()
                        .rev()
                        .find_map(|path_proxy| path_proxy.advertised.as_ref());
                    let right = proxies[index + 1..]
                        .iter()
                        .find_map(|path_proxy| path_proxy.advertised.as_ref());
                    [left.unwrap_or(&hosts.0), right.unwrap_or(&hosts.1)].map(Arc::clone)
                }),
            };
            let crashes = path_proxy.proxy.crash.iter().rev().map(|crash| {
                let at = Instant::ZERO + crash.at;
                (at, at + crash.down, crash.packets)
            });
            self.proxies.instances.push(ProxyInstance {
                flow,
                row: row as u32,
                proxy: builder.build_initial(),
                builder,
                next: [left, right],
                crashes: crashes.collect(),
                down: None,
                bytes_at_risk: TimeAverage::default(),
                crashes_so_far: 0,
                sent_data: SentData { acknowledges_data, ..SentData::default() },
            });
        }
    }

    /// Window scales toward both ends of the proxy with this index: those of the nearest ends of
    /// connections on the other side, which are hosts or splitting proxies.
    fn window_shifts(&self, row: usize, index: usize, hosts: &Stacks) -> [u8; 2] {
        let proxies = &self.rows[row];
        let splits = |path_proxy: &&PathProxy<'_>| path_proxy.proxy.mode == ProxyMode::Split;
        let left = proxies[..index].iter().rev().find(splits);
        let right = proxies[index + 1..].iter().find(splits);
        [(right, &hosts.1), (left, &hosts.0)].map(|(split, host)| {
            split.and_then(|split| split.advertised.as_ref()).unwrap_or(host).window_shift()
        })
    }

    pub(crate) fn finish(mut self, flows: usize) -> Proxies {
        if !self.proxies.instances.is_empty() {
            self.proxies.first.resize(flows, u32::MAX);
        }
        self.proxies
    }
}

fn path_proxy<'s>(
    scenario: &'s Scenario,
    flow: &Flow,
    point: ProxyPosition,
) -> Option<PathProxy<'s>> {
    let proxy = scenario.node[point.node].proxy.as_ref()?;
    let stack = proxy.stack.as_ref().or(flow.stack.as_ref());
    let params = crate::stacks::stack(scenario, stack, flow.ip);
    let with_window = || StackParams { receive_window: proxy.window(), ..params.clone() };
    let advertised = proxy.mode.acknowledges_data().then(|| Arc::new(with_window()));
    Some(PathProxy { proxy, params: Arc::new(params), advertised, point })
}
