//! Proxies: nodes that do more than forward the packets of a TCP connection (RFC 3135).

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error::Diagnostic;
use super::route::Network;
use super::{Flow, Hop, Scenario, Transport};
use crate::units::{Bytes, Duration};

/// A proxy at a node: what it does to the TCP connections that pass, both ways.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// What it does.
    pub mode: ProxyMode,
    /// `split`, `reflect`, `snoop`: most payload of one connection that it holds in each direction.
    #[serde(default = "default_buffer")]
    pub buffer: Bytes,
    /// `split`, `reflect`: name of the TCP stack with which it sends. Absent: the stack of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// `ack`: longest time for which an acknowledgement waits for a newer one that replaces it. It
    /// adds to the round trip: keep it well below.
    #[serde(default = "default_max_ack_delay")]
    pub max_ack_delay: Duration,
    /// `snoop`, `ack`: the end of the flow whose side is served. `snoop` repeats what is lost on
    /// the way to it, `ack` thins the acknowledgements that travel to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<FlowEnd>,
    /// Names of the flows that it serves; the others pass. Absent: all TCP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<String>>,
    /// When it crashes: it forgets all connections, with what it holds of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crash: Vec<Crash>,
}

/// What a proxy does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProxyMode {
    /// Nothing: it forwards.
    None,
    /// Ends the connection and opens one of its own to the other end (RFC 3135, section 2.4).
    Split,
    /// Keeps a copy of each segment, forwards it and acknowledges it in place of the receiver, with
    /// unchanged sequence numbers (paper `plc`, section III: BR²U, reflected ACKs).
    Reflect,
    /// Repeats from here what is lost on the last hop, and hides the duplicate acknowledgements of
    /// it from the sender. Acknowledges nothing itself (RFC 3135, section 3.1.3).
    Snoop,
    /// Lets fewer acknowledgements through where they carry no news (RFC 3449, section 5.2).
    Ack,
}

impl fmt::Display for ProxyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Split => "split",
            Self::Reflect => "reflect",
            Self::Snoop => "snoop",
            Self::Ack => "ack",
        })
    }
}

impl ProxyMode {
    /// Whether connections end at it, and what they deliver goes on over another one: it then
    /// acknowledges in place of the receiver, and uses no timestamps.
    #[must_use]
    pub const fn terminates_connections(self) -> bool {
        matches!(self, Self::Split | Self::Reflect)
    }
}

/// One of the ends of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FlowEnd {
    /// Its `from` end.
    From,
    /// Its `to` end.
    To,
}

/// A crash of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// When.
    pub at: Duration,
    /// For how long it is down. Absent: it is back at once, but remembers nothing.
    #[serde(default)]
    pub down: Duration,
    /// What becomes of packets while it is down.
    #[serde(default)]
    pub packets: PacketsWhileDown,
}

/// What becomes of packets at a proxy that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PacketsWhileDown {
    /// They are forwarded: the program has died, the regenerator works.
    #[default]
    Forward,
    /// They are lost: the whole node is without power.
    Drop,
}

/// A proxy on the way of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyPosition {
    /// Index of its node in [`Scenario::node`].
    pub node: usize,
    /// Hops before it on the way out and on the way back.
    pub hops_before: [usize; 2],
}

impl Proxy {
    /// The end that `snoop` and `ack` serve: as written, or else where data flows to (`snoop`) and
    /// comes from (`ack`) in a flow from `from` to `to`.
    #[must_use]
    pub const fn served(&self) -> FlowEnd {
        match (self.toward, self.mode) {
            (Some(end), _) => end,
            (None, ProxyMode::Ack) => FlowEnd::From,
            (None, _) => FlowEnd::To,
        }
    }

    /// The window that its buffer offers, in bytes.
    #[must_use]
    pub fn window(&self) -> u32 {
        u32::try_from(self.buffer.get()).unwrap_or(u32::MAX)
    }

