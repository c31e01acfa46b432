//! Proxies: nodes that process the segments of TCP connections (performance enhancing proxies, RFC
//! 3135).

use std::fmt;

use serde::{Deserialize, Serialize};

use super::error::Diagnostic;
use super::route::Network;
use super::{Flow, Hop, Scenario, Transport};
use crate::units::{Bytes, Duration};

/// A proxy at a node, for TCP connections that pass it in both directions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// Mode of operation.
    pub mode: ProxyMode,
    /// `split`, `reflect`, `spoof`, `snoop`: buffer for the payload of each connection in each
    /// direction.
    #[serde(default = "default_buffer")]
    pub buffer: Bytes,
    /// `split`, `reflect`: name of the TCP stack of the proxy. Absent: the stack of the flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
    /// `ack`: longest time for which an acknowledgement waits for a newer one that supersedes it.
    /// This time adds to the round-trip time and should be much shorter.
    #[serde(default = "default_max_ack_delay")]
    pub max_ack_delay: Duration,
    /// `snoop`, `ack`: the end of the flow that the proxy serves. `snoop` retransmits segments that
    /// are lost on the path to this end, `ack` thins the acknowledgements sent to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toward: Option<FlowEnd>,
    /// Names of the flows that the proxy serves; others are only forwarded. Absent: all TCP flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<String>>,
    /// Crashes of the proxy: the state of all connections and all buffered data is lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crash: Vec<Crash>,
}

/// Mode of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ProxyMode {
    /// Forwarding only.
    None,
    /// Terminates the connection and opens another one to the other end (RFC 3135, section 2.4).
    Split,
    /// Stores each segment, acknowledges it in place of the receiver, and sends it over the next
    /// hop in order, with a congestion window of its own and unchanged sequence numbers (paper
    /// `plc`, equation 3: each hop has the rate of a sender).
    Reflect,
    /// Forwards each segment at once, also after a gap, stores a copy and acknowledges every
    /// segment in place of the receiver. Retransmits what the next hop loses; has no congestion
    /// window (paper `plc`, sections II.D.3 and III: TCP spoof proxy, BR²U).
    Spoof,
    /// Retransmits segments that are lost downstream, and hides the duplicate acknowledgements from
    /// the sender. Sends no acknowledgements of its own (RFC 3135, section 3.1.3).
    Snoop,
    /// Thins acknowledgements: drops those that newer ones supersede (RFC 3449, section 5.2).
    Ack,
}

impl fmt::Display for ProxyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Split => "split",
            Self::Reflect => "reflect",
            Self::Spoof => "spoof",
            Self::Snoop => "snoop",
            Self::Ack => "ack",
        })
    }
}

impl ProxyMode {
    /// All modes.
    pub const ALL: [Self; 6] =
        [Self::None, Self::Split, Self::Reflect, Self::Spoof, Self::Snoop, Self::Ack];

    /// Whether the proxy acknowledges data in place of the receiver, and uses no timestamps.
    #[must_use]
    pub const fn acknowledges_data(self) -> bool {
        self.terminates_connections() || matches!(self, Self::Spoof)
    }

    /// Whether the proxy has a connection of its own on each side, with a congestion window.
    #[must_use]
    pub const fn terminates_connections(self) -> bool {
        matches!(self, Self::Split | Self::Reflect)
    }
}

/// An end of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowEnd {
    /// The `from` end.
    From,
    /// The `to` end.
    To,
}

impl FlowEnd {
    /// The other end of the flow.
    #[inline]
    #[must_use]
    pub const fn peer(self) -> Self {
        match self {
            Self::From => Self::To,
            Self::To => Self::From,
        }
    }
}

/// A crash of a proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Crash {
    /// Time of the crash.
    pub at: Duration,
    /// Time until the restart. Absent: immediate restart, without the previous state.
    #[serde(default)]
    pub down: Duration,
    /// Treatment of packets while the proxy is down.
    #[serde(default)]
    pub packets: PacketsWhileDown,
}

/// Treatment of packets at a proxy that is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schema"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PacketsWhileDown {
    /// Forwarded: the proxy process has failed, but the node still forwards.
    #[default]
    Forward,
    /// Dropped: the whole node is down.
    Drop,
}

