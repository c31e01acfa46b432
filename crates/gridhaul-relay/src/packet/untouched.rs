//! Connections that are forwarded unchanged, so that each of them is counted once.

use std::hash::{BuildHasher, RandomState};

use super::key::ConnectionKey;

/// Connections that were seen, by hashes: 8 bytes for each key, and for each SYN. If there are more
/// than [`KNOWN_MAX`], all are forgotten, and those that continue are counted again.
#[derive(Debug, Default)]
pub(super) struct UntouchedConnections {
    /// With a random key, because hosts choose their addresses and ports.
    hasher: RandomState,
    known: Hashes,
}

#[expect(clippy::disallowed_types, reason = "the order of the entries is not used")]
type Hashes = std::collections::HashSet<u64>;

/// Largest number of remembered hashes.
const KNOWN_MAX: usize = 1 << 17;

impl UntouchedConnections {
    /// Notes a connection. Returns whether it was not seen before.
    pub(super) fn note(&mut self, key: &ConnectionKey) -> bool {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(self.hasher.hash_one(key))
    }

    /// Notes a connection whose SYN has this sequence number. Returns whether it was not seen
    /// before: SYN with the same number is a retransmission, with another one a new connection
    /// between the same ports (RFC 9293, section 3.4.1).
    pub(super) fn note_syn(&mut self, key: &ConnectionKey, seq: u32) -> bool {
        self.note(key);
        self.known.insert(self.hasher.hash_one((key, seq)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_remembered_connections_is_bounded() {
        let mut untouched = UntouchedConnections::default();
        let key = |port: u32| {
            let client = format!("10.0.{}.1:{}", port >> 16, port & 0xffff).parse().unwrap();
            ConnectionKey::between([client, "10.1.0.1:7".parse().unwrap()], [None; 2])
        };
        for port in 0..KNOWN_MAX as u32 + 10 {
            assert!(untouched.note(&key(port)));
        }
        assert!(!untouched.note(&key(KNOWN_MAX as u32 + 5)));
        assert!(untouched.known.len() <= 11);
        for seq in 0..KNOWN_MAX as u32 {
            assert!(untouched.note_syn(&key(0), seq));
            assert!(untouched.known.len() <= KNOWN_MAX + 1);
        }
    }
}
