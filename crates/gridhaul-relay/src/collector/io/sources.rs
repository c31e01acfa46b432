//! Numbers of connections by IP address, for the limit of connections per source.

use std::collections::BTreeMap;
use std::net::IpAddr;

/// Addresses with open connections. A connection keeps the row of its address, which costs four
/// bytes.
#[derive(Debug, Default)]
pub(super) struct Sources {
    rows: Vec<Option<(IpAddr, u32)>>,
    free: Vec<u32>,
    by_address: BTreeMap<IpAddr, u32>,
}

/// Row of connections without an address.
pub(super) const NO_SOURCE: u32 = u32::MAX;

impl Sources {
    /// Counts a connection. `None` if the address has as many as `limit` permits.
    pub(super) fn add(&mut self, address: Option<IpAddr>, limit: Option<u32>) -> Option<u32> {
        // Without a limit nothing needs to be counted.
        let (Some(limit), Some(address)) = (limit, address) else { return Some(NO_SOURCE) };
        let address = address.to_canonical();
        let row = match self.by_address.get(&address) {
            Some(row) => *row,
            None => self.insert(address),
        };
        let (_, count) = self.rows[row as usize].as_mut()?;
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(row)
    }

    fn insert(&mut self, address: IpAddr) -> u32 {
        let row = self.free.pop().unwrap_or_else(|| {
            self.rows.push(None);
            (self.rows.len() - 1) as u32
        });
        self.rows[row as usize] = Some((address, 0));
        self.by_address.insert(address, row);
        row
    }

    /// The address of a row; `None` for connections that are not counted.
    pub(super) fn address(&self, row: u32) -> Option<IpAddr> {
        Some(self.rows.get(row as usize)?.as_ref()?.0)
    }

    /// A connection has ended.
    pub(super) fn remove(&mut self, row: u32) {
        let Some(slot) = self.rows.get_mut(row as usize) else { return };
        let Some((address, count)) = slot else { return };
        *count -= 1;
        if *count == 0 {
            self.by_address.remove(address);
            *slot = None;
            self.free.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_at_most_as_many_connections_as_permitted() {
        let mut sources = Sources::default();
        let (one, two) = ("192.0.2.1".parse().ok(), "192.0.2.2".parse().ok());
        let first = sources.add(one, Some(2)).unwrap();
        assert_eq!(sources.add("::ffff:192.0.2.1".parse().ok(), Some(2)), Some(first), "the same");
        assert_eq!(sources.add(one, Some(2)), None);
        assert!(sources.add(two, Some(2)).is_some_and(|row| row != first));
        sources.remove(first);
        assert_eq!(sources.add(one, Some(2)), Some(first));
        sources.remove(first);
        sources.remove(first);
        assert_eq!(sources.by_address.len(), 1, "an address without connections is forgotten");
        assert_eq!(sources.add(one, None), Some(NO_SOURCE));
        sources.remove(NO_SOURCE);
    }
}
