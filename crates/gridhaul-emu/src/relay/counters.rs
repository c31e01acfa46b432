//! TCP counters of a network namespace (`/proc/net/snmp`, `/proc/net/netstat`).

use std::fs;

/// Counters of all connections of a namespace. On the node of an aggregator only the upstream
/// connections send data, so these counters are theirs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct TcpCounters {
    pub retransmissions: u64,
    pub timeouts: u64,
}

impl TcpCounters {
    /// Reads the counters of the namespace of the calling thread. A file that cannot be read counts
    /// as zeros.
    pub(crate) fn read() -> Self {
        let text = |name: &str| {
            fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default()
        };
        Self {
            retransmissions: value(&text("snmp"), "Tcp", "RetransSegs"),
            timeouts: value(&text("netstat"), "TcpExt", "TCPTimeouts"),
        }
    }

    /// The difference from earlier counters.
    pub(crate) const fn since(&self, earlier: &Self) -> Self {
        Self {
            retransmissions: self.retransmissions.saturating_sub(earlier.retransmissions),
            timeouts: self.timeouts.saturating_sub(earlier.timeouts),
        }
    }
}

/// A value of a file with two lines per group: names, then values.
fn value(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(": "));
    let mut of_group = || lines.find(|(found, _)| *found == group).map(|(_, rest)| rest);
    let (Some(names), Some(values)) = (of_group(), of_group()) else { return 0 };
    let mut pairs = names.split(' ').zip(values.split(' '));
    let found = pairs.find(|(found, _)| *found == name);
    found.and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_name() {
        let text = "Ip: Forwarding\nIp: 1\nTcp: RtoMin RetransSegs InErrs\nTcp: 200 17 0\n";
        assert_eq!(value(text, "Tcp", "RetransSegs"), 17);
        assert_eq!(value(text, "Tcp", "Missing"), 0);
        assert_eq!(value("", "Tcp", "RetransSegs"), 0);
        // The kernel of this machine has the files.
        let _ = TcpCounters::read();
    }
}
