//! Connections whose hosts must be reset if the proxy ends unexpectedly.

use std::net::SocketAddr;

use super::BridgePort;
use super::key::ConnectionKey;

/// A connection with bytes at risk, or one that the proxy terminates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionAtRisk {
    /// Client and server.
    pub hosts: [SocketAddr; 2],
    /// The interface from which the connection was opened.
    pub opened_from: BridgePort,
    /// VLAN identifiers, the outer one first.
    pub vlans: [Option<u16>; 2],
    /// MAC addresses of client and server, or of the routers before them.
    pub hardware: [[u8; 6]; 2],
    /// A sequence number that each host has used.
    pub seq: [u32; 2],
}

impl ConnectionAtRisk {
    /// Identity in the table of connections.
    pub(super) fn key(&self) -> ConnectionKey {
        let [client, server] = self.hosts;
        let hosts = match self.opened_from {
            BridgePort::First => [client, server],
            BridgePort::Second => [server, client],
        };
        ConnectionKey::between(hosts, self.vlans)
    }
}

/// The connections that were reported to be at risk.
#[derive(Debug, Default)]
pub(super) struct RiskList {
    reported: Vec<Entry>,
    /// Those of `reported` that the caller has not taken yet.
    new: Vec<ConnectionAtRisk>,
}

/// A connection by its place in the table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) number: u32,
    pub(super) generation: u32,
    pub(super) connection: ConnectionAtRisk,
}

/// State of a connection that was reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RiskState {
    AtRisk,
    Safe,
    /// The connection has ended, and the next one with the same addresses and ports was reported
    /// as well: its protection stays.
    Replaced,
}

impl RiskList {
    pub(super) fn add(&mut self, entry: Entry) {
        self.new.push(entry.connection);
        self.reported.push(entry);
    }

    /// Those that were added since the last call.
    pub(super) fn take_new(&mut self) -> Vec<ConnectionAtRisk> {
        std::mem::take(&mut self.new)
    }

    /// Removes and returns those that are safe.
    pub(super) fn take_safe(
        &mut self,
        mut state_of: impl FnMut(&Entry) -> RiskState,
    ) -> Vec<ConnectionAtRisk> {
        let mut safe = Vec::new();
        self.reported.retain(|entry| {
            let state = state_of(entry);
            if state == RiskState::Safe {
                safe.push(entry.connection);
            }
            state == RiskState::AtRisk
        });
        safe
    }

    /// Removes those for which `is_at_risk` is true, without reporting them as safe.
    pub(super) fn leave_at_risk(&mut self, is_at_risk: impl Fn(&Entry) -> bool) {
        self.reported.retain(|entry| !is_at_risk(entry));
    }

    pub(super) fn clear(&mut self) {
        self.reported.clear();
        self.new.clear();
    }
}
