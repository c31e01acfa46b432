//! FlowQueue-CoDel, RFC 8290.

use std::collections::{BTreeMap, VecDeque};

use gridhaul_scenario::scenario;
use gridhaul_scenario::units::Instant;

use super::codel::Codel;
use super::fifo::{Fifo, StoredPacket};
use crate::link::LinkPayload;
use crate::random::splitmix64;

/// Flow queues served by deficit round robin (RFC 8290, section 4).
#[derive(Debug, Clone)]
pub(super) struct FqCodel<P> {
    keys: scenario::FqCodel,
    /// Perturbs the hash of flows, so that queue collisions are random (section 4.1.1).
    perturbation: u64,
    /// Only queues that were ever used: a link with few flows needs little memory.
    queues: BTreeMap<u32, FlowQueue<P>>,
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    packets: u32,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    codel: Codel,
    /// Remaining credits of the queue in bytes; below zero after a packet larger than the credits.
    credits: i64,
    /// Whether the queue is in the list of new or of old queues.
    listed: bool,
}

impl<P: LinkPayload> FqCodel<P> {
    pub(super) const fn new(keys: scenario::FqCodel, perturbation: u64) -> Self {
        Self {
            keys,
            perturbation,
            queues: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            packets: 0,
            bytes: 0,
        }
    }

    pub(super) const fn packets(&self) -> u32 {
        self.packets
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sum of the waits of all packets by `now`, in nanoseconds.
    pub(super) fn waited_by(&self, now: Instant) -> u64 {
        self.queues.values().map(|queue| queue.fifo.waited_by(now)).sum()
    }

    /// Section 4.1: enqueues a packet in the queue of its flow, which becomes a new queue if it was
    /// in no list.
    pub(super) fn push(&mut self, packet: StoredPacket<P>) {
        let number = self.number_of(packet.payload.flow());
        let keys = self.keys;
        let queue = self.queues.entry(number).or_insert_with(|| FlowQueue {
            fifo: Fifo::new(),
            codel: Codel::new(keys.target, keys.interval, keys.ecn),
            credits: 0,
            listed: false,
        });
        queue.fifo.push(packet);
        self.packets += 1;
        self.bytes += u64::from(packet.bytes);
        if !queue.listed {
            (queue.listed, queue.credits) = (true, quantum(&keys));
            self.new.push_back(number);
        }
    }

    /// Section 4.2: dequeues the next packet.
    pub(super) fn take(
        &mut self,
        now: Instant,
        dropped: &mut Vec<StoredPacket<P>>,
    ) -> Option<StoredPacket<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let number = *list.front()?;
            let queue = self.queues.get_mut(&number).expect("listed queues exist");
            if queue.credits <= 0 {
                queue.credits += quantum(&self.keys);
                list.pop_front();
                self.old.push_back(number);
                continue;
            }
            let (packets, bytes) = (queue.fifo.packets(), queue.fifo.bytes());
            let taken = queue.codel.take(now, &mut queue.fifo, dropped);
            self.packets -= packets - queue.fifo.packets();
            self.bytes -= bytes - queue.fifo.bytes();
            if let Some(packet) = taken {
                queue.credits -= i64::from(packet.bytes);
                return Some(packet);
            }
            // An empty new queue becomes an old one first; otherwise a flow that sends little could
            // always take precedence and starve the others.
            list.pop_front();
            if is_new {
                self.old.push_back(number);
            } else {
                queue.listed = false;
            }
        }
    }

    /// Section 4.1.2: drops the oldest packet of the queue with the most bytes. The queue stays in
    /// its list.
    pub(super) fn drop_from_longest(&mut self) -> Option<StoredPacket<P>> {
        let longest = self.queues.values_mut().reduce(|longest, queue| {
            if queue.fifo.bytes() > longest.fifo.bytes() { queue } else { longest }
        })?;
        let packet = longest.fifo.pop()?;
        self.packets -= 1;
        self.bytes -= u64::from(packet.bytes);
        Some(packet)
    }

    fn number_of(&self, flow: u64) -> u32 {
        (splitmix64(flow ^ self.perturbation) % u64::from(self.keys.flows.max(1))) as u32
    }
}

