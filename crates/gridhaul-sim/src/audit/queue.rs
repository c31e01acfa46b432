//! Checks the limits of queues that decide on arrival.

use std::collections::VecDeque;

use gridhaul_scenario::units::{Instant, QueueLimit};

/// Checks the packets of a direction in the order in which they were offered.
///
/// In a queue for n packets, the transmission of the n-th packet before an accepted one must have
/// started by the time of the offer. A ring of start times therefore needs one comparison for each
/// packet. Limits in bytes and limits of very many packets are checked by counting.
#[derive(Debug, Clone)]
pub(super) struct QueueCheck {
    /// The limit of the queue.
    limit: QueueLimit,
    /// Ring of the start times of the last packets, as many as the limit.
    starts: Vec<Instant>,
    next: usize,
    waiting: WaitingCount,
}

/// Counts the packets that wait when a packet is offered.
#[derive(Debug, Clone, Default)]
struct WaitingCount {
    /// Start time and size of packets that may still wait at a later offer.
    packets: VecDeque<(Instant, u32)>,
    bytes: u64,
}

/// Largest limit that is checked with the ring.
const RING_MAX: u32 = 1 << 14;

impl QueueCheck {
    pub(super) fn new(limit: QueueLimit) -> Self {
        Self { limit, starts: Vec::new(), next: 0, waiting: WaitingCount::default() }
    }

    /// Whether the queue had space for a packet with these times of offer and start of
    /// transmission.
    #[inline]
    pub(super) fn is_within_limit(
        &mut self,
        offered: Instant,
        started: Instant,
        bytes: u32,
    ) -> bool {
        let Some(start) = self.starts.get_mut(self.next) else {
            return self.is_within_limit_by_count(offered, started, bytes);
        };
        let is_within = *start <= offered;
        *start = started;
        self.next += 1;
        if self.next == self.starts.len() {
            self.wrap_ring();
        }
        is_within
    }

    /// Continues at the beginning of the ring, once it is full.
    fn wrap_ring(&mut self) {
        if QueueLimit::Packets(self.starts.len() as u32) == self.limit {
            self.next = 0;
        }
    }

    #[inline(never)]
    fn is_within_limit_by_count(&mut self, offered: Instant, started: Instant, bytes: u32) -> bool {
        match self.limit {
            QueueLimit::Unlimited => true,
            QueueLimit::Packets(0) => started == offered,
            QueueLimit::Packets(limit) if limit <= RING_MAX => {
                // The ring is not yet full, so the queue has had space for all packets.
                self.starts.push(started);
                self.next = self.starts.len();
                self.wrap_ring();
                true
            }
            QueueLimit::Packets(limit) => {
                self.waiting.add(offered, started, bytes);
                self.waiting.packets.len() as u64 <= u64::from(limit)
            }
            QueueLimit::Bytes(limit) => {
                self.waiting.add(offered, started, bytes);
                self.waiting.bytes <= limit.get()
            }
        }
    }
}

impl WaitingCount {
    fn add(&mut self, offered: Instant, started: Instant, bytes: u32) {
        while let Some(&(start, bytes)) = self.packets.front()
            && start <= offered
        {
            self.bytes -= u64::from(bytes);
            self.packets.pop_front();
        }
        if started > offered {
            self.packets.push_back((started, bytes));
            self.bytes += u64::from(bytes);
        }
    }
}
