//! Segments that wait until they are polled.

use std::collections::VecDeque;

use super::Outgoing;

/// A queue that needs no memory in an idle connection: most connections of a proxy are idle at any
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

    /// The next segment. Without one, an `is_idle` connection frees the memory of the queue, which
    /// others soon need again.
    #[inline]
    pub(super) fn pop_front(&mut self, is_idle: impl FnOnce() -> bool) -> Option<Outgoing> {
        let next = self.0.pop_front();
        if next.is_none() && is_idle() {
            self.0 = VecDeque::new();
        }
        next
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_frees_the_memory_after_the_last_segment() {
        let mut queue = OutgoingQueue::new();
        queue.push_back(Outgoing::unwritten());
        assert!(queue.pop_front(|| true).is_some());
        assert!(queue.pop_front(|| false).is_none());
        assert!(queue.0.capacity() > 0, "kept for the next segment of a busy connection");
        assert!(queue.pop_front(|| true).is_none());
        assert_eq!(queue.0.capacity(), 0);
    }
}
