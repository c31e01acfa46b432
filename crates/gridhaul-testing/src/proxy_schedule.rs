//! Connections through chains of proxies, as cases for each implementation of a proxy: the state
//! machines alone, and the bridge of the relay.

/// A connection through a chain of proxies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySchedule {
    /// Buffer of each proxy in bytes.
    pub buffers: Vec<u64>,
    /// Receive window of both hosts in bytes.
    pub window: u64,
    /// Client and server.
    pub hosts: [HostSchedule; 2],
    /// Whether the connection begins with a handshake. A bridge serves no other connections.
    pub handshake: bool,
}

/// Behaviour of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostSchedule {
    /// Bytes that are written at the beginning.
    pub writes: u64,
    /// When the application closes its direction.
    pub closes: CloseTime,
    /// Bytes that are read in each interval, in milliseconds; `None`: all data is read at once.
    pub reads: Option<(u64, u64)>,
}

/// When an application closes its direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseTime {
    /// After writing all data.
    AtOnce,
    /// After FIN of the peer.
    AfterPeer,
    /// Never.
    Never,
}

impl ProxySchedule {
    /// Lengths of chains.
    pub const LENGTHS: [usize; 4] = [1, 2, 3, 7];

    /// Combinations of closes of client and server.
    pub const CLOSES: [[CloseTime; 2]; 6] = [
        [CloseTime::AtOnce, CloseTime::AtOnce],
        [CloseTime::AtOnce, CloseTime::AfterPeer],
        [CloseTime::AfterPeer, CloseTime::AtOnce],
        [CloseTime::AtOnce, CloseTime::Never],
        [CloseTime::Never, CloseTime::AtOnce],
        [CloseTime::Never, CloseTime::Never],
    ];

    /// All combinations of lengths and closes, with several windows of data in both directions.
    pub fn closes_of_chains(segment: u64) -> impl Iterator<Item = Self> {
        let combinations = |length| Self::CLOSES.map(|closes| (length, closes));
        Self::LENGTHS.into_iter().flat_map(combinations).map(move |(length, closes)| {
            let writes = [60 * segment, 40 * segment + 1];
            let host = |side: usize| HostSchedule {
                writes: writes[side],
                closes: closes[side],
                reads: None,
            };
            Self {
                buffers: vec![12 * segment; length],
                window: 16 * segment,
                hosts: [host(0), host(1)],
                handshake: true,
            }
        })
    }

    /// A random schedule for segments of `segment` bytes. `between` returns random numbers from
    /// the first one to the second one, both included.
    pub fn random(segment: u64, mut between: impl FnMut(u64, u64) -> u64) -> Self {
        // Eighths of segments: buffers and windows have 1.5 to 20 segments, the data at most 30.
        let bytes = |eighths: u64| eighths * segment / 8;
        let length = Self::LENGTHS[between(0, 3) as usize];
        let buffers = (0..length).map(|_| bytes(between(12, 120))).collect();
        let window = bytes(between(12, 160));
        let closes = Self::CLOSES[between(0, 5) as usize];
        let hosts = closes.map(|closes| {
            let is_slow = between(0, 4) == 0;
            let reads = (bytes(between(5, 32)), between(100, 900));
            HostSchedule { writes: bytes(between(0, 240)), closes, reads: is_slow.then_some(reads) }
        });
        Self { buffers, window, hosts, handshake: between(0, 1) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_have_every_length_with_every_close() {
        let all: Vec<_> = ProxySchedule::closes_of_chains(100).collect();
        assert_eq!(all.len(), 24);
        let largest = ProxySchedule::random(8, |_, high| high);
        assert_eq!((largest.buffers, largest.window), (vec![120; 7], 160));
        let smallest = ProxySchedule::random(80, |low, _| low);
        assert_eq!((smallest.buffers, smallest.hosts[0].reads), (vec![120], Some((50, 100))));
    }
}
