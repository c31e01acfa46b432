//! Round trips counted by packets (section 4.1.1.3): a round ends when data sent after its start is
//! acknowledged.

/// `BBR.round_count`, `BBR.next_round_delivered` and `BBR.round_start`.
#[derive(Debug, Clone)]
pub(super) struct Round {
    count: u64,
    next_delivered: u64,
    starts: bool,
}

impl Round {
    pub(super) const fn new() -> Self {
        Self { count: 0, next_delivered: 0, starts: false }
    }

    /// Handles the acknowledgement of a segment that was sent when `prior_delivered` bytes were
    /// delivered.
    #[inline]
    pub(super) fn update(&mut self, prior_delivered: u64, delivered: u64) {
        self.starts = prior_delivered >= self.next_delivered;
        if self.starts {
            self.next_delivered = delivered;
            self.count += 1;
        }
    }

    /// Handles an acknowledgement without round information.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.starts = false;
    }

    /// The current round ends with the acknowledgement of data sent from now on.
    pub(super) fn restart(&mut self, delivered: u64) {
        self.next_delivered = delivered;
    }

    /// Whether the last acknowledgement started a round.
    #[inline]
    pub(super) const fn starts(&self) -> bool {
        self.starts
    }
    #[inline]
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}
