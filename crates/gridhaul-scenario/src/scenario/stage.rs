//! Stages: the connections that a flow is cut into by the collectors on its way.

use super::error::Diagnostic;
use super::{Flow, Hop, IpVersion, Routes, Scenario, Transport};

/// A part of a flow's way that has a connection of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// Node where the connection begins: that of the flow, or a collector.
    pub from: String,
    /// Node where it ends: a collector, or that of the flow.
    pub to: String,
    /// From `from` to `to`.
    pub out: Vec<Hop>,
    /// From `to` back to `from`; empty for datagrams.
    pub back: Vec<Hop>,
    /// Number of connections: one for each flow in the first stage, one for each collector after.
    pub connections: u64,
    /// Name of the stack of its ends. `None`: the default stack.
    pub stack: Option<String>,
    /// Version of IP of its packets.
    pub ip: IpVersion,
}

/// Name of the answer's row of the connections from a collector onwards.
#[must_use]
pub fn upstream_name(collector: &str, to: &str) -> String {
    format!("{collector}>{to}")
}

impl Scenario {
    /// The stages of a flow: one without collectors on its way, else one more for each of them.
    /// Datagrams pass collectors untouched.
    ///
    /// # Errors
    /// As [`Scenario::routes`]; or the way back does not pass the same collectors in reverse
    /// order, so that they would not see the acknowledgements (RFC 3135, section 2).
    pub fn stages(&self, flow: &str) -> Result<Vec<Stage>, Diagnostic> {
        self.cut(flow, &self.flow[flow], self.routes(flow)?)
    }

    /// Cuts the ways of a flow into stages.
    pub(super) fn cut(
        &self,
        name: &str,
        flow: &Flow,
        ways: Routes,
    ) -> Result<Vec<Stage>, Diagnostic> {
        let whole = Stage {
            from: flow.from.clone(),
            to: flow.to.clone(),
            out: ways.out,
            back: ways.back,
            connections: self.connections(flow),
            stack: flow.stack.clone(),
            ip: flow.ip,
        };
        if flow.transport != Transport::Tcp {
            return Ok(vec![whole]);
        }
        let out = self.pieces(&flow.from, &whole.out);
        let mut back = self.pieces(&flow.to, &whole.back);
        back.reverse();
        // A piece of the way back begins where the same piece of the way out ends.
        let same =
            out.len() == back.len() && out.iter().zip(&back).all(|(out, back)| out.to == back.from);
        if !same {
            return Err(Diagnostic::new(
                format!("flow.{name}.reverse_route"),
                "the way back does not pass the collectors of the way out",
                "a collector ends connections: let both ways pass it, or remove its `aggregator`",
            ));
        }
        let mut stages: Vec<Stage> = Vec::with_capacity(out.len());
        for (out, back) in out.into_iter().zip(back) {
            let (connections, stack, ip) = match self.node[out.from].aggregator.as_ref() {
                Some(collector) if !stages.is_empty() => (
                    u64::from(self.node[out.from].count),
                    collector.stack.clone().or_else(|| flow.stack.clone()),
                    collector.ip.unwrap_or(flow.ip),
                ),
                _ => (whole.connections, whole.stack.clone(), whole.ip),
            };
            stages.push(Stage {
                from: out.from.to_owned(),
                to: out.to.to_owned(),
                out: out.hops,
                back: back.hops,
                connections,
                stack,
                ip,
            });
        }
        Ok(stages)
    }

    /// Cuts a way at the collectors that it passes.
    fn pieces<'s>(&'s self, from: &'s str, hops: &[Hop]) -> Vec<Piece<'s>> {
        let mut pieces = vec![Piece { from, to: from, hops: Vec::new() }];
        for (index, hop) in hops.iter().enumerate() {
            let link = &self.link[hop.link];
            let next = if hop.forward { &link.to } else { &link.from };
            let last = pieces.len() - 1;
            pieces[last].hops.push(*hop);
            pieces[last].to = next;
            if self.node[next].aggregator.is_some() && index + 1 < hops.len() {
                pieces.push(Piece { from: next, to: next, hops: Vec::new() });
            }
        }
        pieces
    }
}

/// A part of a way between two nodes where connections end.
struct Piece<'s> {
    from: &'s str,
    to: &'s str,
    hops: Vec<Hop>,
}