/// Position of a proxy on the path of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyPosition {
    /// Index of the node in [`Scenario::node`].
    pub node: usize,
    /// Number of hops before the proxy on the path and on the reverse path.
    pub hops_before: [usize; 2],
}

impl Proxy {
    /// The end that `snoop` and `ack` serve: `toward`, or else the receiver (`snoop`) or the sender
    /// (`ack`) of a flow from `from` to `to`.
    #[must_use]
    pub const fn served(&self) -> FlowEnd {
        match (self.toward, self.mode) {
            (Some(end), _) => end,
            (None, ProxyMode::Ack) => FlowEnd::From,
            (None, _) => FlowEnd::To,
        }
    }

    /// The window that the proxy offers with an empty buffer, in bytes.
    #[must_use]
    pub fn window(&self) -> u32 {
        u32::try_from(self.buffer.get()).unwrap_or(u32::MAX)
    }

    /// Whether the proxy processes the segments of this flow.
    #[must_use]
    pub fn serves(&self, name: &str, flow: &Flow) -> bool {
        self.mode != ProxyMode::None
            && flow.transport == Transport::Tcp
            && self.flows.as_ref().is_none_or(|flows| flows.iter().any(|served| served == name))
    }
}

impl Proxy {
    /// The keys that are set but have no effect in the mode of the proxy.
    fn ineffective_keys(&self) -> Vec<&'static str> {
        use ProxyMode::{Ack, None, Reflect, Snoop, Split, Spoof};
        let default = (default_buffer(), default_max_ack_delay());
        let keys = [
            (
                "buffer",
                self.buffer != default.0,
                matches!(self.mode, Split | Reflect | Spoof | Snoop),
            ),
            ("stack", self.stack.is_some(), matches!(self.mode, Split | Reflect)),
            ("max_ack_delay", self.max_ack_delay != default.1, self.mode == Ack),
            ("toward", self.toward.is_some(), matches!(self.mode, Snoop | Ack)),
        ];
        let ineffective = keys.iter().filter(|(_, set, used)| *set && !used && self.mode != None);
        ineffective.map(|(key, ..)| *key).collect()
    }
}

impl Scenario {
    /// Keys of proxies that have no effect in the mode of the proxy. Proxies whose mode is swept
    /// are left out, since a key may belong to another of the modes.
    pub(crate) fn ineffective_proxy_keys(&self) -> impl Iterator<Item = (String, ProxyMode)> {
        let proxies =
            self.node.iter().filter_map(|(name, node)| Some((name, node.proxy.as_ref()?)));
        proxies.flat_map(|(name, proxy)| {
            let mode = format!("node.{name}.proxy.mode");
            let swept = self.sweep.iter().any(|axis| axis.vary.contains_key(&mode));
            let keys = if swept { Vec::new() } else { proxy.ineffective_keys() };
            keys.into_iter().map(move |key| (format!("node.{name}.proxy.{key}"), proxy.mode))
        })
    }

    /// Names of the nodes with a proxy that processes no flow; in a sweep, at no point.
    pub(crate) fn unused_proxies(&self) -> Vec<String> {
        self.at_all_points(Self::unused_proxies_here)
    }

    fn unused_proxies_here(&self) -> Vec<String> {
        let is_enabled = |proxy: &Proxy| proxy.mode != ProxyMode::None;
        let mut unused: Vec<_> = self
            .node
            .iter()
            .filter(|(_, node)| node.proxy.as_ref().is_some_and(is_enabled))
            .collect();
        let network = (!unused.is_empty()).then(|| Network::new(self));
        for (name, flow) in network.iter().flat_map(|_| &self.flow) {
            let Some(network) = network.as_ref().filter(|_| !unused.is_empty()) else { break };
            // A flow without a path is reported elsewhere.
            let Ok(routes) = network.routes(name, flow) else { continue };
            for (node, _) in self.served_at(name, flow, &routes.forward) {
                unused.retain(|(name, _)| self.node.get_index_of(*name) != Some(node));
            }
        }
        unused.into_iter().map(|(name, _)| name.clone()).collect()
    }

