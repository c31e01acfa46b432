//! The chain of TCP connections into which proxies split a flow; the slowest one limits the rate.
//!
//! Paper `plc`, equation 3, assumes equal loss on all hops, so that the longest hop is the
//! bottleneck. Here each hop has its own loss, buffer and rate.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Proxy, ProxyMode, ProxyPosition, Scenario, Stage};

use super::buffers::{self, Buffer};
use super::demand::{Bottleneck, Demand};
use crate::model_rules::ModelRules;

/// A flow as a chain of split connections, in the direction of the data; a single connection if no
/// proxy is on the path.
#[derive(Debug, Clone)]
pub(super) struct ConnectionChain<'s> {
    pub split_connections: Vec<Demand<'s>>,
    /// Whether the proxy after each connection forwards the handshake to the next one.
    pub reflects: Vec<bool>,
    /// Index of the bottleneck connection.
    pub slowest: usize,
}

impl<'s> ConnectionChain<'s> {
    /// Builds the chain of a flow and applies the throughput law of each connection, without other
    /// flows.
    ///
    /// # Errors
    /// Each key for which there is no formula.
    pub(super) fn of(
        scenario: &'s Scenario,
        name: &'s str,
        rules: ModelRules,
    ) -> Result<Self, Vec<Unsupported>> {
        Self::of_stage(scenario, name, &stage(scenario, name)?, rules)
    }

    /// The chain of a flow as if it had a single connection.
    ///
    /// # Errors
    /// Each key for which there is no formula.
    pub(super) fn alone(
        scenario: &'s Scenario,
        name: &'s str,
        rules: ModelRules,
    ) -> Result<Self, Vec<Unsupported>> {
        let stage = Stage { connections: 1, ..stage(scenario, name)? };
        Self::of_stage(scenario, name, &stage, rules)
    }

    fn of_stage(
        scenario: &'s Scenario,
        name: &'s str,
        stage: &Stage,
        rules: ModelRules,
    ) -> Result<Self, Vec<Unsupported>> {
        let flow = &scenario.flow[name];
        let points = scenario
            .proxy_positions(name)
            .map_err(|diagnostic| one(diagnostic.key.clone(), &diagnostic.message))?;
        reject(scenario, &points)?;
        let split_path = SplitPath { scenario, stage, points: &points };
        split_path.reject_small_windows(name)?;
        let split_connections = (0..=points.len()).map(|index| {
            let (stage, stack) = split_path.split_connection(index);
            Demand::of(scenario, (name, flow), &stage, stack, rules)
        });
        let split_connections = split_connections.collect::<Result<Vec<_>, _>>()?;
        // Paper `plc`, equation 1: a proxy's buffer is the receive buffer of the hop before it, so
        // that it limits this hop only. A byte that waits for the acknowledgement of the next hop
        // does not occupy space in the equation.
        let buffers = match rules.are_of_a_paper() {
            true => Vec::new(),
            false => split_path.buffers(&split_connections),
        };
        Ok(Self::with_common_rate(scenario, split_connections, &points, &buffers))
    }

    /// Sets the rate of the bottleneck on all connections: the buffers upstream of the bottleneck
    /// fill, and the windows that they advertise close. A small buffer makes the two adjacent
    /// connections together slower than each of them alone.
    fn with_common_rate(
        scenario: &Scenario,
        mut split_connections: Vec<Demand<'s>>,
        points: &[ProxyPosition],
        buffers: &[Buffer],
    ) -> Self {
        let rates = split_connections.iter().map(Demand::arriving).zip(0_usize..);
        let (mut minimum, mut slowest) =
            rates.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a chain has at least one connection");
        if let Some(limit) = buffers::limit(&split_connections, buffers) {
            (minimum, slowest) = (limit.rate, limit.split_connection);
            let (node, _) =
                scenario.node.get_index(points[limit.proxy].node).expect("a proxy is at a node");
            let split_connection = &mut split_connections[slowest];
            split_connection.rate = minimum / (1.0 - split_connection.connection.loss);
            split_connection.rtt_s = Some(split_connection.connection.rtt_s);
            split_connection.limit = Bottleneck::Buffer(node.clone());
        }
        let before = slowest.checked_sub(1).map(|index| &points[index]);
        let proxy_node = before.and_then(|point| scenario.node.get_index(point.node));
        let text = proxy_node.map_or("the first hop".to_owned(), |(node, _)| {
            format!("the hop after the proxy at {node}")
        });
        let decides = split_connections[slowest].limit.clone();
        for (index, split_connection) in
            split_connections.iter_mut().enumerate().filter(|(index, _)| *index != slowest)
        {
            let kept = 1.0 - split_connection.connection.loss;
            split_connection.rate = if kept > 0.0 { minimum / kept } else { 0.0 };
            // No law gives the length of the queues and buffers upstream of the bottleneck.
            split_connection.rtt_s = split_connection.rtt_s.filter(|_| index > slowest);
            split_connection.limit =
                Bottleneck::SplitConnection(format!("{} ({text})", decides.text()));
        }
        if split_connections.len() > 1 {
            split_connections[slowest].limit =
                Bottleneck::SplitConnection(format!("{} ({text})", decides.text()));
        }
        let mode = |point: &ProxyPosition| {
            scenario.node[point.node].proxy.as_ref().map(|proxy| proxy.mode)
        };
        let reflects = points.iter().map(|point| mode(point) == Some(ProxyMode::Reflect)).collect();
        Self { split_connections, reflects, slowest }
    }

