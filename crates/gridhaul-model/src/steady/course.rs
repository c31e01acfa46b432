//! The course of a flow: the connections that proxies cut it into, the slowest of which decides.
//!
//! Paper `plc`, equation 3, has equal loss on all hops, so that the longest decides. Here each hop
//! has its own loss, buffer and rate.

use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::backend::Unsupported;
use gridhaul_scenario::scenario::{Proxy, ProxyMode, ProxyPosition, Scenario, Stage};

use super::buffers::{self, Buffer};
use super::demand::{Demand, Limit};
use crate::rules::Rules;

/// A flow as the connections that it is made of, in the order in which its data crosses them: one,
/// if no proxy is on its way.
#[derive(Debug, Clone)]
pub(super) struct Course<'s> {
    pub pieces: Vec<Demand<'s>>,
    /// The piece that decides.
    pub slowest: usize,
}

impl<'s> Course<'s> {
    /// Reads a flow and applies the laws of its pieces as if it were alone.
    ///
    /// # Errors
    /// Each key for which there is no formula.
    pub(super) fn of(
        scenario: &'s Scenario,
        name: &'s str,
        rules: Rules,
    ) -> Result<Self, Vec<Unsupported>> {
        let one = |key: String, reason: &str| vec![Unsupported { key, reason: reason.to_owned() }];
        let flow = &scenario.flow[name];
        let stages = scenario
            .stages(name)
            .map_err(|diagnostic| one(diagnostic.key.clone(), &diagnostic.message))?;
        let [stage] = &stages[..] else {
            return Err(one(
                format!("flow.{name}"),
                "a bulk flow through collectors has no formula here",
            ));
        };
        let points = scenario
            .proxy_positions(name)
            .map_err(|diagnostic| one(diagnostic.key.clone(), &diagnostic.message))?;
        refuse(scenario, &points)?;
        let cuts = Cuts { scenario, stage, points: &points };
        let pieces = (0..=points.len()).map(|index| {
            let (stage, stack) = cuts.piece(index);
            Demand::of(scenario, (name, flow), &stage, stack, rules)
        });
        let pieces = pieces.collect::<Result<Vec<_>, _>>()?;
        let buffers = cuts.buffers(&pieces);
        Ok(Self::joined(scenario, pieces, &points, &buffers))
    }

    /// What the first piece sends reaches the end at the rate of the slowest piece: the buffers
    /// before it fill, and the windows that they offer close. Where a buffer is small, the hops
    /// before and after it together are slower than each of them alone.
    fn joined(
        scenario: &Scenario,
        mut pieces: Vec<Demand<'s>>,
        points: &[ProxyPosition],
        buffers: &[Buffer],
    ) -> Self {
        let rates = pieces.iter().map(Demand::arriving).zip(0_usize..);
        let (mut least, mut slowest) =
            rates.min_by(|a, b| a.0.total_cmp(&b.0)).expect("a way has at least one piece");
        if let Some(limit) = buffers::limit(&pieces, buffers) {
            (least, slowest) = (limit.rate, limit.piece);
            let (node, _) =
                scenario.node.get_index(points[limit.proxy].node).expect("a proxy is at a node");
            let piece = &mut pieces[slowest];
            piece.rate = least / (1.0 - piece.connection.loss);
            piece.rtt_s = Some(piece.connection.rtt_s);
            piece.limit = Limit::Buffer(node.clone());
        }
        let before = slowest.checked_sub(1).map(|index| &points[index]);
        let place = before.and_then(|point| scenario.node.get_index(point.node));
        let text = place.map_or("the first hop".to_owned(), |(node, _)| {
            format!("the hop behind the proxy at {node}")
        });
        let decides = pieces[slowest].limit.clone();
        for (index, piece) in pieces.iter_mut().enumerate().filter(|(index, _)| *index != slowest) {
            let kept = 1.0 - piece.connection.loss;
            piece.rate = if kept > 0.0 { least / kept } else { 0.0 };
            // How long the queues and buffers before the slowest piece are, no law says.
            piece.rtt_s = piece.rtt_s.filter(|_| index > slowest);
            piece.limit = Limit::Piece(format!("{} ({text})", decides.text()));
        }
        if pieces.len() > 1 {
            pieces[slowest].limit = Limit::Piece(format!("{} ({text})", decides.text()));
        }
        Self { pieces, slowest }
    }

