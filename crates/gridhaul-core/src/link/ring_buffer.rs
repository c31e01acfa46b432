//! A ring buffer whose capacity is a power of two.

/// A first-in, first-out queue. The index of an item is masked, which is cheaper than the
/// comparison and branch of a general wrap-around, and items are read in place instead of being
/// moved out.
#[derive(Debug, Clone)]
pub(super) struct RingBuffer<T> {
    /// The capacity is a power of two, or zero; slots outside `head..tail` are unused.
    slots: Vec<T>,
    /// Items removed and added since the start; masked, these counts are slot indices.
    head: usize,
    tail: usize,
}

impl<T: Copy> RingBuffer<T> {
    /// An empty queue without allocated memory.
    pub(super) const fn new() -> Self {
        Self { slots: Vec::new(), head: 0, tail: 0 }
    }

    #[inline]
    pub(super) const fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// The oldest item.
    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.slots.get(self.slot_index(self.head)) }
    }

    /// The oldest item.
    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        if self.is_empty() {
            return None;
        }
        let index = self.slot_index(self.head);
        self.slots.get_mut(index)
    }

    /// All items, the oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| &self.slots[self.slot_index(self.head.wrapping_add(index))])
    }

    /// Removes the oldest item, if any.
    #[inline]
    pub(super) fn drop_front(&mut self) {
        if !self.is_empty() {
            self.head = self.head.wrapping_add(1);
        }
    }

    #[inline]
    pub(super) fn push_back(&mut self, item: T) {
        *self.push_back_slot(|| item) = item;
    }

    /// Appends an item that the caller writes to the returned slot; `filler` initialises new
    /// memory.
    #[inline]
    pub(super) fn push_back_slot(&mut self, filler: impl FnOnce() -> T) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow(&filler());
        }
        let index = self.slot_index(self.tail);
        self.tail = self.tail.wrapping_add(1);
        &mut self.slots[index]
    }

    /// The slot of the next item, with its previous content.
    /// [`accept_back_slot`](Self::accept_back_slot) appends it to the queue. `filler` initialises
    /// new memory.
    #[inline(always)]
    pub(super) fn back_slot(&mut self, filler: impl FnOnce() -> T) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow(&filler());
        }
        let index = self.slot_index(self.tail);
        &mut self.slots[index]
    }

    /// Appends the item in [`back_slot`](Self::back_slot) to the queue.
    #[inline]
    pub(super) fn accept_back_slot(&mut self) -> Option<&mut T> {
        debug_assert!(self.len() < self.slots.len(), "the slot was reserved");
        let index = self.slot_index(self.tail);
        self.tail = self.tail.wrapping_add(1);
        self.slots.get_mut(index)
    }

    /// Inserts an item before all items at the back for which `comes_after` holds.
    pub(super) fn insert(&mut self, item: T, comes_after: impl Fn(&T) -> bool) {
        self.push_back(item);
        let mut at = self.tail.wrapping_sub(1);
        while at != self.head {
            let (own, before) = (self.slot_index(at), self.slot_index(at.wrapping_sub(1)));
            if !comes_after(&self.slots[before]) {
                break;
            }
            self.slots.swap(own, before);
            at = at.wrapping_sub(1);
        }
    }

    /// Removes all items.
    #[inline]
    pub(super) const fn clear(&mut self) {
        self.head = self.tail;
    }

    #[inline]
    const fn slot_index(&self, count: usize) -> usize {
        count & self.slots.len().wrapping_sub(1)
    }

    /// Doubles the capacity; `filler` initialises the new slots.
    #[cold]
    fn grow(&mut self, filler: &T) {
        let (len, first) = (self.len(), self.slot_index(self.head));
        self.slots.rotate_left(if len == 0 { 0 } else { first });
        self.slots.resize((2 * len).max(4), *filler);
        (self.head, self.tail) = (0, len);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn items_leave_in_the_order_of_arrival(
            steps in prop::collection::vec(prop::option::of(0_u32..100), 0..300),
        ) {
            let (mut ring, mut expected) = (RingBuffer::new(), VecDeque::new());
            for step in steps {
                match step {
                    Some(item) => {
                        ring.push_back(item);
                        expected.push_back(item);
                    }
                    None => {
                        ring.drop_front();
                        expected.pop_front();
                    }
                }
                prop_assert_eq!((ring.len(), ring.front()), (expected.len(), expected.front()));
            }
        }

        #[test]
        fn an_inserted_item_follows_equal_items(
            steps in prop::collection::vec(prop::option::of(0_u32..10), 0..100),
        ) {
            let (mut ring, mut expected) = (RingBuffer::new(), Vec::new());
            for (number, step) in steps.into_iter().enumerate() {
                if let Some(key) = step {
                    ring.insert((key, number), |other| other.0 > key);
                    expected.push((key, number));
                    expected.sort_by_key(|item| item.0);
                } else if !expected.is_empty() {
                    ring.drop_front();
                    expected.remove(0);
                }
                prop_assert_eq!(ring.front(), expected.first());
            }
        }
    }
}