    /// Whether it does something to this flow.
    #[must_use]
    pub fn serves(&self, name: &str, flow: &Flow) -> bool {
        self.mode != ProxyMode::None
            && flow.transport == Transport::Tcp
            && self.flows.as_ref().is_none_or(|flows| flows.iter().any(|served| served == name))
    }
}

impl Proxy {
    /// The keys that are set, but that its mode has no use for.
    fn idle_keys(&self) -> Vec<&'static str> {
        use ProxyMode::{Ack, None, Reflect, Snoop, Split};
        let default = (default_buffer(), default_max_ack_delay());
        let keys = [
            ("buffer", self.buffer != default.0, matches!(self.mode, Split | Reflect | Snoop)),
            ("stack", self.stack.is_some(), matches!(self.mode, Split | Reflect)),
            ("max_ack_delay", self.max_ack_delay != default.1, self.mode == Ack),
            ("toward", self.toward.is_some(), matches!(self.mode, Snoop | Ack)),
        ];
        let idle = keys.iter().filter(|(_, set, used)| *set && !used && self.mode != None);
        idle.map(|(key, ..)| *key).collect()
    }
}

impl Scenario {
    /// Keys of proxies that change nothing, since the mode of the proxy does not know them. Where a
    /// sweep varies the mode, each key may be for another one.
    pub(crate) fn idle_proxy_keys(&self) -> impl Iterator<Item = (String, ProxyMode)> {
        let proxies =
            self.node.iter().filter_map(|(name, node)| Some((name, node.proxy.as_ref()?)));
        proxies.flat_map(|(name, proxy)| {
            let mode = format!("node.{name}.proxy.mode");
            let swept = self.sweep.iter().any(|axis| axis.vary.contains_key(&mode));
            let idle = if swept { Vec::new() } else { proxy.idle_keys() };
            idle.into_iter().map(move |key| (format!("node.{name}.proxy.{key}"), proxy.mode))
        })
    }

    /// Names of the nodes with a proxy that no flow passes which it serves. Where there is a sweep, none
    /// may pass at any of its points.
    pub(crate) fn idle_proxies(&self) -> Vec<String> {
        self.at_all_points(Self::proxies_without_flows)
    }

