//! A queue in one block of memory whose length is a power of two.

/// First in, first out. A place is found with a mask instead of the comparison and the branch that
/// wrapping around costs elsewhere, and what leaves is not moved: it is looked at where it is and
/// then forgotten.
#[derive(Debug, Clone)]
pub(super) struct RingBuffer<T> {
    /// As many as a power of two, or none; those outside `head..tail` mean nothing.
    slots: Vec<T>,
    /// Items taken out and put in since the beginning; the mask leaves their places.
    head: usize,
    tail: usize,
}

impl<T: Copy> RingBuffer<T> {
    /// An empty queue, which takes no memory.
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

    /// The item that has waited longest.
    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        if self.is_empty() { None } else { self.slots.get(self.place(self.head)) }
    }

    /// All items, the one that has waited longest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len()).map(|index| &self.slots[self.place(self.head.wrapping_add(index))])
    }

    /// Forgets the item that has waited longest, if there is one.
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

    /// The place of one more item, which the caller writes; `filler` is for new memory.
    #[inline]
    pub(super) fn push_back_slot(&mut self, filler: impl FnOnce() -> T) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow(&filler());
        }
        let place = self.place(self.tail);
        self.tail = self.tail.wrapping_add(1);
        &mut self.slots[place]
    }

    /// The place of the next item, with what was there before; [`accept_back_slot`](Self::accept_back_slot) makes it part
    /// of the queue. `filler` is for new memory.
    #[inline]
    pub(super) fn back_slot(&mut self, filler: impl FnOnce() -> T) -> &mut T {
        if self.len() == self.slots.len() {
            self.grow(&filler());
        }
        let place = self.place(self.tail);
        &mut self.slots[place]
    }

    /// Takes what is in [`back_slot`](Self::back_slot) into the queue.
    #[inline]
    pub(super) fn accept_back_slot(&mut self) -> Option<&mut T> {
        let place = self.place(self.tail);
        self.tail = self.tail.wrapping_add(1);
        self.slots.get_mut(place)
    }

    /// Puts an item in front of all those at the back that `is_behind` it.
    pub(super) fn insert(&mut self, item: T, is_behind: impl Fn(&T) -> bool) {
        self.push_back(item);
        let mut at = self.tail.wrapping_sub(1);
        while at != self.head {
            let (own, before) = (self.place(at), self.place(at.wrapping_sub(1)));
            if !is_behind(&self.slots[before]) {
                break;
            }
            self.slots.swap(own, before);
            at = at.wrapping_sub(1);
        }
    }

    /// Forgets everything.
    #[inline]
    pub(super) const fn clear(&mut self) {
        self.head = self.tail;
    }

    #[inline]
    const fn place(&self, count: usize) -> usize {
        count & self.slots.len().wrapping_sub(1)
    }

    /// Makes room; `filler` stands in the places that nothing has used yet.
    #[cold]
    fn grow(&mut self, filler: &T) {
        let (len, first) = (self.len(), self.place(self.head));
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
        fn it_is_a_queue(steps in prop::collection::vec(prop::option::of(0_u32..100), 0..300)) {
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
        fn what_is_inserted_stands_behind_its_equals(
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
