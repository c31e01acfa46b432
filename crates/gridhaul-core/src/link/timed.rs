//! Links with a deadline queue, for callers without an event queue.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gridhaul_scenario::units::Instant;

use super::{DropReason, LinkObserver, LinkPayload, LinkSet, PacketTransit};

/// A [`LinkSet`] with a queue of the deadlines of its directions.
///
/// Call order: [`offer`](Self::offer) packets, with values of `now` that never decrease; at
/// [`next_deadline`](Self::next_deadline) take departing packets with [`poll`](Self::poll) until it
/// returns `None`.
#[derive(Debug, Clone)]
pub struct TimedLinks<P, O = ()> {
    /// The directions, their counters and observers.
    pub links: LinkSet<P, O>,
    deadlines: Deadlines,
    /// The direction that [`poll`](Self::poll) is draining.
    current: Option<u32>,
}

/// Deadlines of directions and media, the earliest first; at equal times, the one with the smallest
/// index.
#[derive(Debug, Clone)]
struct Deadlines {
    heap: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Time of the valid entry of each direction. Other entries of the heap are obsolete.
    scheduled: Vec<Instant>,
}

impl<P: LinkPayload, O: LinkObserver<P>> TimedLinks<P, O> {
    /// Idle links.
    #[must_use]
    pub fn new(links: LinkSet<P, O>) -> Self {
        let scheduled = vec![Instant::NEVER; links.len() + links.media()];
        Self { links, deadlines: Deadlines { heap: BinaryHeap::new(), scheduled }, current: None }
    }

    /// Offers a packet of `bytes` to a direction.
    ///
    /// # Errors
    /// The queue drops the packet, for the returned reason.
    ///
    /// # Panics
    /// If `link` is out of range.
    pub fn offer(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        packet: P,
    ) -> Result<(), DropReason> {
        let deadlines = &mut self.deadlines;
        self.links.offer(now, link, bytes, || packet, |index, at| deadlines.schedule(index, at))
    }

    /// The next packet that departs at or before `now`, lost packets included, and the index of its
    /// direction. Directions are ordered by deadline, then by index; a direction is drained before
    /// the next one is polled.
    pub fn poll(&mut self, now: Instant) -> Option<(u32, PacketTransit<P>)> {
        loop {
            let link = match self.current {
                Some(link) => link,
                None => self.deadlines.pop(now)?,
            };
            let Some(entry) = self.links.direction_mut(link) else {
                let deadlines = &mut self.deadlines;
                let schedule = &mut |index, at| deadlines.schedule(index, at);
                self.links.advance_medium(now, link, schedule);
                continue;
            };
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

    /// When [`poll`](Self::poll) is to be called next. The call may return `None` if the deadline
    /// of a direction has moved to a later time.
    #[must_use]
    pub fn next_deadline(&self) -> Instant {
        self.deadlines.first()
    }
}

impl Deadlines {
    /// Schedules a deadline, unless the direction already has an earlier one.
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

    /// Removes the earliest entry that is due by `now` and returns its direction.
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