    fn proxies_without_flows(&self) -> Vec<String> {
        let works = |proxy: &Proxy| proxy.mode != ProxyMode::None;
        let mut idle: Vec<_> =
            self.node.iter().filter(|(_, node)| node.proxy.as_ref().is_some_and(works)).collect();
        let network = (!idle.is_empty()).then(|| Network::new(self));
        for (name, flow) in network.iter().flat_map(|_| &self.flow) {
            let Some(network) = network.as_ref().filter(|_| !idle.is_empty()) else { break };
            // A flow without a way is told elsewhere.
            let Ok(routes) = network.routes(name, flow) else { continue };
            for (node, _) in self.served_at(name, flow, &routes.forward) {
                idle.retain(|(idle, _)| self.node.get_index_of(*idle) != Some(node));
            }
        }
        idle.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// The proxies that serve a flow, in the order of its way out.
    ///
    /// # Errors
    /// As [`Scenario::routes`]; or the way back does not pass the same proxies in reverse order
    /// (RFC 3135, section 4.2: a proxy must see both directions).
    pub fn proxy_positions(&self, flow: &str) -> Result<Vec<ProxyPosition>, Diagnostic> {
        let routes = self.routes(flow)?;
        self.proxy_positions_on(flow, &self.flow[flow], &routes.forward, &routes.reverse)
    }

    pub(super) fn proxy_positions_on(
        &self,
        name: &str,
        flow: &Flow,
        out: &[Hop],
        back: &[Hop],
    ) -> Result<Vec<ProxyPosition>, Diagnostic> {
        let there = self.served_at(name, flow, out);
        let mut home = self.served_at(name, flow, back);
        home.reverse();
        let nodes = |way: &[(usize, usize)]| way.iter().map(|at| at.0).collect::<Vec<_>>();
        if nodes(&there) != nodes(&home) {
            return Err(Diagnostic::new(
                format!("flow.{name}.reverse_route"),
                "the way back does not pass the proxies of the way out",
                "a proxy must see both directions: let both ways pass it, or leave this flow out of \
                 its `flows`",
            ));
        }
        let both = there.into_iter().zip(home);
        Ok(both
            .map(|((node, out), (_, back))| ProxyPosition { node, hops_before: [out, back] })
            .collect())
    }

    /// Nodes with a proxy that serves the flow, and the hops before them.
    fn served_at(&self, name: &str, flow: &Flow, hops: &[Hop]) -> Vec<(usize, usize)> {
        let before_last = &hops[..hops.len().saturating_sub(1)];
        let ends = before_last.iter().enumerate().filter_map(|(index, hop)| {
            let link = &self.link[hop.link];
            let end = if hop.forward { &link.to } else { &link.from };
            let (node, _, found) = self.node.get_full(end)?;
            let serves = found.proxy.as_ref().is_some_and(|proxy| proxy.serves(name, flow));
            serves.then_some((node, index + 1))
        });
        ends.collect()
    }
}

const fn default_buffer() -> Bytes {
    Bytes::new(65_536)
}
const fn default_max_ack_delay() -> Duration {
    Duration::from_millis(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(proxy: &str, sweep: &str) -> Vec<String> {
        let text = format!(
            "title = 'idle'\nduration = '1 s'\n{sweep}\n\
             [node]\na = {{}}\nu = {{ proxy = {proxy} }}\nb = {{}}\n\
             [link.one]\nfrom = 'a'\nto = 'u'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [link.two]\nfrom = 'u'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n"
        );
        let scenario = Scenario::from_toml(&text, "idle.toml").expect("a scenario");
        scenario.idle_proxy_keys().map(|(key, _)| key).collect()
    }

    #[test]
    fn proxies_that_no_flow_passes_are_named() {
        let idle = |near: &str, middle: &str, rest: &str| {
            let text = format!(
                "title = 'idle'\nduration = '1 s'\n{rest}\n\
                 [node]\na = {{ {near} }}\nu = {{ {middle} }}\nb = {{}}\nalone = {{ proxy.mode = 'ack' }}\n\
                 [link.one]\nfrom = 'a'\nto = 'u'\nboth = {{ rate = '1 Mbit/s' }}\n\
                 [link.two]\nfrom = 'u'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
                 [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n"
            );
            let scenario = Scenario::from_toml(&text, "idle.toml").expect("a scenario");
            scenario.idle_proxies()
        };
        assert_eq!(idle("", "proxy.mode = 'split'", ""), ["alone"]);
        assert_eq!(idle("proxy.mode = 'split'", "", ""), ["a", "alone"], "an end is not passed");
        assert_eq!(idle("", "proxy = { mode = 'ack', flows = [] }", ""), ["u", "alone"]);
        let swept = "sweep = [{ vary = { 'flow.up.from' = ['u', 'a'] } }]";
        assert_eq!(idle("", "proxy.mode = 'split'", swept), ["alone"]);
    }

    #[test]
    fn keys_of_another_mode_are_named_unless_the_mode_is_swept() {
        let hold = "{ mode = 'split', max_ack_delay = '5 ms', toward = 'to', buffer = '10 kB' }";
        let sweep = "sweep = [{ vary = { 'node.u.proxy.mode' = ['split', 'ack'] } }]";
        assert_eq!(idle(hold, ""), ["node.u.proxy.max_ack_delay", "node.u.proxy.toward"]);
        assert_eq!(idle(hold, sweep), [""; 0]);
        assert_eq!(idle("{ mode = 'ack', max_ack_delay = '5 ms' }", ""), [""; 0]);
        assert_eq!(idle("{ mode = 'none', max_ack_delay = '5 ms' }", ""), [""; 0]);
    }
}
