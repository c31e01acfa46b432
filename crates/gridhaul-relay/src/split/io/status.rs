//! Status of a split proxy.

use serde_json::{Value, json};

use super::Loop;
use super::listeners::ClientAddress;
use crate::split::{Leg, SessionEnd};

impl Loop {
    /// The document of a path.
    pub(super) fn document(&self, path: &str) -> Value {
        if path == "/details" {
            return json!({ "connections": self.connection_list() });
        }
        let connections = || self.connections.iter().flatten();
        let resets: serde_json::Map<String, Value> = SessionEnd::ALL
            .iter()
            .map(|cause| (cause.name().to_owned(), self.counters.resets[*cause as usize].into()))
            .collect();
        let connecting =
            connections().filter(|connection| !connection.session.is_connected()).count();
        let half_closed =
            connections().filter(|connection| connection.session.is_half_closed()).count();
        let pending: u64 = connections()
            .flat_map(|connection| {
                Leg::BOTH.map(|leg| u64::from(connection.session.from(leg).pending()))
            })
            .sum();
        let listening = self.listeners.iter().filter(|listener| listener.socket.is_some()).count();
        json!({
            "role": "split proxy",
            "name": self.state.config.name,
            "connections_count": self.open,
            "connections_max_count": self.open_max,
            "connecting_count": connecting,
            "half_closed_count": half_closed,
            "listeners_count": self.listeners.len(),
            "listeners_open_count": listening,
            "upstream_error": self.listeners.iter().find_map(ClientAddress::error),
            "accepted_count": self.counters.accepted,
            "refused_count": self.counters.refused,
            "to_servers_byte": self.counters.transferred[Leg::Client as usize],
            "to_clients_byte": self.counters.transferred[Leg::Server as usize],
            "pending_byte": pending,
            "memory_byte": self.shared.memory,
            "memory_max_byte": self.shared.memory_max,
            "pipes_count": self.shared.pipes.in_use(),
            "pipes_max_count": self.shared.pipes.count_max(),
            "resets_count": resets,
        })
    }

    fn connection_list(&self) -> Vec<Value> {
        let connections = self.connections.iter().flatten();
        connections
            .map(|connection| {
                let session = &connection.session;
                let (client, server) = (session.from(Leg::Client), session.from(Leg::Server));
                json!({
                    "listener": self.listeners[usize::from(connection.listener)].name,
                    "client": connection.peer(Leg::Client),
                    "server": connection.peer(Leg::Server),
                    "to_server_byte": client.transferred(),
                    "to_client_byte": server.transferred(),
                    "pending_to_server_byte": client.pending(),
                    "pending_to_client_byte": server.pending(),
                    "client_has_closed": client.is_ended(),
                    "server_has_closed": server.is_ended(),
                })
            })
            .collect()
    }
}
