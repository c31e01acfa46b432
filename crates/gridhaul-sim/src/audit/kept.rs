//! A queue that holds its packets (CoDel, FQ-CoDel) holds no more than it may, lets nothing out that
//! did not go in, and keeps the order of each flow.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use gridhaul_core::link::{LinkPayload, PacketTransit, TransitOutcome};
use gridhaul_scenario::scenario::{Aqm, Direction};
use gridhaul_scenario::units::{Instant, QueueLimit};

use super::LinkRule;

/// Checks the packets of a direction by when they went in and when they left the queue.
///
/// What waited when a packet went in is known once all packets up to it are out: until then it is
/// remembered, in the order in which they went in.
#[derive(Debug)]
pub(super) struct KeptCheck {
    limit: QueueLimit,
    /// Flows may overtake each other.
    by_flow: bool,
    /// Packets that went in, from the first that is not out.
    pending: VecDeque<Entry>,
    /// Those before, while they waited at the last packet that was looked at: when they left the
    /// queue, and their sizes.
    waiting: BinaryHeap<Reverse<(Instant, u32)>>,
    waiting_bytes: u64,
    /// When the packet of each flow went in that was the last to be sent.
    last: BTreeMap<u64, Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    offered: Instant,
    bytes: u32,
    /// When it left the queue, once that is known.
    begun: Option<Instant>,
}

impl KeptCheck {
    /// The check for a queue that holds its packets.
    pub(super) fn new(direction: &Direction) -> Option<Self> {
        let by_flow = match direction.aqm {
            Some(Aqm::Codel(_)) => false,
            Some(Aqm::FqCodel(_)) => true,
            Some(Aqm::Red(_) | Aqm::Pie(_)) | None => return None,
        };
        Some(Self {
            limit: direction.queue,
            by_flow,
            pending: VecDeque::new(),
            waiting: BinaryHeap::new(),
            waiting_bytes: 0,
            last: BTreeMap::new(),
        })
    }

    pub(super) fn on_accepted(&mut self, now: Instant, bytes: u32) {
        self.pending.push_back(Entry { offered: now, bytes, begun: None });
    }

    /// A packet comes out, sent or dropped; sent ones in the order of the wire if `in_order`.
    pub(super) fn on_transit<P: LinkPayload>(
        &mut self,
        passage: &PacketTransit<P>,
        in_order: bool,
    ) -> Result<(), LinkRule> {
        let PacketTransit { bytes, offered, started, outcome, .. } = *passage;
        // Packets of one size that went in at the same time need not be told apart.
        let at = self.pending.partition_point(|entry| entry.offered < offered);
        let entry = self
            .pending
            .range_mut(at..)
            .take_while(|entry| entry.offered == offered)
            .find(|entry| entry.bytes == bytes && entry.begun.is_none());
        let Some(entry) = entry else {
            return Err(LinkRule::NeverAccepted);
        };
        entry.begun = Some(started);
        let was_sent = !matches!(outcome, TransitOutcome::Lost(reason) if reason.is_by_queue());
        if was_sent && in_order {
            let flow = if self.by_flow { passage.payload.flow() } else { 0 };
            let last = self.last.entry(flow).or_insert(offered);
            if offered < *last {
                return Err(LinkRule::OvertookInQueue);
            }
            *last = offered;
        }
        self.look()
    }

    /// Looks at each packet that went in, as soon as it and all before it are out.
    fn look(&mut self) -> Result<(), LinkRule> {
        while let Some(Entry { offered, bytes, begun: Some(begun) }) = self.pending.front().copied()
        {
            self.pending.pop_front();
            while let Some(&Reverse((first, bytes))) = self.waiting.peek()
                && first <= offered
            {
                self.waiting_bytes -= u64::from(bytes);
                self.waiting.pop();
            }
            if begun > offered {
                self.waiting.push(Reverse((begun, bytes)));
                self.waiting_bytes += u64::from(bytes);
            }
            let kept = match self.limit {
                QueueLimit::Unlimited => true,
                QueueLimit::Packets(limit) => self.waiting.len() as u64 <= u64::from(limit),
                QueueLimit::Bytes(limit) => self.waiting_bytes <= limit.get(),
            };
            if !kept {
                return Err(LinkRule::QueueAboveLimit);
            }
        }
        Ok(())
    }
}
