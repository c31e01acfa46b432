//! The status document of a bridge, by HTTP in the namespace of its node.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Address of the status document of each bridge, in its own namespace.
pub(super) const ADDRESS: &str = "127.0.0.1:9180";

/// Counters of a bridge.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Status {
    /// Segments with data that proxies have retransmitted.
    pub retransmissions: u64,
    /// Bytes that are acknowledged to their senders and not by the next hop.
    pub at_risk: u64,
    /// Acknowledged bytes of connections that the proxies have reset.
    pub lost: u64,
}

impl Status {
    /// The counters of this process and of the next one.
    pub(super) const fn and_next(self, next: Self) -> Self {
        Self {
            retransmissions: self.retransmissions + next.retransmissions,
            at_risk: next.at_risk,
            lost: self.lost + next.lost,
        }
    }

    fn parse(document: &str) -> Option<Self> {
        let (_, body) = document.split_once("\r\n\r\n")?;
        let status: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(Self {
            retransmissions: status["retransmissions_count"].as_u64()?,
            at_risk: status["bytes_at_risk_byte"].as_u64()?,
            lost: status["lost_byte"].as_u64()?,
        })
    }
}

/// Reads the status of the bridge in the namespace of the calling thread.
///
/// # Errors
/// The daemon does not answer.
pub(super) fn read() -> io::Result<Status> {
    let address: SocketAddr = ADDRESS.parse().map_err(io::Error::other)?;
    let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(b"GET /status HTTP/1.0\r\nAccept: application/json\r\n\r\n")?;
    let mut document = String::new();
    stream.read_to_string(&mut document)?;
    Status::parse(&document).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "the document lacks counters of a bridge")
    })
}

/// Longest time for which the daemon may be silent.
const LIMIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_document() {
        let counters =
            r#"{"retransmissions_count": 7, "bytes_at_risk_byte": 1448, "lost_byte": 0}"#;
        let document = format!("HTTP/1.0 200 OK\r\n\r\n{counters}");
        let expected = Status { retransmissions: 7, at_risk: 1_448, lost: 0 };
        assert_eq!(Status::parse(&document), Some(expected));
        assert_eq!(Status::parse("HTTP/1.0 200 OK\r\n\r\n{}"), None);
        assert_eq!(Status::parse(""), None);
    }
}
