//! Arrived and lost datagrams on paths that duplicate packets: a message counts once, for any
//! number of its copies.

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
    /// arrived is no longer lost.
    pub(crate) fn on_arrived(&mut self, row: u32, number: u32) -> bool {
        let datagrams = &mut self.rows[row as usize];
        datagrams.lost.remove(number);
        datagrams.arrived.insert(number)
    }

    /// A datagram is lost. Returns whether its message is lost from now on: the message is lost
    /// with its first lost copy, unless a copy has arrived.
    pub(crate) fn on_lost(&mut self, row: u32, number: u32) -> bool {
        let datagrams = &mut self.rows[row as usize];
        !datagrams.arrived.contains(number) && datagrams.lost.insert(number)
    }

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

    fn remove(&mut self, number: u32) {
        let (word, bit) = bit_position(number);
        if let Some(word) = self.words.get_mut(word) {
            *word &= !bit;
        }
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
        let mut duplicates = Duplicates::new(1);
        assert!(duplicates.on_arrived(0, 70));
        assert!(!duplicates.on_arrived(0, 70));
        assert!(!duplicates.on_lost(0, 70), "a copy has arrived");
        assert!(duplicates.on_lost(0, 3));
        assert!(!duplicates.on_lost(0, 3), "the second copy");
        assert!(duplicates.is_lost(0, 3));
        assert!(duplicates.on_arrived(0, 3), "the third copy");
        assert!(!duplicates.is_lost(0, 3));
    }
}