    /// The connection of the sender.
    pub(super) fn first(&self) -> &Demand<'s> {
        &self.split_connections[0]
    }

    /// Segments per second that reach the destination.
    pub(super) fn arriving(&self) -> f64 {
        self.split_connections[self.split_connections.len() - 1].arriving()
    }

    /// Loss ratio of all segments that the sender and the proxies send.
    pub(super) fn loss(&self) -> f64 {
        let sent: f64 =
            self.split_connections.iter().map(|split_connection| split_connection.rate).sum();
        let arriving: f64 = self.split_connections.iter().map(Demand::arriving).sum();
        if sent > 0.0 { 1.0 - arriving / sent } else { self.first().connection.loss }
    }
}

/// The only stage of a flow.
fn stage(scenario: &Scenario, name: &str) -> Result<Stage, Vec<Unsupported>> {
    let mut stages =
        scenario.stages(name).map_err(|diagnostic| one(diagnostic.key, &diagnostic.message))?;
    match (stages.pop(), stages.is_empty()) {
        (Some(stage), true) => Ok(stage),
        _ => Err(one(
            format!("flow.{name}"),
            "there is no formula for a bulk flow through aggregators; use backend `sim`",
        )),
    }
}

fn one(key: String, reason: &str) -> Vec<Unsupported> {
    vec![Unsupported { key, reason: reason.to_owned() }]
}

/// A path and the proxies at which it is split.
struct SplitPath<'a, 's> {
    scenario: &'s Scenario,
    stage: &'a Stage,
    points: &'a [ProxyPosition],
}

impl SplitPath<'_, '_> {
    /// The connection that begins at the sender (0) or at a proxy, and its TCP parameters with the
    /// receive window of its end.
    fn split_connection(&self, index: usize) -> (Stage, StackParams) {
        let (start, end) =
            (index.checked_sub(1).map(|index| &self.points[index]), self.points.get(index));
        let out = start.map_or(0, |point| point.hops_before[0])
            ..end.map_or(self.stage.forward.len(), |point| point.hops_before[0]);
        // The reverse path begins at the destination.
        let back = end.map_or(0, |point| point.hops_before[1])
            ..start.map_or(self.stage.reverse.len(), |point| point.hops_before[1]);
        let name = |point: &ProxyPosition| self.scenario.node[point.node].proxy.as_ref();
        let own = start.and_then(name).and_then(|proxy| proxy.stack.clone());
        let stage = Stage {
            forward: self.stage.forward[out].to_vec(),
            reverse: self.stage.reverse[back].to_vec(),
            stack: own.or_else(|| self.stage.stack.clone()),
            ..self.stage.clone()
        };
        let far = StackParams::named(self.scenario, self.stage.stack.as_ref(), self.stage.ip)
            .receive_window;
        let mut params = StackParams::named(self.scenario, stage.stack.as_ref(), stage.ip);
        params.receive_window = self.window(index, far);
        if self.points.is_empty() {
            // RFC 9293, section 3.8.6.2.1: a window below the MSS is filled by one smaller segment.
            params.mss = params.mss.min(params.receive_window);
        }
        (stage, params)
    }

    /// Rejects a window below one segment on a path with proxies: the segments of its connections
    /// would differ in size.
    fn reject_small_windows(&self, flow: &str) -> Result<(), Vec<Unsupported>> {
        let stack = self.stage.stack.as_ref();
        let params = StackParams::named(self.scenario, stack, self.stage.ip);
        if self.points.is_empty() || params.receive_window >= params.mss {
            return Ok(());
        }
        let key = match stack {
            Some(stack) => format!("stack.{stack}.receive_window"),
            None => format!("flow.{flow}.stack"),
        };
        let reason = format!(
            "the receive window of {} B is below one segment, and the formulas of chains of \
                proxies describe full segments only; use at least {} B, or backend `sim`",
            params.receive_window, params.mss
        );
        Err(vec![Unsupported { key, reason }])
    }

    /// The buffers of the proxies, in segments of the connections that end at them.
    fn buffers(&self, split_connections: &[Demand<'_>]) -> Vec<Buffer> {
        let proxies =
            self.points.iter().filter_map(|point| self.scenario.node[point.node].proxy.as_ref());
        let buffer = |(proxy, split_connection): (&Proxy, &Demand<'_>)| Buffer {
            segments: (f64::from(proxy.window()) / f64::from(split_connection.stack.mss))
                .floor()
                .max(1.0),
            reflects: proxy.mode == ProxyMode::Reflect,
        };
        proxies.zip(split_connections).map(buffer).collect()
    }

    /// The receive window at the end of a connection: the buffer of the proxy and, for a reflecting
    /// proxy, at most the window that it receives from downstream (paper `plc`, section II.D.3).
    fn window(&self, index: usize, far: u32) -> u32 {
        let Some(point) = self.points.get(index) else { return far };
        let Some(proxy) = &self.scenario.node[point.node].proxy else { return far };
        match proxy.mode {
            ProxyMode::Reflect => proxy.window().min(self.window(index + 1, far)),
            _ => proxy.window(),
        }
    }
}

/// Rejects proxy settings that have no formula.
fn reject(scenario: &Scenario, points: &[ProxyPosition]) -> Result<(), Vec<Unsupported>> {
    let mut unsupported = Vec::new();
    for point in points {
        let Some((node, found)) = scenario.node.get_index(point.node) else { continue };
        let Some(Proxy { mode, crash, .. }) = &found.proxy else { continue };
        let mut reject = |key: &str, reason: &str| {
            let key = format!("node.{node}.proxy.{key}");
            unsupported.push(Unsupported { key, reason: reason.to_owned() });
        };
        if !mode.terminates_connections() {
            reject("mode", "there is no formula for this proxy mode; use backend `sim`");
        }
        if !crash.is_empty() {
            reject("crash", "the steady-state formulas exclude crashes; use backend `sim`");
        }
    }
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}
