//! Checks queues that store packets (CoDel, FQ-CoDel, schedulers): their limit, that each leaving
//! packet was accepted, and the order of each flow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use gridhaul_core::link::{LinkPayload, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{Aqm, Direction, Scheduler};
use gridhaul_scenario::units::{Instant, QueueLimit};

use super::LinkRule;

/// Checks the packets of a direction by their times of enqueueing and dequeueing.
///
/// The packets that waited when a packet was enqueued are known once it and all earlier packets
/// have been dequeued. Until then it is pending, in the order of enqueueing.
#[derive(Debug, Clone)]
pub(super) struct ManagedQueueCheck {
    limit: QueueLimit,
    /// Whether the queue schedules by flow, so that packets of different flows may be reordered.
    by_flow: bool,
    /// Enqueued packets, from the first that has not been dequeued.
    pending: VecDeque<Entry>,
    /// Earlier packets that waited when the last checked packet was enqueued: dequeueing time and
    /// size.
    waiting: BinaryHeap<Reverse<(Instant, u32)>>,
    waiting_bytes: u64,
    /// Enqueueing time of the last transmitted packet of each flow.
    last_sent: BTreeMap<u64, Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    offered: Instant,
    bytes: u32,
    /// When the packet was dequeued, once known.
    dequeued: Option<Instant>,
}

impl ManagedQueueCheck {
    /// `None` for a direction whose queue decides on arrival.
    pub(super) fn new(direction: &Direction) -> Option<Self> {
        let (limit, by_flow) = match (&direction.scheduler, &direction.aqm) {
            // The queue of a shaper, and that of the link after it.
            _ if direction.active_shaper().is_some() => (QueueLimit::Unlimited, true),
            (Some(scheduler), _) => (sum_of_limits(scheduler, direction.queue), true),
            (None, Some(Aqm::Codel(_))) => (direction.queue, false),
            (None, Some(Aqm::FqCodel(_))) => (direction.queue, true),
            (None, Some(Aqm::Red(_) | Aqm::Pie(_)) | None) => return None,
        };
        Some(Self {
            limit,
            by_flow,
            pending: VecDeque::new(),
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            last_sent: BTreeMap::new(),
        })
    }

    pub(super) fn on_accepted(&mut self, now: Instant, bytes: u32) {
        self.pending.push_back(Entry { offered: now, bytes, dequeued: None });
    }

    /// A packet leaves the direction, transmitted or dropped. With `in_order`, transmitted packets
    /// leave in the order of transmission.
    pub(super) fn on_transit<P: LinkPayload>(
        &mut self,
        transit: &PacketTransit<P>,
        in_order: bool,
    ) -> Result<(), LinkRule> {
        let PacketTransit { bytes, offered, started, outcome, .. } = *transit;
        // Packets of equal size that were enqueued at the same time are interchangeable.
        let at = self.pending.partition_point(|entry| entry.offered < offered);
        let entry = self
            .pending
            .range_mut(at..)
            .take_while(|entry| entry.offered == offered)
            .find(|entry| entry.bytes == bytes && entry.dequeued.is_none());
        let Some(entry) = entry else {
            return Err(LinkRule::NeverAccepted);
        };
        entry.dequeued = Some(started);
        let was_sent = !matches!(outcome, TransitOutcome::Lost(reason) if reason.is_by_queue());
        if was_sent && in_order {
            let flow = if self.by_flow { transit.payload.flow() } else { 0 };
            let last_sent = self.last_sent.entry(flow).or_insert(offered);
            if offered < *last_sent {
                return Err(LinkRule::OvertookInQueue);
            }
            *last_sent = offered;
        }
        self.check_limit()
    }

    /// Checks the limit for each packet that has been dequeued together with all earlier packets.
    fn check_limit(&mut self) -> Result<(), LinkRule> {
        while let Some(Entry { offered, bytes, dequeued: Some(dequeued) }) =
            self.pending.front().copied()
        {
            self.pending.pop_front();
            while let Some(&Reverse((first, bytes))) = self.waiting.peek()
                && first <= offered
            {
                self.waiting_bytes -= u64::from(bytes);
                self.waiting.pop();
            }
            if dequeued > offered {
                self.waiting.push(Reverse((dequeued, bytes)));
                self.waiting_bytes += u64::from(bytes);
            }
            let is_within = match self.limit {
                QueueLimit::Unlimited => true,
                QueueLimit::Packets(limit) => self.waiting.len() as u64 <= u64::from(limit),
                QueueLimit::Bytes(limit) => self.waiting_bytes <= limit.get(),
            };
            if !is_within {
                return Err(LinkRule::QueueAboveLimit);
            }
        }
        Ok(())
    }
}

/// Largest number of packets that all classes of a scheduler store; unlimited if a class is, or has
/// a limit in bytes.
fn sum_of_limits(scheduler: &Scheduler, queue: QueueLimit) -> QueueLimit {
    let mut sum = 0_u32;
    for class in scheduler.class.values() {
        let QueueLimit::Packets(packets) = class.queue.unwrap_or(queue) else {
            return QueueLimit::Unlimited;
        };
        // Active queue management dequeues the packet that is sent next before it is sent.
        sum = sum.saturating_add(packets).saturating_add(u32::from(class.aqm.is_some()));
    }
    QueueLimit::Packets(sum)
}
