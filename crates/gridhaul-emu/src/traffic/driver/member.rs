//! One member of a flow: a connection, or a sender and a receiver of datagrams.

use std::sync::Arc;

use gridhaul_core::load::{CoapMember, CoapRules};
use gridhaul_core::random::RandomStream;
use gridhaul_linux::TcpInfo;
use gridhaul_scenario::units::Instant;

use crate::traffic::coap::CoapSockets;
use crate::traffic::connection::Connection;
use crate::traffic::datagrams::Datagrams;
use crate::traffic::managed::ManagedConnections;
use crate::traffic::samples::SenderCounts;

/// A member of a flow.
#[derive(Debug)]
pub(super) enum Member {
    Tcp(Connection),
    /// Connections that open and close during the run.
    Managed(Box<ManagedConnections>),
    Datagram(Datagrams),
    /// Confirmable messages.
    Coap(Box<CoapSockets>),
}

impl Member {
    /// The member with confirmable messages, if its flow has such rules.
    pub(super) fn confirmed(
        self,
        rules: Option<&Arc<CoapRules>>,
        random: impl FnOnce() -> RandomStream,
    ) -> Self {
        match (self, rules) {
            (Self::Datagram(datagrams), Some(rules)) => {
                let member = CoapMember::new(Arc::clone(rules), random());
                Self::Coap(Box::new(CoapSockets::new(datagrams, member)))
            }
            (member, _) => member,
        }
    }

    /// Adds the counters of the sender.
    pub(super) fn add_counts(&self, counts: &mut SenderCounts) {
        match self {
            Self::Tcp(connection) => {
                if let Some(info) = self.info() {
                    counts.add(&info, connection.syn_retransmissions(&info));
                }
            }
            Self::Managed(connections) => connections.add_counts(counts),
            Self::Datagram(_) | Self::Coap(_) => {}
        }
    }

    pub(super) fn row(&self) -> usize {
        match self {
            Self::Tcp(connection) => usize::from(connection.flow),
            Self::Managed(connections) => usize::from(connections.flow),
            Self::Datagram(datagrams) => usize::from(datagrams.flow),
            Self::Coap(sockets) => usize::from(sockets.flow),
        }
    }

    /// `TCP_INFO` of the sender, once its handshake has started.
    pub(super) fn info(&self) -> Option<TcpInfo> {
        match self {
            Self::Tcp(connection) if connection.begun => {
                connection.sender().and_then(|socket| TcpInfo::of(socket).ok())
            }
            _ => None,
        }
    }

    /// The next deadline of the application.
    pub(super) fn due(&self) -> Instant {
        match self {
            Self::Tcp(connection) => connection.due(),
            Self::Managed(connections) => connections.due(),
            Self::Datagram(datagrams) => datagrams.due(),
            Self::Coap(sockets) => sockets.due(),
        }
    }

    /// Payload delivered at the `to` end.
    pub(super) fn delivered(&self) -> u64 {
        match self {
            Self::Tcp(connection) => connection.delivered(),
            Self::Managed(connections) => connections.delivered(),
            Self::Datagram(datagrams) => datagrams.received,
            Self::Coap(sockets) => sockets.received,
        }
    }
}
