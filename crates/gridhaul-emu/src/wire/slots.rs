//! The directions of all links, each with what is counted of it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use gridhaul_core::link::{LinkAccount, LinkChance, LinkDirection};
use gridhaul_scenario::scenario::{Directions, Scenario};
use gridhaul_scenario::units::Instant;

use super::frames::Frame;
use super::tap::Tap;

/// One direction of a link.
#[derive(Debug)]
pub(crate) struct Slot {
    pub link: LinkDirection<Frame>,
    pub account: LinkAccount,
    /// Directions whose latency depends on whether this one is used.
    pub observers: Vec<u32>,
    /// The frame that left last. A second copy of it may come directly behind.
    pub last_left: Option<u32>,
    /// Writes its packets down.
    pub tap: Option<Tap>,
}

/// All of them, and when they are due.
#[derive(Debug)]
pub(crate) struct Slots {
    pub all: Vec<Slot>,
    /// May name a slot again that has moved on: what is not due is passed over.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
}

impl Slots {
    pub(crate) fn new(
        scenario: &Scenario,
        directions: &Directions,
        (repeat, record): (u32, bool),
    ) -> Result<Self, String> {
        let mut all = Vec::with_capacity(directions.row_of().len());
        for ((name, members), keys) in directions.rows().iter().zip(Directions::keys(scenario)) {
            let tapped = record && scenario.record.captures(name);
            for member in 0..*members {
                let chance = LinkChance::named(scenario.seed, repeat, name, member);
                all.push(Slot {
                    link: LinkDirection::new(keys, chance),
                    account: LinkAccount::of(keys),
                    observers: Vec::new(),
                    last_left: None,
                    tap: (tapped && member == 0).then(|| Tap::new(name)),
                });
            }
        }
        for (slot, observers) in all.iter_mut().zip(directions.observers(scenario)?) {
            slot.observers = observers;
        }
        Ok(Self { all, due: BinaryHeap::new() })
    }

    /// Hands a packet to a direction. False where its queue drops it.
    pub(crate) fn offer(&mut self, now: Instant, number: u32, bytes: u32, frame: Frame) -> bool {
        let slot = &mut self.all[number as usize];
        slot.account.offered += 1;
        if slot.link.handle_packet(now, bytes, frame).is_err() {
            slot.account.dropped_queue += 1;
            slot.account.refused += 1;
            return false;
        }
        slot.account.queue_max = slot.account.queue_max.max(slot.link.queued_at_last());
        self.schedule(number);
        let observers = std::mem::take(&mut self.all[number as usize].observers);
        for &observer in &observers {
            self.all[observer as usize].link.note_paired_use(now);
        }
        self.all[number as usize].observers = observers;
        true
    }

    /// Notes when a direction is due next.
    pub(crate) fn schedule(&mut self, number: u32) {
        let deadline = self.all[number as usize].link.next_deadline();
        if deadline != Instant::NEVER {
            self.due.push(Reverse((deadline, number)));
        }
    }

    /// A direction that is due by `now`, and since when.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<u32> {
        while let Some(&Reverse((deadline, number))) = self.due.peek() {
            if deadline > now {
                return None;
            }
            self.due.pop();
            if self.all[number as usize].link.next_deadline() <= now {
                return Some(number);
            }
        }
        None
    }

    /// When something is due next.
    pub(crate) fn next_deadline(&self) -> Instant {
        self.due.peek().map_or(Instant::NEVER, |Reverse((deadline, _))| *deadline)
    }

    /// What was counted up to `now`.
    pub(crate) fn accounts(&self, now: Instant) -> Vec<LinkAccount> {
        self.all.iter().map(|slot| slot.account.at(now, &slot.link)).collect()
    }
}
