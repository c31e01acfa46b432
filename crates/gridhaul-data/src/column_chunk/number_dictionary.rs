//! The dictionary of a column of numbers of eight bytes.

/// Distinct numbers in the order of their first occurrence.
///
/// Most values of a recorded series need no search: they equal the value of the row before
/// (constants, quantities that change slowly), or exceed all values before (times).
#[derive(Debug, Default)]
pub(super) struct NumberDictionary {
    entries: Vec<u64>,
    /// The previous value and its index.
    previous: u64,
    previous_index: u32,
    highest: u64,
    /// Hash table with open addressing: the index of an entry plus one; 0 for a free slot.
    slots: Vec<u32>,
    /// Number of entries in the hash table; the others are added before the next search.
    hashed: usize,
}

impl NumberDictionary {
    /// The index of a number, which is added if it is new.
    pub(super) fn index(&mut self, number: u64) -> u32 {
        if number != self.previous || self.entries.is_empty() {
            let is_new = self.entries.is_empty() || number > self.highest;
            self.previous_index = if is_new { self.push(number) } else { self.search(number) };
            self.previous = number;
        }
        self.previous_index
    }

    pub(super) fn into_entries(self) -> Vec<u64> {
        self.entries
    }

    fn push(&mut self, number: u64) -> u32 {
        self.highest = self.highest.max(number);
        self.entries.push(number);
        self.entries.len() as u32 - 1
    }

    fn search(&mut self, number: u64) -> u32 {
        self.hash_new_entries();
        let slot = self.slot(number);
        match self.slots[slot] {
            0 => {
                let index = self.push(number);
                self.slots[slot] = index + 1;
                self.hashed += 1;
                index
            }
            found => found - 1,
        }
    }

    fn hash_new_entries(&mut self) {
        if self.slots.len() < 2 * (self.entries.len() + 1) {
            self.slots = vec![0; (4 * (self.entries.len() + 1)).next_power_of_two()];
            self.hashed = 0;
        }
        for index in self.hashed..self.entries.len() {
            let slot = self.slot(self.entries[index]);
            self.slots[slot] = index as u32 + 1;
        }
        self.hashed = self.entries.len();
    }

    /// The slot of a number, or the free one in which it belongs.
    fn slot(&self, number: u64) -> usize {
        // Multiplicative hashing (Knuth, The Art of Computer Programming, section 6.4): the highest
        // bits of the product depend on all bits of the number.
        let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut slot = (hash >> (64 - self.slots.len().trailing_zeros())) as usize;
        loop {
            match self.slots[slot] {
                0 => return slot,
                found if self.entries[found as usize - 1] == number => return slot,
                _ => slot = (slot + 1) & (self.slots.len() - 1),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn equal_numbers_have_the_index_of_the_first() {
        // Rising, repeated, and returning numbers; zero, which is no free slot, among them.
        let numbers = (0..20_000_u64).map(|at| match at % 5 {
            0 => at,
            1 => at - 1,
            2 => at / 7,
            3 => at * at % 1_009,
            _ => 0,
        });
        let mut dictionary = NumberDictionary::default();
        let mut known: BTreeMap<u64, u32> = BTreeMap::new();
        for number in numbers {
            let new = known.len() as u32;
            assert_eq!(dictionary.index(number), *known.entry(number).or_insert(new));
        }
        assert_eq!(dictionary.into_entries().len(), known.len());
    }
}
