//! Data in transit between the two ends of a connection, recognised at their arrival by the
//! position after their last byte in the stream of their sender.

use std::collections::VecDeque;

use gridhaul_scenario::scenario::FlowEnd;

use super::Carrier;

/// The items in transit of both ends, each with the position after its last byte.
#[derive(Debug, Clone)]
pub(super) struct InTransit<T> {
    /// Items of each sender, in the order of its stream.
    sent: [VecDeque<(u64, T)>; 2],
}

impl<T> InTransit<T> {
    pub(super) const fn new() -> Self {
        Self { sent: [const { VecDeque::new() }; 2] }
    }

    /// An end has written an item, up to the present end of its stream.
    pub(super) fn push(&mut self, sender: FlowEnd, item: T, carrier: &impl Carrier) {
        self.sent[sender as usize].push_back((carrier.written(sender), item));
    }

    /// Delivered bytes at an end at which the next item is complete; [`u64::MAX`] without an item.
    #[inline]
    pub(super) fn watch(&self, end: FlowEnd) -> u64 {
        self.sent[end.peer() as usize].front().map_or(u64::MAX, |(until, _)| *until)
    }

    /// Removes and returns the next item that has arrived completely at an end, and its position.
    pub(super) fn take(&mut self, end: FlowEnd, carrier: &impl Carrier) -> Option<(u64, T)> {
        let sent = &mut self.sent[end.peer() as usize];
        let is_complete = sent.front().is_some_and(|(until, _)| *until <= carrier.delivered(end));
        if is_complete { sent.pop_front() } else { None }
    }

    /// Whether an item has arrived completely at an end.
    pub(super) fn has_arrived(&self, end: FlowEnd, carrier: &impl Carrier) -> bool {
        self.watch(end) <= carrier.delivered(end)
    }

    /// The connection has ended: its items that have not arrived are lost.
    pub(super) fn discard_undelivered(&mut self, carrier: &impl Carrier) {
        for end in [FlowEnd::From, FlowEnd::To] {
            let delivered = carrier.delivered(end);
            self.sent[end.peer() as usize].retain(|(until, _)| *until <= delivered);
        }
    }
}
