//! Limits and counters that the members of a row share.

use std::ops::Range;

use gridhaul_core::load::{AcceptQueue, ConnectionCounters, LocalPorts};
use gridhaul_scenario::scenario::{Flow, LOCAL_PORTS};
use gridhaul_scenario::units::Instant;

/// The connections of a row whose flows open and close them.
#[derive(Debug, Clone)]
pub(crate) struct RowConnections {
    pub counters: ConnectionCounters,
    /// Local ports of each pair of hosts.
    pub ports: Vec<LocalPorts>,
    accept: Option<AcceptQueue>,
}

impl RowConnections {
    /// The connections of a flow between this number of pairs of hosts; `None` if each member has
    /// one connection, which stays open.
    pub(crate) fn of(flow: &Flow, hosts: u64, measured: Range<Instant>) -> Option<Box<Self>> {
        if !flow.manages_connections() {
            return None;
        }
        let ports = LocalPorts::new(flow.local_ports.unwrap_or(LOCAL_PORTS));
        Some(Box::new(Self {
            counters: ConnectionCounters::new(flow, measured).with_probes(),
            ports: vec![ports; hosts as usize],
            accept: flow.accept.as_ref().map(AcceptQueue::new),
        }))
    }

    /// Whether the server drops a SYN that has arrived, which is counted.
    pub(super) fn drops_syn(&mut self, now: Instant) -> bool {
        let is_full = self.is_accept_queue_full(now);
        if is_full {
            self.counters.on_dropped_by_server();
        }
        is_full
    }

    /// Whether the server establishes no further connection.
    pub(super) fn is_accept_queue_full(&self, now: Instant) -> bool {
        self.accept.as_ref().is_some_and(|queue| queue.is_full(now))
    }

    /// A connection is established at the server. Returns when its application accepts it.
    pub(super) fn accept(&mut self, now: Instant) -> Instant {
        self.accept.as_mut().map_or(now, |queue| queue.push(now))
    }
}
