//! The shaper before the queue of a link: the hierarchical token bucket of Linux (`sch_htb`) with
//! one level of classes, as `shaper` of the scenario configures it.

use std::ops::Range;

use gridhaul_scenario::scenario::{self, Direction, Scenario};
use gridhaul_scenario::units::{BitRate, Instant};

use super::aqm::{StoredPacket, StoredPackets};
use super::scheduler::{DeficitRoundRobin, FirstPacket, TokenBucket};
use super::{DropReason, LinkDirection, LinkPayload};

/// The packets that wait in the shaper of a direction, by share. The last class has the packets of
/// flows without a share.
///
/// A class may send while its own bucket is not in debt, or else while the bucket of all classes is
/// not: it borrows. In both cases its limit must not be exceeded. Shares that need not borrow are
/// served first, then the other flows with their own rate, then shares that borrow, then the other
/// flows that borrow; shares of equal rank alternate by deficit round robin.
#[derive(Debug, Clone)]
pub(super) struct Shaper<P> {
    keys: scenario::Shaper,
    classes: Vec<ShapedClass<P>>,
    total: TokenBucket,
    /// The turns of the shares that need not borrow, and of those that do.
    turns: [DeficitRoundRobin; 2],
    /// The [`LinkPayload::flow`] of the packets of each flow with a share, and its class.
    flows: Vec<(Range<u64>, usize)>,
    /// When the next packet leaves; [`Instant::NEVER`] while no packet is stored.
    next_release: Instant,
}

#[derive(Debug, Clone)]
struct ShapedClass<P> {
    queue: StoredPackets<P>,
    /// Tokens of the guarantee, and of the limit.
    own: TokenBucket,
    limit: TokenBucket,
}

/// Whether a class borrows from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Own,
    Borrowed,
}

/// Bytes that a share sends before the next one has its turn, as `tc` is told on real kernels: one
/// packet.
const QUANTUM: u64 = 1_600;

/// Smallest rate of the flows without a share: `sch_htb` rejects a rate of zero.
const OTHER_RATE_MIN: u64 = 8;

impl<P: LinkPayload> Shaper<P> {
    /// An empty shaper; `None` for a direction without one.
    pub(super) fn new(direction: &Direction) -> Option<Self> {
        let keys = direction.active_shaper()?;
        let total = keys.rate.as_bits_per_sec();
        let guaranteed: u64 =
            keys.share.values().map(|share| share.guarantee.as_bits_per_sec()).sum();
        let other =
            BitRate::from_bits_per_sec(total.saturating_sub(guaranteed).max(OTHER_RATE_MIN));
        let rates =
            keys.share.values().map(|share| (share.guarantee, share.limit.unwrap_or(keys.rate)));
        let class = |(own, limit)| ShapedClass {
            queue: StoredPackets::drop_tail(keys.queue),
            own: TokenBucket::new(own, keys.burst),
            limit: TokenBucket::new(limit, keys.burst),
        };
        let turns = DeficitRoundRobin::new(vec![QUANTUM; keys.share.len()]);
        Some(Self {
            classes: rates.chain([(other, keys.rate)]).map(class).collect(),
            total: TokenBucket::new(keys.rate, keys.burst),
            turns: [turns.clone(), turns],
            flows: Vec::new(),
            next_release: Instant::NEVER,
            keys: keys.clone(),
        })
    }

