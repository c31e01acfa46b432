//! The event queue, with integer time. At equal times events of links come first; further ties are
//! resolved in order of scheduling.
//!
//! Ties are frequent: a segment that a delayed acknowledgement has released arrives exactly when
//! the next delayed-ACK timer expires. The segment was in flight before the timer was set, so it is
//! handled first, and the acknowledgement covers it.

mod link_queue;

use gridhaul_scenario::units::Instant;

use self::link_queue::LinkQueue;
use crate::end_id::EndId;
use crate::heap::NOTHING;
use crate::timing_wheel::TimingWheel;

/// The target of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// A direction of a link, or a medium with contention.
    Link(u32),
    /// An end of a flow.
    End(EndId),
    /// The application of a flow.
    App(u32),
    /// The measurements: the warm-up ends, or a sample is due.
    Sampling,
    /// A recorded trace.
    Trace(u32),
    /// A proxy instance, which serves one connection.
    Proxy(u32),
    /// A hybrid router.
    Router(u32),
}

/// A queue in which every target has at most one valid entry.
///
/// Timers move later far more often than earlier, so an entry stays in place when its target moves
/// to a later time, and the target schedules itself again when the entry expires. An entry that an
/// earlier one has superseded is recognised by its time and dropped.
///
/// An entry is time, sequence number and target in one integer. Links have a separate heap, because
/// they are few and have most events.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    links: LinkQueue,
    others: TimingWheel,
    sequence: u64,
    /// Time of the valid entry of each other target: the two ends and the application of each flow,
    /// whose events often follow each other, then the measurements, traces, proxies and hybrid
    /// routers.
    scheduled: Vec<Instant>,
    /// Targets whose valid entries are dropped, because their timers were stopped.
    stopped: BitSet,
    flows: u32,
    traces: u32,
    /// Index of the first hybrid router.
    first_router: u32,
}

/// A place in the order of scheduling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReservedPlace(u64);

const TARGET_BITS: u32 = 28;

/// Number of targets of each flow: both ends and the application.
const TARGETS_OF_FLOW: u32 = 3;

impl Events {
    /// A queue for these numbers of links, flows, traces and proxy instances.
    pub(crate) fn new(links: usize, flows: usize, traces: usize, instances: usize) -> Self {
        let others = TARGETS_OF_FLOW as usize * flows + 1 + traces + instances;
        assert!(links.max(others) < 1 << TARGET_BITS, "too many links, flows or proxies");
        Self {
            links: LinkQueue::new(links),
            others: TimingWheel::new(),
            sequence: 0,
            scheduled: vec![Instant::NEVER; others],
            stopped: BitSet::new(others),
            flows: flows as u32,
            traces: traces as u32,
            first_router: others as u32,
        }
    }

    /// The same queue with hybrid routers.
    pub(crate) fn with_routers(mut self, routers: usize) -> Self {
        let others = self.scheduled.len() + routers;
        assert!(others < 1 << TARGET_BITS, "too many hybrid routers");
        self.scheduled.resize(others, Instant::NEVER);
        self.stopped = BitSet::new(others);
        self
    }

    /// The same queue for links whose deadlines never move earlier, so that no entry is superseded
    /// and a few links need no heap.
    pub(crate) fn with_monotonic_links(mut self) -> Self {
        self.links = self.links.of_monotonic();
        self
    }

    /// Schedules an event of `target` at `at`, unless it has an earlier one.
    #[inline(always)]
    pub(crate) fn schedule(&mut self, target: Target, at: Instant) {
        if let Target::Link(link) = target {
            self.schedule_link(link, at);
        } else if let Target::End(end) = target {
            self.schedule_end(end, at, || false);
        } else if target == Target::Sampling {
            self.schedule_sampling(at);
        } else {
            let index = self.index_of(target);
            if at < self.scheduled[index] {
                self.insert(index, at);
            }
        }
    }

    /// [`schedule`](Self::schedule) for a link, the most frequent target.
    #[inline(always)]
    pub(crate) fn schedule_link(&mut self, link: u32, at: Instant) {
        self.links.schedule(link, at, &mut self.sequence);
    }

