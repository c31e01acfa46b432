//! Counters of TCP in this network namespace, from its file `net/netstat` in `/proc`.

use std::fs;

/// Names of the counters: connections that found the queue of their listener full; SYN and last
/// segments of handshakes that were dropped for this or other causes; SYN and SYN-ACK that were
/// retransmitted; timeouts.
const NAMES: [&str; 4] = ["ListenOverflows", "ListenDrops", "TCPSynRetrans", "TCPTimeouts"];

/// Values of the counters at a time.
pub(crate) struct Counters([u64; NAMES.len()]);

impl Counters {
    pub(crate) fn read() -> Self {
        let text = fs::read_to_string("/proc/thread-self/net/netstat").unwrap();
        // A line of names is followed by a line of values.
        let lines: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with("TcpExt:"))
            .map(|line| line.split(' ').collect())
            .collect();
        let value = |name: &str| {
            let column = lines[0].iter().position(|column| *column == name).unwrap();
            lines[1][column].parse().unwrap()
        };
        Self(NAMES.map(value))
    }

    /// Counters since then.
    pub(crate) fn since(&self, before: &Self) -> String {
        let counts = NAMES.iter().zip(self.0).zip(before.0);
        let counts: Vec<_> =
            counts.map(|((name, now), before)| format!("{name} {}", now - before)).collect();
        counts.join(", ")
    }
}