    pub(super) fn packets(&self) -> u32 {
        self.classes.iter().map(|class| class.queue.packets()).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.queue.bytes()).sum()
    }

    /// Sum of the waits of all packets by `now`, in nanoseconds.
    pub(super) fn waited_by(&self, now: Instant) -> u64 {
        self.classes.iter().map(|class| class.queue.waited_by(now)).sum()
    }

    /// When the next packet leaves the shaper.
    pub(super) const fn next_release(&self) -> Instant {
        self.next_release
    }

    /// Enqueues a packet in its class.
    ///
    /// # Errors
    /// The queue of the class is full.
    pub(super) fn push(&mut self, now: Instant, packet: StoredPacket<P>) -> Result<(), DropReason> {
        let flow = packet.payload.flow();
        let share = self.flows.iter().find(|(range, _)| range.contains(&flow));
        let class = share.map_or(self.keys.share.len(), |(_, class)| *class);
        self.classes[class].queue.push(packet, true)?;
        if class < self.keys.share.len() {
            self.turns.iter_mut().for_each(|turns| turns.activate(class));
        }
        self.schedule_release(now);
        Ok(())
    }

    /// The packet that leaves at `now`, if there is one.
    pub(super) fn take(&mut self, now: Instant) -> Option<StoredPacket<P>> {
        let (class, level) = self.next_class(now)?;
        let packet = self.classes[class].queue.take(now)?;
        let ShapedClass { queue, own, limit } = &mut self.classes[class];
        limit.take(now, packet.bytes);
        self.total.take(now, packet.bytes);
        if level == Level::Own {
            own.take(now, packet.bytes);
        }
        if queue.packets() == 0 {
            self.turns.iter_mut().for_each(|turns| turns.deactivate(class));
        }
        self.schedule_release(now);
        Some(packet)
    }

    fn next_class(&mut self, now: Instant) -> Option<(usize, Level)> {
        let Self { classes, total, turns, keys, .. } = self;
        let other = keys.share.len();
        for (level, turns) in [Level::Own, Level::Borrowed].into_iter().zip(turns) {
            let permits = |class: &ShapedClass<P>| {
                let bucket = if level == Level::Own { &class.own } else { &*total };
                class.limit.debt_ends(now).max(bucket.debt_ends(now)) <= now
            };
            let share = turns.next(|class| match classes[class].queue.first_bytes() {
                None => FirstPacket::None,
                Some(bytes) if permits(&classes[class]) => FirstPacket::Ready(bytes),
                Some(_) => FirstPacket::Waits,
            });
            if let Some(share) = share {
                return Some((share, level));
            }
            let waits = classes.get(other).filter(|class| class.queue.packets() > 0);
            if waits.is_some_and(permits) {
                return Some((other, level));
            }
        }
        None
    }

    fn schedule_release(&mut self, now: Instant) {
        let total = self.total.debt_ends(now);
        let releases = self.classes.iter().filter(|class| class.queue.packets() > 0);
        let releases = releases
            .map(|class| class.limit.debt_ends(now).max(class.own.debt_ends(now).min(total)));
        self.next_release = releases.min().unwrap_or(Instant::NEVER);
    }
}

impl<P: LinkPayload> LinkDirection<P> {
    /// Offers a packet to the shaper of the direction.
    pub(super) fn handle_shaped(
        &mut self,
        now: Instant,
        packet: StoredPacket<P>,
    ) -> Result<(), DropReason> {
        if let Some(shaper) = self.shaper_mut() {
            shaper.push(now, packet)?;
        }
        self.dequeue_due(now);
        Ok(())
    }

    /// Passes the packets that leave the shaper by `now` to the queue of the link.
    pub(super) fn release_shaped(&mut self, now: Instant) {
        while let Some(shaper) = self.shaper_mut()
            && shaper.packets() > 0
            && shaper.next_release() <= now
        {
            let at = shaper.next_release();
            let Some(packet) = shaper.take(at) else { return };
            self.dequeue_stored(at);
            if let Err(reason) = self.enqueue(at, packet) {
                self.emit_dropped_packet(at, packet, reason);
            }
        }
    }

    /// Makes the flows of a scenario known to the shaper, if the direction has one.
    pub(super) fn assign_shares(
        &mut self,
        scenario: &Scenario,
        range: &impl Fn(usize) -> Range<u64>,
    ) {
        let Some(shaper) = self.shaper_mut() else { return };
        let numbers = shaper.keys.share.keys().map(|flow| scenario.flow.get_index_of(flow));
        let flows = numbers.enumerate().filter_map(|(class, flow)| Some((range(flow?), class)));
        shaper.flows = flows.collect();
    }

    fn shaper_mut(&mut self) -> Option<&mut Shaper<P>> {
        self.impaired.as_mut().and_then(|impaired| impaired.shaper.as_deref_mut())
    }
}