fn quantum(keys: &scenario::FqCodel) -> i64 {
    // At least 1: with a quantum of zero no queue would ever be served.
    i64::try_from(keys.quantum.get().max(1)).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::{Bytes, Duration};

    use super::*;

    /// Flow index and packet number.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    struct Of(u64, u32);

    impl LinkPayload for Of {
        fn flow(&self) -> u64 {
            self.0
        }
    }

    fn fq_codel(quantum: u64) -> FqCodel<Of> {
        let quantum = Bytes::new(quantum);
        FqCodel::new(scenario::FqCodel { quantum, ..scenario::FqCodel::default() }, 1)
    }

    fn push(fq: &mut FqCodel<Of>, flow: u64, number: u32, bytes: u32) {
        fq.push(StoredPacket::new(Of(flow, number), bytes, Instant::ZERO));
    }

    fn take(fq: &mut FqCodel<Of>, count: usize) -> Vec<(u64, u32)> {
        let now = Instant::ZERO + Duration::from_millis(1);
        let mut one =
            || fq.take(now, &mut Vec::new()).map(|packet| (packet.payload.0, packet.payload.1));
        (0..count).map_while(|_| one()).collect()
    }

    #[test]
    fn flows_are_served_by_bytes() {
        // A quantum of 1,000 B: flow 1 sends two of 500 B where flow 2 sends one of 1,000 B.
        let mut fq = fq_codel(1_000);
        (0..4).for_each(|number| push(&mut fq, 1, number, 500));
        (0..4).for_each(|number| push(&mut fq, 2, number, 1_000));
        assert_eq!((fq.packets(), fq.bytes()), (8, 6_000));
        let expected = [(1, 0), (1, 1), (2, 0), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)];
        assert_eq!(take(&mut fq, 9), expected);
        assert_eq!((fq.packets(), fq.bytes()), (0, 0));
    }

    #[test]
    fn a_new_flow_takes_precedence_only_once() {
        // A turn is two packets of flow 1, which has sent one of them when a packet of flow 2
        // arrives.
        let mut fq = fq_codel(1_000);
        (0..6).for_each(|number| push(&mut fq, 1, number, 500));
        assert_eq!(take(&mut fq, 1), [(1, 0)]);
        push(&mut fq, 2, 0, 400);
        assert_eq!(take(&mut fq, 3), [(1, 1), (2, 0), (1, 2)]);
        // Its emptied queue then becomes an old one: flow 1 finishes its turn first.
        push(&mut fq, 2, 1, 400);
        assert_eq!(take(&mut fq, 3), [(1, 3), (2, 1), (1, 4)]);
    }

    #[test]
    fn the_longest_queue_drops_when_the_limit_is_reached() {
        let mut fq = fq_codel(1_000);
        (0..3).for_each(|number| push(&mut fq, 1, number, 100));
        push(&mut fq, 2, 0, 400);
        assert_eq!(fq.drop_from_longest().map(|packet| packet.payload), Some(Of(2, 0)));
        assert_eq!(fq.drop_from_longest().map(|packet| packet.payload), Some(Of(1, 0)));
        assert_eq!(take(&mut fq, 9), [(1, 1), (1, 2)]);
        assert_eq!(fq.drop_from_longest().map(|packet| packet.payload), None);
    }

    #[test]
    fn flows_spread_over_the_queues() {
        // 100 flows over 1,024 queues: 4.8 share one on average (100 · 99 / 2 / 1,024).
        let mut fq = fq_codel(1_000);
        (0..100).for_each(|flow| push(&mut fq, flow, 0, 100));
        assert!((90..100).contains(&fq.queues.len()), "{}", fq.queues.len());
        let mut one = fq_codel(1_000);
        one.keys.flows = 1;
        (0..100).for_each(|flow| push(&mut one, flow, 0, 100));
        assert_eq!(one.queues.len(), 1);
    }
}