    /// [`schedule`](Self::schedule) for the measurements, whose only entry is in no slot of the
    /// timing wheel.
    fn schedule_sampling(&mut self, at: Instant) {
        let index = self.index_of(Target::Sampling);
        if at < self.scheduled[index] {
            self.scheduled[index] = at;
            self.sequence += 1;
            self.others.push_single(entry(index, at, self.sequence));
        }
    }

    /// [`schedule`](Self::schedule) for an end. An end without timer ([`Instant::NEVER`]) that
    /// `is_inactive` gets no event until it is scheduled again: an event at the time of its last
    /// timer would have no effect.
    #[inline(always)]
    pub(crate) fn schedule_end(
        &mut self,
        end: EndId,
        at: Instant,
        is_inactive: impl FnOnce() -> bool,
    ) {
        let index = self.index_of(Target::End(end));
        let scheduled = self.scheduled[index];
        if at < scheduled {
            self.insert(index, at);
        } else if scheduled != Instant::NEVER && (at == Instant::NEVER || self.stopped.count > 0) {
            self.stopped.set(index, at == Instant::NEVER && is_inactive());
        }
    }

    /// Whether an event of an end may be due: its timer expires now at the earliest.
    #[inline]
    pub(crate) fn may_be_due(&self, end: EndId, now: Instant) -> bool {
        self.scheduled[self.index_of(Target::End(end))] <= now
    }

    /// A separate function, because timers seldom move earlier.
    #[inline(never)]
    fn insert(&mut self, index: usize, at: Instant) {
        self.scheduled[index] = at;
        self.stopped.set(index, false);
        self.sequence += 1;
        self.others.push(entry(index, at, self.sequence));
    }

    /// Reserves the next place in the order of scheduling: the time of the event is not known yet.
    pub(crate) const fn reserve(&mut self) -> ReservedPlace {
        self.sequence += 1;
        ReservedPlace(self.sequence)
    }

    /// Schedules an event at a reserved place, unless its target has an earlier one.
    pub(crate) fn schedule_at(&mut self, target: Target, at: Instant, reserved: ReservedPlace) {
        let index = self.index_of(target);
        if at < self.scheduled[index] {
            self.scheduled[index] = at;
            self.others.push(entry(index, at, reserved.0));
        }
    }

    /// When the next event is due; [`Instant::NEVER`] without events.
    pub(crate) fn next_time(&mut self) -> Instant {
        loop {
            let link = self.links.first();
            let other = self.others.first_until(time(link));
            if link == NOTHING && other == NOTHING {
                return Instant::NEVER;
            }
            // Superseded entries are dropped.
            if time(other) < time(link) {
                if self.scheduled[index_in(other)] == time(other) {
                    return time(other);
                }
                self.others.take_first();
            } else {
                if self.links.is_valid(link) {
                    return time(link);
                }
                self.links.take_first(link);
            }
        }
    }

    /// The targets of the next timers, some at once: none while those of the last call are left.
    #[inline]
    pub(crate) fn upcoming(&mut self) -> impl Iterator<Item = Target> {
        let Self { others, scheduled, flows, .. } = self;
        let entries = others.upcoming().iter();
        let valid = entries.filter(|&&entry| scheduled[index_in(entry)] == time(entry));
        valid.filter_map(|&entry| target_of_flow(index_in(entry) as u32, *flows))
    }

    /// Number of entries so far, which is about the number of events.
    pub(crate) const fn entries(&self) -> u64 {
        self.sequence
    }

