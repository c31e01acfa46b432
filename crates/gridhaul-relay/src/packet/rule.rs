//! Rules that select the proxy of a connection.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use gridhaul_core::pep::{
    AckFilter, AckFilterTrial, MssLimit, Proxy, Reflect, Side, Snoop, Split, Spoof,
};
use gridhaul_core::tcp::StackParams;
use gridhaul_scenario::relay::{AddressPrefix, BridgeConfig, BridgeRule};
use gridhaul_scenario::scenario::{IpVersion, Profile, ProxyMode, Stack};
use gridhaul_scenario::units::{Bytes, Duration, WindowSize};

use super::BridgePort;
use super::split_observer::SplitObserver;

/// A rule of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    pub(super) mode: ProxyMode,
    pub(super) buffer: Bytes,
    opened_from: Option<BridgePort>,
    clients: Vec<AddressPrefix>,
    servers: Vec<AddressPrefix>,
    ports: Vec<RangeInclusive<u16>>,
    toward: Option<BridgePort>,
    max_ack_delay: Duration,
    compare_goodput: bool,
    stack: Stack,
}

/// A connection that is being opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewConnection {
    /// The interface at which SYN has arrived.
    pub(super) from: BridgePort,
    pub(super) client: SocketAddr,
    pub(super) server: SocketAddr,
    /// Largest segment that the client accepts.
    pub(super) client_mss: u32,
}

impl Rule {
    /// The rules of a configuration, in their order.
    #[must_use]
    pub fn all(config: &BridgeConfig) -> Vec<Self> {
        config.rule.iter().map(|(name, rule)| Self::new(name, rule, &config.interfaces)).collect()
    }

    fn new(name: &str, rule: &BridgeRule, interfaces: &[String]) -> Self {
        let port = |interface: &Option<String>| {
            let named = interface.as_ref()?;
            BridgePort::BOTH.into_iter().find(|port| interfaces.get(port.index()) == Some(named))
        };
        let prefixes = |texts: &[String]| {
            texts.iter().filter_map(|text| AddressPrefix::parse(text)).collect::<Vec<_>>()
        };
        // Hosts behind a proxy that acknowledges data use no timestamps, as it has neither clock.
        let stack = Stack {
            profile: Profile::Linux,
            timestamps: Some(false),
            nagle: Some(false),
            congestion_control: rule.congestion_control,
            receive_window: Some(WindowSize::Bytes(rule.buffer)),
            delayed_ack: (!rule.delayed_ack).then_some(Duration::ZERO),
            ..Stack::default()
        };
        Self {
            name: name.to_owned(),
            mode: rule.mode,
            buffer: rule.buffer,
            opened_from: port(&rule.opened_from),
            clients: prefixes(&rule.clients),
            servers: prefixes(&rule.servers),
            ports: rule.ports.iter().map(|range| range.0.clone()).collect(),
            toward: port(&rule.toward),
            max_ack_delay: rule.max_ack_delay,
            compare_goodput: rule.compare_goodput,
            stack,
        }
    }

    /// Whether the rule selects a connection.
    pub(super) fn matches(&self, connection: &NewConnection) -> bool {
        let contains = |prefixes: &[AddressPrefix], host: &SocketAddr| {
            prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.contains(host.ip()))
        };
        let port = connection.server.port();
        self.opened_from.is_none_or(|opened_from| opened_from == connection.from)
            && contains(&self.clients, &connection.client)
            && contains(&self.servers, &connection.server)
            && (self.ports.is_empty() || self.ports.iter().any(|range| range.contains(&port)))
    }

    /// The side of the hop that the proxy serves.
    fn served_side(&self, client: BridgePort) -> Side {
        if self.toward == Some(client) { Side::Client } else { Side::Server }
    }
}

/// Builds proxies. Connections with the same segment size share their TCP parameters.
#[derive(Debug, Default)]
pub(super) struct ProxyBuilder {
    params: BTreeMap<(usize, bool, u32), Arc<StackParams>>,
}

/// Largest number of shared parameters.
const PARAMS_MAX: usize = 256;

impl ProxyBuilder {
    /// A proxy for a connection, by the rule with this number. `isns` are initial sequence numbers
    /// for a proxy that terminates the connections.
    pub(super) fn build(
        &mut self,
        (number, rule): (usize, &Rule),
        connection: &NewConnection,
        isns: [u32; 2],
    ) -> Box<dyn Proxy> {
        let buffer = rule.buffer;
        let served = rule.served_side(connection.from);
        let limit = MssLimit::of_hosts([connection.client_mss; 2]);
        let mut params = || self.params(number, rule, connection);
        match rule.mode {
            ProxyMode::Reflect => Box::new(Reflect::new(params(), limit, buffer)),
            ProxyMode::Spoof => Box::new(Spoof::new(params(), limit, buffer)),
            ProxyMode::Split => Box::new(Split::new(params(), buffer, isns)),
            ProxyMode::Snoop => Box::new(Snoop::new(served, buffer)),
            ProxyMode::Ack if rule.compare_goodput => {
                Box::new(AckFilterTrial::new(served, rule.max_ack_delay))
            }
            ProxyMode::Ack | ProxyMode::None => {
                Box::new(AckFilter::new(served, rule.max_ack_delay))
            }
        }
    }

    /// A proxy that only forwards, for a connection that was opened through an earlier relay;
    /// `None` if the end of that relay concerns no connection of the rule.
    pub(super) fn build_observer(
        &mut self,
        (number, rule): (usize, &Rule),
        connection: &NewConnection,
    ) -> Option<Box<dyn Proxy>> {
        let limit = MssLimit::of_hosts([connection.client_mss; 2]);
        let mut params = || self.params(number, rule, connection);
        match rule.mode {
            ProxyMode::Reflect => Some(Box::new(Reflect::observing(params(), limit, rule.buffer))),
            ProxyMode::Spoof => Some(Box::new(Spoof::observing(params(), limit, rule.buffer))),
            ProxyMode::Split => Some(Box::new(SplitObserver::default())),
            ProxyMode::Snoop | ProxyMode::Ack | ProxyMode::None => None,
        }
    }

    fn params(
        &mut self,
        number: usize,
        rule: &Rule,
        connection: &NewConnection,
    ) -> Arc<StackParams> {
        let (is_v6, mss) = (connection.server.is_ipv6(), connection.client_mss);
        if self.params.len() >= PARAMS_MAX {
            self.params.clear();
        }
        let shared = self.params.entry((number, is_v6, mss)).or_insert_with(|| {
            let ip = if is_v6 { IpVersion::V6 } else { IpVersion::V4 };
            let stack = Stack { mss: Some(Bytes::new(u64::from(mss))), ..rule.stack.clone() };
            let mut params = StackParams::resolve_for_ip(&stack, ip);
            // SYN is retransmitted until R2 (RFC 1122, section 4.2.3.5).
            params.policy.syn_retransmissions_max = None;
            Arc::new(params)
        });
        Arc::clone(shared)
    }
}
