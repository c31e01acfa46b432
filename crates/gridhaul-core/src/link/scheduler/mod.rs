//! Schedulers: a queue for each class of packets, served by strict priority and deficit round
//! robin, with a token bucket for each class that has a rate.

mod class_queue;
mod classifier;
mod deficit_round_robin;
mod token_bucket;

use std::collections::VecDeque;
use std::ops::Range;

use gridhaul_scenario::scenario::{self, Direction, Scenario};
use gridhaul_scenario::units::Instant;

use super::aqm::StoredPacket;
use super::{
    DropReason, LinkAccount, LinkDirection, LinkPayload, LinkRandomStreams, PacketTransit,
};
use class_queue::ClassQueue;
use classifier::Classifier;
pub(super) use deficit_round_robin::{DeficitRoundRobin, FirstPacket};
pub(super) use token_bucket::TokenBucket;

/// The packets of a direction that wait for its transmitter, by class.
///
/// The transmitter is never idle while a class has a packet for which it has tokens.
#[derive(Debug, Clone)]
pub(super) struct Scheduler<P> {
    keys: scenario::Scheduler,
    classifier: Classifier,
    classes: Vec<ClassQueue<P>>,
    /// Classes with strict priority, in the order of their ranks.
    ranked: Vec<usize>,
    rounds: DeficitRoundRobin,
    /// When the transmitter takes the next packet; [`Instant::NEVER`] while no packet is stored.
    next_dequeue: Instant,
    /// Dropped packets that have not been reported yet.
    dropped: VecDeque<(StoredPacket<P>, DropReason)>,
    /// Counters of each class.
    accounts: Vec<LinkAccount>,
}

impl<P: LinkPayload> Scheduler<P> {
    /// An empty scheduler; `None` for a direction without one.
    pub(super) fn new(direction: &Direction, random: LinkRandomStreams) -> Option<Self> {
        let keys = direction.scheduler.as_ref()?;
        let classes = keys.class.iter();
        let classes = classes.map(|(name, class)| ClassQueue::new(name, class, direction, random));
        let rank = |class: &usize| keys.class[*class].priority;
        let mut ranked: Vec<_> =
            (0..keys.class.len()).filter(|class| rank(class).is_some()).collect();
        ranked.sort_by_key(rank);
        let quantum = |class: &scenario::SchedulerClass| match class.priority {
            Some(_) => 0,
            None => keys.quantum.get().max(1) * u64::from(class.effective_weight()),
        };
        Some(Self {
            classifier: Classifier::new(keys),
            classes: classes.collect(),
            ranked,
            rounds: DeficitRoundRobin::new(keys.class.values().map(quantum).collect()),
            next_dequeue: Instant::NEVER,
            dropped: VecDeque::new(),
            accounts: vec![LinkAccount::of(direction); keys.class.len()],
            keys: keys.clone(),
        })
    }

    pub(super) fn packets(&self) -> u32 {
        self.classes.iter().map(ClassQueue::packets).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.classes.iter().map(ClassQueue::bytes).sum()
    }

    /// Sum of the waits of all packets by `now`, in nanoseconds.
    pub(super) fn waited_by(&self, now: Instant) -> u64 {
        self.classes.iter().map(|class| class.waited_by(now)).sum()
    }

    /// The largest queue length of each class begins anew: the measured time begins.
    pub(super) fn restart_maxima(&mut self) {
        for (account, class) in self.accounts.iter_mut().zip(&self.classes) {
            account.queue_max = class.packets();
        }
    }

    /// When the transmitter takes the next packet.
    pub(super) const fn next_dequeue(&self) -> Instant {
        self.next_dequeue
    }

    /// Schedules the next dequeue, if a packet is stored.
    pub(super) fn schedule_dequeue(&mut self, at: Instant) {
        self.next_dequeue = if self.packets() == 0 { Instant::NEVER } else { at };
    }

    /// Enqueues a packet, and returns its class. The transmitter is free from `free_at` on.
    /// [`note_length`](Self::note_length) must follow.
    ///
    /// # Errors
    /// The queue of the class is full.
    pub(super) fn push(
        &mut self,
        packet: StoredPacket<P>,
        free_at: Instant,
    ) -> Result<usize, DropReason> {
        let class = self.classifier.class_of(&packet.payload);
        let account = &mut self.accounts[class];
        account.offered += 1;
        let queue = &mut self.classes[class];
        if let Err(reason) = queue.push(packet, free_at <= packet.offered) {
            account.on_refused();
            return Err(reason);
        }
        self.rounds.activate(class);
        self.next_dequeue = self.next_dequeue.min(free_at);
        self.collect_dropped(class, DropReason::QueueFull);
        if self.packets() == 0 {
            // FQ-CoDel has evicted the packet itself.
            self.next_dequeue = Instant::NEVER;
        }
        Ok(class)
    }

    /// Notes the queue length of a class after an arrival. A packet that the transmitter takes at
    /// once does not count, as in queues without classes.
    fn note_length(&mut self, class: usize) {
        let account = &mut self.accounts[class];
        account.queue_max = account.queue_max.max(self.classes[class].packets());
    }

    /// The packet to transmit at `now`, or else the time at which a class will have tokens, which
    /// is [`Instant::NEVER`] without packets.
    pub(super) fn take(&mut self, now: Instant) -> Result<StoredPacket<P>, Instant> {
        let mut waits = Instant::NEVER;
        let mut next = None;
        for &class in &self.ranked {
            let first = self.classes[class].first_packet(now, &mut waits);
            if matches!(first, FirstPacket::Ready(_)) {
                next = Some(class);
                break;
            }
        }
        let classes = &mut self.classes;
        let next =
            next.or_else(|| self.rounds.next(|class| classes[class].first_packet(now, &mut waits)));
        let taken = next.and_then(|class| self.classes[class].take(now));
        if let Some(class) = next.filter(|class| self.classes[*class].packets() == 0) {
            self.rounds.deactivate(class);
        }
        for class in 0..self.classes.len() {
            self.collect_dropped(class, DropReason::Aqm);
        }
        taken.ok_or(waits)
    }

