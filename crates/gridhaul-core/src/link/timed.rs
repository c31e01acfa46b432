//! Links with their deadlines, for callers without an event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gridhaul_scenario::units::Instant;

use super::{DropReason, LinkObserver, LinkPayload, LinkSet, PacketTransit};

/// A [`LinkSet`] that knows which of its directions is due next.
///
/// Call order: [`offer`](Self::offer) packets, never with a `now` before an earlier one; at
/// [`next_deadline`](Self::next_deadline) take what leaves with [`poll`](Self::poll) until it returns `None`.
#[derive(Debug, Clone)]
pub struct TimedLinks<P, O = ()> {
    /// The directions, their counters and observers.
    pub links: LinkSet<P, O>,
    deadlines: Deadlines,
    /// The direction from which packets are being taken.
    current: Option<u32>,
}

/// Deadlines of directions, the earliest first; at equal times the direction with the smallest number.
#[derive(Debug, Clone)]
struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Time of the valid entry of each direction. Other entries were overtaken by an earlier one.
    scheduled: Vec<Instant>,
}

impl<P: LinkPayload, O: LinkObserver<P>> TimedLinks<P, O> {
    /// Idle links.
    #[must_use]
    pub fn new(links: LinkSet<P, O>) -> Self {
        let scheduled = vec![Instant::NEVER; links.len()];
        Self { links, deadlines: Deadlines { heap: BinaryHeap::new(), scheduled }, current: None }
    }

    /// Offers a packet of `bytes` to a direction.
    ///
    /// # Errors
    /// The queue has dropped the packet, for this reason.
    ///
    /// # Panics
    /// There is no direction of this number.
    pub fn offer(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        packet: P,
    ) -> Result<(), DropReason> {
        let deadlines = &mut self.deadlines;
        self.links.offer(now, link, bytes, || packet, |at| deadlines.schedule(link, at))
    }

    /// A packet that leaves a direction at or before `now`, lost packets included, and the number of the
    /// direction. Directions take turns in the order of their deadlines, then of their numbers; one
    /// direction returns all that is due before the next one does.
    pub fn poll(&mut self, now: Instant) -> Option<(u32, PacketTransit<P>)> {
        loop {
            let link = match self.current {
                Some(link) => link,
                None => self.deadlines.pop(now)?,
            };
            let entry = self.links.entry_mut(link);
            let transit = entry.front(now).copied();
            if let Some(transit) = transit {
                entry.direction.drop_front();
                self.current = Some(link);
                return Some((link, transit));
            }
            let deadline = entry.direction.next_deadline();
            self.current = None;
            self.deadlines.schedule(link, deadline);
        }
    }

    /// When [`poll`](Self::poll) is next to be called; it may then return `None`, if the deadline of a
    /// direction has moved later.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.deadlines.first()
    }
}

impl Deadlines {
    /// The direction is due at `at`, unless it is due earlier anyway.
    fn schedule(&mut self, link: u32, at: Instant) {
        let scheduled = &mut self.scheduled[link as usize];
        if at < *scheduled {
            *scheduled = at;
            self.heap.push(Reverse((at, link)));
        }
    }

    fn first(&self) -> Instant {
        self.heap.peek().map_or(Instant::NEVER, |Reverse((at, _))| *at)
    }

    /// Removes the entry of the direction that is due first, if that is by `now`.
    fn pop(&mut self, now: Instant) -> Option<u32> {
        while self.first() <= now {
            let Some(Reverse((at, link))) = self.heap.pop() else { break };
            let scheduled = &mut self.scheduled[link as usize];
            if *scheduled == at {
                *scheduled = Instant::NEVER;
                return Some(link);
            }
        }
        None
    }
}