    /// Positions of the proxies that serve a flow, in the order of its path.
    ///
    /// # Errors
    /// As [`Scenario::routes`]; or the reverse path does not pass the same proxies in reverse order
    /// (RFC 3135, section 4.2: a proxy must see both directions).
    pub fn proxy_positions(&self, flow: &str) -> Result<Vec<ProxyPosition>, Diagnostic> {
        let routes = self.routes(flow)?;
        self.proxy_positions_on(flow, &self.flow[flow], &routes.forward, &routes.reverse)
    }

    pub(super) fn proxy_positions_on(
        &self,
        name: &str,
        flow: &Flow,
        forward: &[Hop],
        reverse: &[Hop],
    ) -> Result<Vec<ProxyPosition>, Diagnostic> {
        let forward = self.served_at(name, flow, forward);
        let mut reverse = self.served_at(name, flow, reverse);
        reverse.reverse();
        let nodes = |path: &[(usize, usize)]| path.iter().map(|at| at.0).collect::<Vec<_>>();
        if nodes(&forward) != nodes(&reverse) {
            return Err(Diagnostic::new(
                format!("flow.{name}.reverse_route"),
                "the reverse path does not pass the proxies of the path",
                "a proxy must see both directions: route both through it, or leave this flow out \
                 of its `flows`",
            ));
        }
        let both = forward.into_iter().zip(reverse);
        Ok(both
            .map(|((node, out), (_, back))| ProxyPosition { node, hops_before: [out, back] })
            .collect())
    }

    /// Nodes with a proxy that serves the flow, and the number of hops before them.
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

    fn ineffective(proxy: &str, sweep: &str) -> Vec<String> {
        let text = format!(
            "title = 'idle'\nduration = '1 s'\n{sweep}\n\
             [node]\na = {{}}\nu = {{ proxy = {proxy} }}\nb = {{}}\n\
             [link.one]\nfrom = 'a'\nto = 'u'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [link.two]\nfrom = 'u'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
             [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n"
        );
        let scenario = Scenario::from_toml(&text, "idle.toml").expect("a scenario");
        scenario.ineffective_proxy_keys().map(|(key, _)| key).collect()
    }

    #[test]
    fn unused_proxies_are_reported() {
        let unused = |sender: &str, middle: &str, rest: &str| {
            let text = format!(
                "title = 'idle'\nduration = '1 s'\n{rest}\n\
                 [node]\na = {{ {sender} }}\nu = {{ {middle} }}\nb = {{}}\n\
                 alone = {{ proxy.mode = 'ack' }}\n\
                 [link.one]\nfrom = 'a'\nto = 'u'\nboth = {{ rate = '1 Mbit/s' }}\n\
                 [link.two]\nfrom = 'u'\nto = 'b'\nboth = {{ rate = '1 Mbit/s' }}\n\
                 [flow.up]\nfrom = 'a'\nto = 'b'\nload = 'bulk'\n"
            );
            let scenario = Scenario::from_toml(&text, "idle.toml").expect("a scenario");
            scenario.unused_proxies()
        };
        assert_eq!(unused("", "proxy.mode = 'split'", ""), ["alone"]);
        assert_eq!(
            unused("proxy.mode = 'split'", "", ""),
            ["a", "alone"],
            "a flow does not pass its own end"
        );
        assert_eq!(unused("", "proxy = { mode = 'ack', flows = [] }", ""), ["u", "alone"]);
        let swept = "sweep = [{ vary = { 'flow.up.from' = ['u', 'a'] } }]";
        assert_eq!(unused("", "proxy.mode = 'split'", swept), ["alone"]);
    }

    #[test]
    fn keys_of_another_mode_are_reported_unless_the_mode_is_swept() {
        let hold = "{ mode = 'split', max_ack_delay = '5 ms', toward = 'to', buffer = '10 kB' }";
        let sweep = "sweep = [{ vary = { 'node.u.proxy.mode' = ['split', 'ack'] } }]";
        assert_eq!(ineffective(hold, ""), ["node.u.proxy.max_ack_delay", "node.u.proxy.toward"]);
        assert_eq!(ineffective(hold, sweep), [""; 0]);
        assert_eq!(ineffective("{ mode = 'ack', max_ack_delay = '5 ms' }", ""), [""; 0]);
        assert_eq!(ineffective("{ mode = 'none', max_ack_delay = '5 ms' }", ""), [""; 0]);
    }
}
