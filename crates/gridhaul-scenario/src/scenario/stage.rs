//! Stages: the parts of a flow's path between the aggregators that terminate its connections.

use super::error::Diagnostic;
use super::{Flow, Hop, IpVersion, Routes, Scenario, Transport};

/// A part of a flow's path with its own TCP connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Node that opens the connections: the `from` node of the flow, or an aggregator.
    pub from: String,
    /// Node that accepts the connections: an aggregator, or the `to` node of the flow.
    pub to: String,
    /// Path from `from` to `to`.
    pub forward: Vec<Hop>,
    /// Reverse path from `to` to `from`; empty for datagrams.
    pub reverse: Vec<Hop>,
    /// Number of connections: one per flow in the first stage, one per aggregator in the others.
    pub connections: u64,
    /// Name of the TCP stack at both ends. `None`: the default stack.
    pub stack: Option<String>,
    /// IP version of the packets.
    pub ip: IpVersion,
}

/// Name of the row in the answer for the connections from an aggregator to `to`.
#[must_use]
pub fn upstream_name(aggregator: &str, to: &str) -> String {
    format!("{aggregator}>{to}")
}

impl Scenario {
    /// The stages of a flow: one more than the number of aggregators on its path. Aggregators
    /// forward datagrams unchanged.
    ///
    /// # Errors
    /// As [`Scenario::routes`]; or the reverse path does not pass the same aggregators in reverse
    /// order, so that these would not see the acknowledgements (RFC 3135, section 2).
    pub fn stages(&self, flow: &str) -> Result<Vec<Stage>, Diagnostic> {
        self.split_at_aggregators(flow, &self.flow[flow], self.routes(flow)?)
    }

    /// Splits the paths of a flow into stages.
    pub(super) fn split_at_aggregators(
        &self,
        name: &str,
        flow: &Flow,
        routes: Routes,
    ) -> Result<Vec<Stage>, Diagnostic> {
        let end_to_end = Stage {
            from: flow.from.clone(),
            to: flow.to.clone(),
            forward: routes.forward,
            reverse: routes.reverse,
            connections: self.connections(flow),
            stack: flow.stack.clone(),
            ip: flow.ip,
        };
        if flow.transport != Transport::Tcp {
            return Ok(vec![end_to_end]);
        }
        let forward = self.sections(&flow.from, &end_to_end.forward);
        let mut reverse = self.sections(&flow.to, &end_to_end.reverse);
        reverse.reverse();
        // A section of the reverse path begins where its section of the path ends.
        let is_symmetric = forward.len() == reverse.len()
            && forward.iter().zip(&reverse).all(|(forward, reverse)| forward.to == reverse.from);
        if !is_symmetric {
            return Err(Diagnostic::new(
                format!("flow.{name}.reverse_route"),
                "the reverse path does not pass the aggregators of the path",
                "an aggregator terminates connections: route both directions through it, or \
                 remove its `aggregator`",
            ));
        }
        let mut stages: Vec<Stage> = Vec::with_capacity(forward.len());
        for (forward, reverse) in forward.into_iter().zip(reverse) {
            let (connections, stack, ip) = match self.node[forward.from].aggregator.as_ref() {
                Some(aggregator) if !stages.is_empty() => (
                    u64::from(self.node[forward.from].count),
                    aggregator.stack.clone().or_else(|| flow.stack.clone()),
                    aggregator.ip.unwrap_or(flow.ip),
                ),
                _ => (end_to_end.connections, end_to_end.stack.clone(), end_to_end.ip),
            };
            stages.push(Stage {
                from: forward.from.to_owned(),
                to: forward.to.to_owned(),
                forward: forward.hops,
                reverse: reverse.hops,
                connections,
                stack,
                ip,
            });
        }
        Ok(stages)
    }

    /// Splits a path at the aggregators that it passes.
    fn sections<'s>(&'s self, from: &'s str, hops: &[Hop]) -> Vec<PathSection<'s>> {
        let mut sections = vec![PathSection { from, to: from, hops: Vec::new() }];
        for (index, hop) in hops.iter().enumerate() {
            let link = &self.link[hop.link];
            let next = if hop.forward { &link.to } else { &link.from };
            let last = sections.len() - 1;
            sections[last].hops.push(*hop);
            sections[last].to = next;
            if self.node[next].aggregator.is_some() && index + 1 < hops.len() {
                sections.push(PathSection { from: next, to: next, hops: Vec::new() });
            }
        }
        sections
    }
}

/// A part of a path between two nodes that terminate connections.
struct PathSection<'s> {
    from: &'s str,
    to: &'s str,
    hops: Vec<Hop>,
}
