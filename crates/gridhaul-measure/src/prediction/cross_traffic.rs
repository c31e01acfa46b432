//! Packets of other applications in the simulator: datagrams as a Poisson process.

use gridhaul_scenario::scenario::{
    ConnectionPolicy, Dscp, Flow, IpVersion, Load, Poisson, Transport,
};
use gridhaul_scenario::units::Bytes;

use super::Request;
use crate::protocol::{CrossTraffic, Direction};

impl Request<'_> {
    /// A flow for each load, from the start of the schedule.
    pub(super) fn cross_flows(&self) -> impl Iterator<Item = (String, Flow)> {
        let loads = self.cross_traffic.iter();
        loads.map(|load| (format!("cross_{}", load.direction), self.cross_flow(load)))
    }

    fn cross_flow(&self, load: &CrossTraffic) -> Flow {
        let flow = match load.direction {
            Direction::Forward => self.scenario.flow[self.flow].clone(),
            Direction::Reverse => self.reversed(),
        };
        let size = Bytes::new(load.datagram_bytes(flow.ip == IpVersion::V6) as u64);
        let poisson = Poisson { size, every: load.every(), synchronised: false };
        Flow {
            count: 1,
            transport: Transport::Datagram,
            // Its sockets do not mark packets.
            dscp: Dscp::default(),
            stack: None,
            to_stack: None,
            load: Load::Poisson(poisson),
            deadline: None,
            start: self.start,
            start_spread: None,
            // Keys of the connections of the flow.
            acknowledgement: None,
            connection: ConnectionPolicy::Persistent,
            fast_open: false,
            tls: None,
            reconnect: None,
            accept: None,
            nat: None,
            keep_alive: None,
            user_timeout: None,
            local_ports: None,
            coap: None,
            dtls: None,
            ..flow
        }
    }
}
