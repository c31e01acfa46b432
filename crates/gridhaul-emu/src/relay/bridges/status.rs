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
}

impl Status {
    /// The counters of two processes together.
    pub(super) const fn plus(self, other: Self) -> Self {
        Self { retransmissions: self.retransmissions + other.retransmissions }
    }

    fn parse(document: &str) -> Option<Self> {
        let (_, body) = document.split_once("\r\n\r\n")?;
        let status: serde_json::Value = serde_json::from_str(body).ok()?;
        Some(Self { retransmissions: status["retransmissions_count"].as_u64()? })
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
        io::Error::new(io::ErrorKind::InvalidData, "the document has no retransmissions_count")
    })
}

/// Longest time for which the daemon may be silent.
const LIMIT: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_the_document() {
        let document =
            "HTTP/1.0 200 OK\r\n\r\n{\"role\": \"bridge\", \"retransmissions_count\": 7}";
        assert_eq!(Status::parse(document), Some(Status { retransmissions: 7 }));
        assert_eq!(Status::parse("HTTP/1.0 200 OK\r\n\r\n{}"), None);
        assert_eq!(Status::parse(""), None);
    }
}
