//! Arrived and lost datagrams on paths that duplicate packets: a message counts once, for any
//! number of its copies.

use crate::row_counters::RowCounters;

/// Arrived and lost datagrams of each row of flows, by number.
#[derive(Debug, Clone)]
pub(crate) struct Duplicates {
    rows: Vec<DatagramSets>,
}

#[derive(Debug, Clone, Default)]
struct DatagramSets {
    arrived: Numbers,
    /// Excludes datagrams of which another copy has arrived.
    lost: Numbers,
}

/// A set of small numbers as a bit set.
#[derive(Debug, Clone, Default)]
struct Numbers {
    words: Vec<u64>,
}

impl Duplicates {
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows: vec![DatagramSets::default(); rows] }
    }

    /// A datagram has arrived. Returns whether it is the first copy. A message of which a copy has
    /// arrived no longer counts as lost.
    pub(crate) fn on_arrived(&mut self, row: u32, number: u32, totals: &mut RowCounters) -> bool {
        let datagrams = &mut self.rows[row as usize];
        let first = datagrams.arrived.insert(number);
        if first && datagrams.lost.remove(number) {
            totals.datagrams_lost -= 1;
        }
        first
    }

    /// A datagram is lost. The message counts as lost from its first lost copy on, unless a copy
    /// has arrived.
    pub(crate) fn on_lost(&mut self, row: u32, number: u32, totals: &mut RowCounters) {
        let datagrams = &mut self.rows[row as usize];
        if !datagrams.arrived.contains(number) && datagrams.lost.insert(number) {
            totals.datagrams_lost += 1;
        }
    }
}

impl Duplicates {
    /// Whether a datagram was lost and no copy of it has arrived.
    pub(crate) fn is_lost(&self, row: u32, number: u32) -> bool {
        self.rows[row as usize].lost.contains(number)
    }
}

impl Numbers {
    fn contains(&self, number: u32) -> bool {
        let (word, bit) = bit_position(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Returns whether the number is new.
    fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = bit_position(number);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Returns whether the set had the number.
    fn remove(&mut self, number: u32) -> bool {
        let present = self.contains(number);
        if present {
            let (word, bit) = bit_position(number);
            self.words[word] &= !bit;
        }
        present
    }
}

const fn bit_position(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_once_and_is_lost_only_if_all_copies_are() {
        let (mut duplicates, mut totals) = (Duplicates::new(1), RowCounters::default());
        assert!(duplicates.on_arrived(0, 70, &mut totals));
        assert!(!duplicates.on_arrived(0, 70, &mut totals));
        duplicates.on_lost(0, 70, &mut totals);
        assert_eq!(totals.datagrams_lost, 0, "a copy has arrived");
        duplicates.on_lost(0, 3, &mut totals);
        duplicates.on_lost(0, 3, &mut totals);
        assert_eq!(totals.datagrams_lost, 1);
        assert!(duplicates.on_arrived(0, 3, &mut totals), "the third copy");
        assert_eq!(totals.datagrams_lost, 0);
    }
}
