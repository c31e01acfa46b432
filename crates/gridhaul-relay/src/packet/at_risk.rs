//! Connections whose hosts must be reset if the proxy ends unexpectedly.

use std::net::SocketAddr;

use super::BridgePort;

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

impl RiskList {
    pub(super) fn add(&mut self, entry: Entry) {
        self.new.push(entry.connection);
        self.reported.push(entry);
    }

    /// Those that were added since the last call.
    pub(super) fn take_new(&mut self) -> Vec<ConnectionAtRisk> {
        std::mem::take(&mut self.new)
    }

    /// Removes those for which `is_at_risk` is false.
    pub(super) fn take_safe(
        &mut self,
        mut is_at_risk: impl FnMut(&Entry) -> bool,
    ) -> Vec<ConnectionAtRisk> {
        let mut safe = Vec::new();
        self.reported.retain(|entry| {
            let stays = is_at_risk(entry);
            if !stays {
                safe.push(entry.connection);
            }
            stays
        });
        safe
    }

    pub(super) fn clear(&mut self) {
        self.reported.clear();
        self.new.clear();
    }
}
