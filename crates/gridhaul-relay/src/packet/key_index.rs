//! Numbers of connections by their keys.

use std::hash::{BuildHasher, RandomState};
use std::mem;

use super::key::ConnectionKey;

/// A hash table with chains. The keys stay in the connections, because they are several times as
/// large as a number: functions take `key_of`, which returns the key of a connection.
#[derive(Debug, Default)]
pub(super) struct KeyIndex {
    /// The first connection of each chain. The number of chains is a power of two, and not smaller
    /// than that of connections.
    heads: Vec<u32>,
    /// By the number of a connection: the next connection of its chain.
    next: Vec<u32>,
    len: usize,
    /// With a random key, because hosts choose their addresses and ports.
    hasher: RandomState,
}

/// The end of a chain.
const END: u32 = u32::MAX;

/// Number of chains after the first connection.
const CHAINS_MIN: usize = 64;

impl KeyIndex {
    /// Number of connections.
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// The connection with this key.
    pub(super) fn find<'a>(
        &self,
        key: &ConnectionKey,
        key_of: impl Fn(u32) -> Option<&'a ConnectionKey>,
    ) -> Option<u32> {
        let mut number = if self.heads.is_empty() { END } else { self.heads[self.chain(key)] };
        while number != END && key_of(number) != Some(key) {
            number = self.next[number as usize];
        }
        (number != END).then_some(number)
    }

    /// Adds a connection, whose key must not be in use.
    pub(super) fn insert<'a>(
        &mut self,
        key: &ConnectionKey,
        number: u32,
        key_of: impl Fn(u32) -> Option<&'a ConnectionKey>,
    ) {
        if self.len == self.heads.len() {
            self.double(key_of);
        }
        if self.next.len() <= number as usize {
            self.next.resize(number as usize + 1, END);
        }
        self.link(key, number);
        self.len += 1;
    }

    /// Removes a connection that was added with this key.
    pub(super) fn remove(&mut self, key: &ConnectionKey, number: u32) {
        let chain = self.chain(key);
        let after = self.next[number as usize];
        let mut before = self.heads[chain];
        if before == number {
            self.heads[chain] = after;
        } else {
            while self.next[before as usize] != number {
                before = self.next[before as usize];
            }
            self.next[before as usize] = after;
        }
        self.len -= 1;
    }

    /// Doubles the number of chains.
    fn double<'a>(&mut self, key_of: impl Fn(u32) -> Option<&'a ConnectionKey>) {
        let chains = (2 * self.heads.len()).max(CHAINS_MIN);
        for mut number in mem::replace(&mut self.heads, vec![END; chains]) {
            while number != END {
                let after = self.next[number as usize];
                let key = key_of(number).expect("a connection of the index exists");
                self.link(key, number);
                number = after;
            }
        }
    }

    /// Puts a connection at the begin of its chain.
    fn link(&mut self, key: &ConnectionKey, number: u32) {
        let chain = self.chain(key);
        self.next[number as usize] = mem::replace(&mut self.heads[chain], number);
    }

    fn chain(&self, key: &ConnectionKey) -> usize {
        self.hasher.hash_one(key) as usize & (self.heads.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(port: u16) -> ConnectionKey {
        let hosts = [format!("10.0.0.1:{port}"), "10.0.0.2:7".to_owned()];
        ConnectionKey::between(hosts.map(|host| host.parse().unwrap()), [None; 2])
    }

    proptest! {
        /// Compares the index with a search through all connections.
        #[test]
        fn a_connection_is_found_while_it_is_in_the_table(
            ports in prop::collection::vec(0..300_u16, 0..2_000),
        ) {
            let (mut index, mut keys) = (KeyIndex::default(), Vec::new());
            for port in ports {
                let key = key(port);
                let known = keys.iter().position(|known| *known == Some(key));
                let found = index.find(&key, |number| key_of(&keys, number));
                prop_assert_eq!(found, known.map(|at| at as u32));
                if let Some(at) = known {
                    index.remove(&key, at as u32);
                    keys[at] = None;
                    continue;
                }
                let free = keys.iter().position(Option::is_none).unwrap_or(keys.len());
                index.insert(&key, free as u32, |number| key_of(&keys, number));
                keys.resize(keys.len().max(free + 1), None);
                keys[free] = Some(key);
                prop_assert_eq!(index.len(), keys.iter().flatten().count());
            }
        }
    }

    fn key_of(keys: &[Option<ConnectionKey>], number: u32) -> Option<&ConnectionKey> {
        keys.get(number as usize)?.as_ref()
    }
}