    /// The time and target of the next event, if it is not later than `end`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, end: Instant) -> Option<(Instant, Target)> {
        loop {
            let link = self.links.first();
            if time(link) <= end && self.others.is_after(time(link)) {
                // Most events are those of links.
                if let Some(popped) = self.pop_link(link) {
                    return Some(popped);
                }
                continue;
            }
            let other = self.others.first_until(time(link).min(end));
            if time(other) < time(link) {
                if time(other) > end {
                    return None;
                }
                self.others.take_first();
                if let Some(target) = self.other(other) {
                    return Some((time(other), target));
                }
                continue;
            }
            if link == NOTHING || time(link) > end {
                return None;
            }
            if let Some(popped) = self.pop_link(link) {
                return Some(popped);
            }
        }
    }

    /// Whether a target that is no link is scheduled for this time.
    pub(crate) fn is_due_at(&self, target: Target, at: Instant) -> bool {
        self.scheduled[self.index_of(target)] == at
    }

    /// Removes the first entry of all links. Returns its time and target, unless the entry was
    /// superseded.
    #[inline(always)]
    fn pop_link(&mut self, first: u128) -> Option<(Instant, Target)> {
        let target = Target::Link(index_in(first) as u32);
        self.links.take_first(first).then_some((time(first), target))
    }

    /// The target of an entry that belongs to no link, unless the entry was superseded or its timer
    /// stopped.
    #[inline(never)]
    fn other(&mut self, entry: u128) -> Option<Target> {
        let index = index_in(entry);
        if self.scheduled[index] != time(entry) {
            return None;
        }
        self.scheduled[index] = Instant::NEVER;
        (!self.stopped.has(index)).then(|| self.target_of(index as u32))
    }

    /// The index of a target that is no link.
    #[inline(always)]
    fn index_of(&self, target: Target) -> usize {
        let after_flows = TARGETS_OF_FLOW * self.flows;
        let index = match target {
            // This is 3 * flow + side, since the index of an end is 2 * flow + side.
            Target::End(end) => end.index() + end.flow(),
            Target::App(flow) => TARGETS_OF_FLOW * flow + APPLICATION,
            Target::Sampling => after_flows,
            Target::Trace(index) => after_flows + 1 + index,
            Target::Proxy(index) => after_flows + 1 + self.traces + index,
            Target::Router(index) => self.first_router + index,
            Target::Link(_) => unreachable!("links have their own numbers"),
        };
        index as usize
    }

    /// The target of an index.
    fn target_of(&self, index: u32) -> Target {
        if let Some(target) = target_of_flow(index, self.flows) {
            return target;
        }
        if index >= self.first_router {
            return Target::Router(index - self.first_router);
        }
        match index - TARGETS_OF_FLOW * self.flows {
            0 => Target::Sampling,
            after if after <= self.traces => Target::Trace(after - 1),
            after => Target::Proxy(after - 1 - self.traces),
        }
    }
}

/// The target of an index, if it belongs to one of this number of flows.
#[inline]
fn target_of_flow(index: u32, flows: u32) -> Option<Target> {
    let (flow, number) = (index / TARGETS_OF_FLOW, index % TARGETS_OF_FLOW);
    (flow < flows).then(|| match number {
        APPLICATION => Target::App(flow),
        end => Target::End(EndId::from_index(2 * flow + end)),
    })
}

/// Number of an application among the targets of its flow, after both ends.
const APPLICATION: u32 = 2;

#[inline]
const fn entry(index: usize, at: Instant, sequence: u64) -> u128 {
    (at.as_nanos() as u128) << 64 | (sequence << TARGET_BITS | index as u64) as u128
}

#[inline]
const fn time(entry: u128) -> Instant {
    Instant::from_nanos((entry >> 64) as u64)
}

/// The index of the target of an entry: of a link among the links, of another target among the
/// others.
#[inline]
const fn index_in(entry: u128) -> usize {
    entry as usize & ((1 << TARGET_BITS) - 1)
}

/// A set of indices.
#[derive(Debug, Clone)]
struct BitSet {
    bits: Vec<u64>,
    /// Number of members.
    count: usize,
}

impl BitSet {
    fn new(indices: usize) -> Self {
        Self { bits: vec![0; indices.div_ceil(64)], count: 0 }
    }

    #[inline]
    fn has(&self, index: usize) -> bool {
        self.bits[index / 64] >> (index % 64) & 1 != 0
    }

    #[inline(always)]
    fn set(&mut self, index: usize, is_member: bool) {
        if self.has(index) != is_member {
            self.bits[index / 64] ^= 1 << (index % 64);
            self.count = if is_member { self.count + 1 } else { self.count - 1 };
        }
    }
}

#[cfg(test)]
mod tests;