    /// The flow as seen from its sender.
    pub(super) fn first(&self) -> &Demand<'s> {
        &self.pieces[0]
    }

    /// Segments a second that reach the end.
    pub(super) fn arriving(&self) -> f64 {
        self.pieces[self.pieces.len() - 1].arriving()
    }

    /// Share of the segments lost of all that the sender and the proxies send.
    pub(super) fn loss(&self) -> f64 {
        let sent: f64 = self.pieces.iter().map(|piece| piece.rate).sum();
        let arriving: f64 = self.pieces.iter().map(Demand::arriving).sum();
        if sent > 0.0 { 1.0 - arriving / sent } else { self.first().connection.loss }
    }
}

/// Where a flow is cut.
struct Cuts<'a, 's> {
    scenario: &'s Scenario,
    stage: &'a Stage,
    points: &'a [ProxyPosition],
}

impl Cuts<'_, '_> {
    /// The piece that begins at the sender (0) or at a proxy, and the stack that sends on it, with
    /// the window that is offered at its end.
    fn piece(&self, index: usize) -> (Stage, StackParams) {
        let (start, end) =
            (index.checked_sub(1).map(|index| &self.points[index]), self.points.get(index));
        let out = start.map_or(0, |point| point.hops_before[0])
            ..end.map_or(self.stage.forward.len(), |point| point.hops_before[0]);
        // The way back begins at the far end.
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
        (stage, params)
    }

    /// The buffers of the proxies, in segments of the pieces that end at them.
    fn buffers(&self, pieces: &[Demand<'_>]) -> Vec<Buffer> {
        let proxies =
            self.points.iter().filter_map(|point| self.scenario.node[point.node].proxy.as_ref());
        let buffer = |(proxy, piece): (&Proxy, &Demand<'_>)| Buffer {
            segments: (f64::from(proxy.window()) / f64::from(piece.stack.mss)).floor().max(1.0),
            reflects: proxy.mode == ProxyMode::Reflect,
        };
        proxies.zip(pieces).map(buffer).collect()
    }

    /// The window at the end of a piece: the buffer of the proxy there and, if it reflects, no more
    /// than the window that it is offered itself (paper `plc`, section II.D.3).
    fn window(&self, index: usize, far: u32) -> u32 {
        let Some(point) = self.points.get(index) else { return far };
        let Some(proxy) = &self.scenario.node[point.node].proxy else { return far };
        match proxy.mode {
            ProxyMode::Reflect => proxy.window().min(self.window(index + 1, far)),
            _ => proxy.window(),
        }
    }
}

/// Names what has no formula of the proxies on a way.
fn refuse(scenario: &Scenario, points: &[ProxyPosition]) -> Result<(), Vec<Unsupported>> {
    let mut unsupported = Vec::new();
    for point in points {
        let Some((node, found)) = scenario.node.get_index(point.node) else { continue };
        let Some(Proxy { mode, crash, .. }) = &found.proxy else { continue };
        let mut refuse = |key: &str, reason: &str| {
            let key = format!("node.{node}.proxy.{key}");
            unsupported.push(Unsupported { key, reason: reason.to_owned() });
        };
        if !mode.terminates_connections() {
            refuse("mode", "no published law is used for this kind of proxy; ask `--on sim`");
        }
        if !crash.is_empty() {
            refuse("crash", "the steady state knows no crashes; ask `--on sim`");
        }
    }
    if unsupported.is_empty() { Ok(()) } else { Err(unsupported) }
}
