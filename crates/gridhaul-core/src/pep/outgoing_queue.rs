//! Segments that wait until they are polled.

use std::collections::VecDeque;

use super::Outgoing;

/// A queue that needs no memory while it is empty: most connections of a proxy are idle at any
/// time.
#[derive(Debug, Clone, Default)]
pub(super) struct OutgoingQueue(VecDeque<Outgoing>);

impl OutgoingQueue {
    pub(super) const fn new() -> Self {
        Self(VecDeque::new())
    }

    pub(super) fn push_back(&mut self, outgoing: Outgoing) {
        self.0.push_back(outgoing);
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<Outgoing> {
        let next = self.0.pop_front()?;
        release_if_empty(&mut self.0);
        Some(next)
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Frees the buffer of an empty queue.
#[inline]
pub(super) fn release_if_empty<T>(queue: &mut VecDeque<T>) {
    if queue.is_empty() {
        *queue = VecDeque::new();
    }
}
