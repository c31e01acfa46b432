//! Which datagrams have arrived and which are lost, where links make copies of them: a message counts
//! once, however many of it there are.

use crate::row_counters::RowCounters;

/// What has become of the datagrams of each row of flows, by their numbers.
#[derive(Debug)]
pub(crate) struct Duplicates {
    rows: Vec<DatagramSets>,
}

#[derive(Debug, Clone, Default)]
struct DatagramSets {
    arrived: Numbers,
    /// Without those that another copy of has arrived.
    lost: Numbers,
}

/// A set of numbers that begin at 0: a bit for each.
#[derive(Debug, Clone, Default)]
struct Numbers {
    words: Vec<u64>,
}

impl Duplicates {
    pub(crate) fn new(rows: usize) -> Self {
        Self { rows: vec![DatagramSets::default(); rows] }
    }

    /// A datagram has arrived; whether it is the first of its kind. If one of its kind was lost, the
    /// message is not.
    pub(crate) fn on_arrived(&mut self, row: u32, number: u32, account: &mut RowCounters) -> bool {
        let seen = &mut self.rows[row as usize];
        let first = seen.arrived.insert(number);
        if first && seen.lost.remove(number) {
            account.datagrams_lost -= 1;
        }
        first
    }

    /// A datagram is lost. The message counts as lost with the first of its kind, unless one has arrived.
    pub(crate) fn on_lost(&mut self, row: u32, number: u32, account: &mut RowCounters) {
        let seen = &mut self.rows[row as usize];
        if !seen.arrived.contains(number) && seen.lost.insert(number) {
            account.datagrams_lost += 1;
        }
    }
}

impl Numbers {
    fn contains(&self, number: u32) -> bool {
        let (word, bit) = place(number);
        self.words.get(word).is_some_and(|word| word & bit != 0)
    }

    /// Whether it was not there before.
    fn insert(&mut self, number: u32) -> bool {
        let (word, bit) = place(number);
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        new
    }

    /// Whether it was there.
    fn remove(&mut self, number: u32) -> bool {
        let there = self.contains(number);
        if there {
            let (word, bit) = place(number);
            self.words[word] &= !bit;
        }
        there
    }
}

const fn place(number: u32) -> (usize, u64) {
    (number as usize / 64, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_once_and_is_lost_only_if_all_of_it_is() {
        let (mut copies, mut account) = (Duplicates::new(1), RowCounters::default());
        assert!(copies.on_arrived(0, 70, &mut account));
        assert!(!copies.on_arrived(0, 70, &mut account));
        copies.on_lost(0, 70, &mut account);
        assert_eq!(account.datagrams_lost, 0, "one of it is there");
        copies.on_lost(0, 3, &mut account);
        copies.on_lost(0, 3, &mut account);
        assert_eq!(account.datagrams_lost, 1);
        assert!(copies.on_arrived(0, 3, &mut account), "the third of it");
        assert_eq!(account.datagrams_lost, 0);
    }
}