    /// A packet that [`push`](Self::push) or [`take`](Self::take) has dropped.
    pub(super) fn pop_dropped(&mut self) -> Option<(StoredPacket<P>, DropReason)> {
        self.dropped.pop_front()
    }

    fn collect_dropped(&mut self, class: usize, reason: DropReason) {
        while let Some(packet) = self.classes[class].pop_dropped() {
            self.dropped.push_back((packet, reason));
        }
    }

    /// A packet departs from the direction.
    pub(super) fn on_departed(&mut self, transit: &PacketTransit<P>) {
        if transit.left == Instant::NEVER {
            // An outage without end delays the packet for ever.
            return;
        }
        self.accounts[self.classifier.class_of(&transit.payload)].count(transit);
    }

    /// The counters of each class at `now`; `inside` are the packets in the direction that are not
    /// stored here.
    pub(super) fn accounts<'a>(
        &self,
        now: Instant,
        inside: impl Iterator<Item = &'a PacketTransit<P>>,
    ) -> Vec<LinkAccount>
    where
        P: 'a,
    {
        let mut accounts = self.accounts.clone();
        for (account, class) in accounts.iter_mut().zip(&self.classes) {
            account.waited_ns += class.waited_by(now);
        }
        for transit in inside {
            let class = self.classifier.class_of(&transit.payload);
            accounts[class].wire_bytes += transit.sent_by(now);
            accounts[class].waited_ns += transit.waited_by(now);
        }
        accounts
    }
}

impl<P: LinkPayload> LinkDirection<P> {
    /// [`handle_packet`](Self::handle_packet) for a direction with a scheduler.
    pub(super) fn handle_scheduled(&mut self, packet: StoredPacket<P>) -> Result<(), DropReason> {
        let now = packet.offered;
        let free_at = self.transmitter.free_at();
        let Some(impaired) = &mut self.impaired else { return Ok(()) };
        let free_at = impaired.start_of_arrival(now, free_at);
        let Some(scheduler) = &mut impaired.scheduler else { return Ok(()) };
        let class = scheduler.push(packet, free_at)?;
        self.emit_dropped_by_classes(now);
        self.dequeue_due(now);
        if let Some(scheduler) = self.scheduler_mut() {
            scheduler.note_length(class);
        }
        Ok(())
    }

    /// Dequeues all packets of classes whose transmission starts by `now`.
    pub(super) fn dequeue_scheduled(&mut self, now: Instant) {
        while let Some(scheduler) = self.scheduler_mut()
            && scheduler.packets() > 0
            && scheduler.next_dequeue() <= now
        {
            let started = scheduler.next_dequeue();
            let taken = scheduler.take(started);
            self.emit_dropped_by_classes(started);
            let next = match taken {
                Ok(packet) => {
                    // As for CoDel, load-dependent latency is evaluated at dequeue.
                    self.transmit(started, packet, started);
                    self.transmitter.free_at()
                }
                Err(tokens_at) => tokens_at,
            };
            let Some(impaired) = &mut self.impaired else { return };
            let next = impaired.start_from(next);
            if let Some(scheduler) = &mut impaired.scheduler {
                scheduler.schedule_dequeue(next);
            }
        }
    }

    /// Packets that the queues of classes dropped at `now` depart as lost.
    fn emit_dropped_by_classes(&mut self, now: Instant) {
        while let Some((packet, reason)) = self.scheduler_mut().and_then(Scheduler::pop_dropped) {
            self.emit_dropped_packet(now, packet, reason);
        }
    }

    /// The front packet departs.
    pub(super) fn count_in_class(&mut self) {
        let Some(impaired) = &mut self.impaired else { return };
        if let (Some(scheduler), Some(transit)) = (&mut impaired.scheduler, self.inside.front()) {
            scheduler.on_departed(transit);
        }
    }

    /// Makes the flows of a scenario known to the scheduler or shaper of the direction. `range`
    /// returns the [`LinkPayload::flow`] of the packets of a flow by its number.
    pub(super) fn classify_flows(
        &mut self,
        scenario: &Scenario,
        range: &impl Fn(usize) -> Range<u64>,
    ) {
        self.assign_shares(scenario, range);
        if let Some(scheduler) = self.scheduler_mut() {
            let Scheduler { classifier, keys, .. } = scheduler;
            classifier.add_flows(keys, scenario, range);
        }
    }

    /// The counters of each class up to `now`; empty without a scheduler.
    pub(super) fn class_accounts(&self, now: Instant) -> Vec<LinkAccount> {
        let scheduler = self.impaired.as_ref().and_then(|impaired| impaired.scheduler.as_ref());
        scheduler.map_or_else(Vec::new, |scheduler| scheduler.accounts(now, self.inside.iter()))
    }

    /// The largest queue length of each class begins anew.
    pub(super) fn restart_class_maxima(&mut self) {
        if let Some(scheduler) = self.scheduler_mut() {
            scheduler.restart_maxima();
        }
    }

    fn scheduler_mut(&mut self) -> Option<&mut Scheduler<P>> {
        self.impaired.as_mut().and_then(|impaired| impaired.scheduler.as_deref_mut())
    }
}
