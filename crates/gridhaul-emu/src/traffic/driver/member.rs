//! One member of a flow: a connection, or a sender and a receiver of datagrams.

use gridhaul_linux::TcpInfo;
use gridhaul_scenario::units::Instant;

use crate::traffic::connection::Connection;
use crate::traffic::datagrams::Datagrams;

/// A member of a flow.
#[derive(Debug)]
pub(super) enum Member {
    Tcp(Connection),
    Datagram(Datagrams),
}

impl Member {
    /// Retransmissions of SYN.
    pub(super) fn syn_retransmissions(&self, info: &TcpInfo) -> u32 {
        match self {
            Self::Tcp(connection) => connection.syn_retransmissions(info),
            Self::Datagram(_) => 0,
        }
    }

    pub(super) fn row(&self) -> usize {
        match self {
            Self::Tcp(connection) => usize::from(connection.flow),
            Self::Datagram(datagrams) => usize::from(datagrams.flow),
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
            Self::Datagram(datagrams) => datagrams.due(),
        }
    }

    /// Payload delivered at the `to` end.
    pub(super) fn delivered(&self) -> u64 {
        match self {
            Self::Tcp(connection) => connection.delivered(),
            Self::Datagram(datagrams) => datagrams.received,
        }
    }
}
