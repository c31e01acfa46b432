//! No queue holds more than it may.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Instant, QueueLimit};

/// Checks the packets of a direction, in the order in which they were offered.
///
/// With room for n packets to wait, the packet n places before one that is offered and taken must
/// have begun by then, whatever lies between: one look for each packet. Limits in bytes, and such
/// of very many packets, are checked by counting.
#[derive(Debug)]
pub(super) struct QueueCheck {
    /// Packets that may wait; of interest until `begun` has as many.
    limit: QueueLimit,
    /// When the packets began as many of which may wait, around in a circle.
    begun: Vec<Instant>,
    next: usize,
    count: Count,
}

/// Adds up who was waiting when a packet was offered.
#[derive(Debug, Default)]
struct Count {
    /// Beginning and size of those that may still wait at a later offer.
    waiting: VecDeque<(Instant, u32)>,
    bytes: u64,
}

/// Most packets that are remembered whether they wait or not.
const CIRCLE_MAX: u32 = 1 << 14;

impl QueueCheck {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { limit, begun: Vec::new(), next: 0, count: Count::default() }
    }

    /// Whether there was room for a packet that was offered and began to be sent at these times.
    #[inline]
    pub(super) fn keeps(&mut self, offered: Instant, started: Instant, bytes: u32) -> bool {
        let Some(begun) = self.begun.get_mut(self.next) else {
            return self.keeps_otherwise(offered, started, bytes);
        };
        let kept = *begun <= offered;
        *begun = started;
        self.next += 1;
        if self.next == self.begun.len() {
            self.go_round();
        }
        kept
    }

    /// Begins anew with the circle, once it is whole.
    fn go_round(&mut self) {
        if QueueLimit::Packets(self.begun.len() as u32) == self.limit {
            self.next = 0;
        }
    }

    #[inline(never)]
    fn keeps_otherwise(&mut self, offered: Instant, started: Instant, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(0) => started == offered,
            QueueLimit::Packets(limit) if limit <= CIRCLE_MAX => {
                // So far there is room for all.
                self.begun.push(started);
                self.next = self.begun.len();
                self.go_round();
                true
            }
            QueueLimit::Packets(limit) => {
                self.count.add(offered, started, bytes);
                self.count.waiting.len() as u64 <= u64::from(limit)
            }
            QueueLimit::Bytes(limit) => {
                self.count.add(offered, started, bytes);
                self.count.bytes <= limit.get()
            }
        }
    }
}

impl Count {
    fn add(&mut self, offered: Instant, started: Instant, bytes: u32) {
        while let Some(&(begun, bytes)) = self.waiting.front()
            && begun <= offered
        {
            self.bytes -= u64::from(bytes);
            self.waiting.pop_front();
        }
        if started > offered {
            self.waiting.push_back((started, bytes));
            self.bytes += u64::from(bytes);
        }
    }
}
