//! Lists of entries, in blocks of a common array.
//!
//! With a vector for each slot, every slot would keep memory for its maximum number of entries.

/// Lists of entries, which have no order.
#[derive(Debug, Clone)]
pub(super) struct EntryLists {
    blocks: Vec<Block>,
    /// First block of each list, the only one with free places; [`NO_BLOCK`] of an empty list.
    first: Vec<u32>,
    /// First block that belongs to no list.
    free: u32,
}

/// Some entries of a list: four cache lines.
#[derive(Debug, Clone, Copy)]
struct Block {
    entries: [u128; BLOCK_LEN],
    len: u32,
    next: u32,
}

const BLOCK_LEN: usize = 15;
const NO_BLOCK: u32 = u32::MAX;

/// Entries that were removed from a list.
#[derive(Debug)]
pub(super) struct RemovedBlock(Block);

impl EntryLists {
    /// This many empty lists.
    pub(super) fn new(count: usize) -> Self {
        Self { blocks: Vec::new(), first: vec![NO_BLOCK; count], free: NO_BLOCK }
    }

    /// Adds an entry to a list.
    #[inline]
    pub(super) fn push(&mut self, list: usize, entry: u128) {
        let first = self.first[list] as usize;
        if let Some(block) = self.blocks.get_mut(first)
            && let Some(place) = block.entries.get_mut(block.len as usize)
        {
            *place = entry;
            block.len += 1;
            return;
        }
        self.push_to_new_block(list, entry);
    }

    /// Moves the entries of a list to the end of `target`.
    #[inline]
    pub(super) fn drain_to(&mut self, list: usize, target: &mut Vec<u128>) {
        let mut next = std::mem::replace(&mut self.first[list], NO_BLOCK);
        while let Some(block) = self.blocks.get_mut(next as usize) {
            target.extend_from_slice(&block.entries[..block.len as usize]);
            let removed = next;
            next = std::mem::replace(&mut block.next, self.free);
            self.free = removed;
        }
    }

    /// Removes some entries of a list, which may then get new ones; `None` if the list is empty.
    #[inline]
    pub(super) fn take_block(&mut self, list: usize) -> Option<RemovedBlock> {
        let first = self.first[list];
        let block = self.blocks.get_mut(first as usize)?;
        let removed = *block;
        block.next = self.free;
        self.free = first;
        self.first[list] = removed.next;
        Some(RemovedBlock(removed))
    }

    #[inline(never)]
    fn push_to_new_block(&mut self, list: usize, entry: u128) {
        if self.free == NO_BLOCK {
            assert!(self.blocks.len() < NO_BLOCK as usize, "the blocks would not fit into memory");
            self.free = self.blocks.len() as u32;
            self.blocks.push(Block { entries: [0; BLOCK_LEN], len: 0, next: NO_BLOCK });
        }
        let index = self.free;
        let block = &mut self.blocks[index as usize];
        self.free = std::mem::replace(&mut block.next, self.first[list]);
        (block.entries[0], block.len) = (entry, 1);
        self.first[list] = index;
    }
}

impl RemovedBlock {
    pub(super) fn entries(&self) -> &[u128] {
        &self.0.entries[..self.0.len as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(lists: &mut EntryLists, list: usize) -> Vec<u128> {
        let blocks = std::iter::from_fn(|| lists.take_block(list));
        let mut entries: Vec<_> = blocks.flat_map(|block| block.entries().to_vec()).collect();
        entries.sort_unstable();
        entries
    }

    #[test]
    fn lists_are_independent_and_reuse_blocks() {
        let mut lists = EntryLists::new(2);
        for round in 0..3 {
            for entry in 0..100 {
                lists.push((entry % 2) as usize, entry);
            }
            assert_eq!(take(&mut lists, 0), (0..100).step_by(2).collect::<Vec<_>>());
            lists.push(0, round);
            assert_eq!(take(&mut lists, 1), (1..100).step_by(2).collect::<Vec<_>>());
            assert_eq!(take(&mut lists, 0), [round]);
            assert!(lists.take_block(0).is_none());
        }
        // Two lists of 50 entries need four blocks each.
        assert_eq!(lists.blocks.len(), 8);
        (0..40).for_each(|entry| lists.push(1, entry));
        let mut drained = vec![40];
        lists.drain_to(1, &mut drained);
        drained.sort_unstable();
        assert_eq!(drained, (0..=40).collect::<Vec<_>>());
        assert_eq!((take(&mut lists, 1), lists.blocks.len()), (Vec::new(), 8));
    }
}
