//! The size of full segments on a path whose MTU is smaller than the ends have negotiated.

/// Sizes of segments that another one followed at once: the sender had more data, and sends full
/// segments then. The most frequent one is kept (Boyer and Moore, "MJRTY: a fast majority vote
/// algorithm", 1991).
#[derive(Debug, Default)]
pub(super) struct FollowedSizes {
    size: u64,
    votes: u32,
}

/// Fewest segments of the size, without those of other sizes.
const VOTES_MIN: u32 = 3;

/// More votes do not count, so that a path that changes has its new size soon.
const VOTES_MAX: u32 = 64;

/// A smaller size is one of messages.
const SIZE_MIN: u64 = 512;

impl FollowedSizes {
    /// Adds the payload of a segment that another one has followed at once.
    pub(super) fn add(&mut self, size: u64) {
        if size == self.size {
            self.votes = (self.votes + 1).min(VOTES_MAX);
        } else if self.votes == 0 {
            *self = Self { size, votes: 1 };
        } else {
            self.votes -= 1;
        }
    }

    /// The size of full segments, if it is known. A segment that is larger by more than a tenth
    /// shows that the others were not full.
    pub(super) fn full(&self, largest: u64) -> Option<u64> {
        let is_known = self.votes >= VOTES_MIN && self.size >= SIZE_MIN;
        (is_known && self.size * 10 >= largest * 9).then_some(self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_size_is_that_of_full_segments() {
        let mut sizes = FollowedSizes::default();
        for size in [1406, 1406, 702, 1406] {
            sizes.add(size);
        }
        assert_eq!(sizes.full(1406), None, "two segments more than others");
        sizes.add(1406);
        assert_eq!(sizes.full(1449), Some(1406));
        assert_eq!(sizes.full(1600), None);
        let mut messages = FollowedSizes::default();
        (0..9).for_each(|_| messages.add(200));
        assert_eq!(messages.full(200), None);
    }
}
