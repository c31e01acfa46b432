//! Configurations of the relay daemons of a run.

use std::net::{IpAddr, SocketAddr};

use gridhaul_scenario::relay::{
    Acknowledgement, CollectorConfig, Compression, Confirmation, Deliver, DurabilityTier,
    HeadConfig, MeterFraming, MeterListener, RelayConfig, RelayLog, ServerIdentity, TcpDelivery,
    WhenFull,
};
use gridhaul_scenario::scenario::{FlowEnd, Load, Scenario};
use gridhaul_scenario::units::{BufferLimit, Bytes, Duration};

use crate::kernel_congestion_control::KernelCongestionControls;
use crate::network::{
    Address, AddressFamily, NetworkPlan, RelayLayout, aggregator_port, server_port,
};

/// Port at which the first head accepts collectors.
const FIRST_HEAD_PORT: u16 = 7_070;

/// Bytes of the head's log: no limit of the scenario.
const HEAD_LOG: Bytes = Bytes::new(1 << 32);

/// Longest time for which records wait for others, if the upstream connection could send.
const BATCH_DELAY: Duration = Duration::from_millis(1);

/// Sufficient: the connections of a run have neither TLS nor a PROXY header.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);

/// The head at the server of a flow: it restores the connections of the members with their
/// addresses.
pub(super) fn head(plan: &NetworkPlan, relay: &RelayLayout, index: usize) -> String {
    let server = address(relay.flow, FlowEnd::To, 0, plan.flows[relay.flow].family);
    let any = any(plan.flows[relay.upstream].family);
    let config = RelayConfig {
        log: Some(RelayLog {
            folder: "log".to_owned(),
            limit: HEAD_LOG,
            segment: Bytes::new(4_000_000),
        }),
        head: Some(HeadConfig {
            address: SocketAddr::new(any, FIRST_HEAD_PORT + index as u16).to_string(),
            deliver: Deliver::Tcp(TcpDelivery {
                server: SocketAddr::new(server, server_port(relay.flow)).to_string(),
                identity: ServerIdentity::SourceAddress,
                // The servers of an emulation are not stopped, and connections stay open until its
                // end.
                confirmation: Confirmation::Acknowledgement,
            }),
            rotate: None,
            collectors: Vec::new(),
            window: Bytes::new(1 << 24),
            handshake_limit: HANDSHAKE_LIMIT,
            tls: None,
        }),
        ..relay_config("head")
    };
    config.to_toml()
}

/// One of the collectors of a flow.
pub(super) fn collector(
    (scenario, plan, controls): (&Scenario, &NetworkPlan, &KernelCongestionControls),
    (relay, index): (&RelayLayout, usize),
    number: u32,
) -> String {
    let (flow, upstream) = (&plan.flows[relay.flow], &plan.flows[relay.upstream]);
    let end = |side| address(relay.upstream, side, number, upstream.family);
    let stack = &upstream.stacks[0];
    let window = u64::from(upstream.stacks[1].receive_window);
    let memory = buffer_bytes(scenario, relay).saturating_add(window).max(MEMORY_MIN);
    let target = SocketAddr::new(end(FlowEnd::To), FIRST_HEAD_PORT + index as u16);
    let listen = SocketAddr::new(any(flow.family), aggregator_port(number));
    let listener = MeterListener {
        address: listen.to_string(),
        framing: MeterFraming::Stream,
        tls: None,
        proxy_protocol: false,
        allow: Vec::new(),
        ack: Acknowledgement::Received,
    };
    let config = RelayConfig {
        collector: Some(CollectorConfig {
            upstream: target.to_string(),
            tls: None,
            source: Some(end(FlowEnd::From).to_string()),
            replies: false,
            tier: DurabilityTier::Memory,
            shards: 1,
            compression: Compression::None,
            congestion_control: controls.name(stack).map(str::to_owned),
            bytes_at_risk: Bytes::new(8_000_000),
            bytes_at_risk_per_meter: Bytes::new(64_000),
            message_limit: None,
            message_wait: MESSAGE_WAIT,
            idle_timeout: None,
            receive_buffer: Bytes::new(u64::from(flow.stacks[1].receive_window).max(RECEIVE_MIN)),
            tun: None,
            memory: Bytes::new(memory),
            batch_delay: BATCH_DELAY,
            meters: None,
            when_full: WhenFull::Block,
            connections_per_source: None,
            handshakes_per_second: u32::MAX,
            handshake_limit: HANDSHAKE_LIMIT,
            listener: [("meters".to_owned(), listener)].into_iter().collect(),
        }),
        ..relay_config(&format!("collector{number}"))
    };
    config.to_toml()
}

/// Streams have no messages that could wait.
const MESSAGE_WAIT: Duration = Duration::from_secs(30);

/// Smallest limits that the daemon accepts.
const MEMORY_MIN: u64 = 16_000;
const RECEIVE_MIN: u64 = 2_000;

/// Settings of all daemons alike. The links of the scenario are on this machine.
pub(super) fn relay_config(name: &str) -> RelayConfig {
    RelayConfig {
        name: name.to_owned(),
        log: None,
        collector: None,
        head: None,
        split: None,
        router: None,
        bridge: None,
        insecure: true,
        management: None,
        user: None,
        group: None,
        drain_limit: Duration::from_secs(5),
    }
}

/// The buffer of an aggregator in bytes. A stream is divided into messages of one segment.
fn buffer_bytes(scenario: &Scenario, relay: &RelayLayout) -> u64 {
    let aggregator = scenario.node[&relay.node].aggregator.as_ref();
    match aggregator.map(|aggregator| aggregator.buffer) {
        Some(BufferLimit::Bytes(bytes)) => bytes.get(),
        Some(BufferLimit::Messages(messages)) => {
            u64::from(messages) * message_bytes(scenario, relay)
        }
        None => 0,
    }
}

fn message_bytes(scenario: &Scenario, relay: &RelayLayout) -> u64 {
    let flow = &scenario.flow[relay.flow];
    match &*flow.load.plain() {
        Load::Periodic(load) => load.size.get(),
        Load::Poisson(load) => load.size.get(),
        Load::OnOff(load) => load.size.get(),
        Load::Burst(load) => load.size.get(),
        _ => {
            let stack = flow.stack.as_ref();
            u64::from(gridhaul_core::tcp::StackParams::named(scenario, stack, flow.ip).mss)
        }
    }
}

fn address(flow: usize, side: FlowEnd, number: u32, family: AddressFamily) -> IpAddr {
    Address { flow: flow as u16, side, number }.ip(family)
}

const fn any(family: AddressFamily) -> IpAddr {
    match family {
        AddressFamily::V4 => IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED),
        AddressFamily::V6 => IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED),
    }
}
