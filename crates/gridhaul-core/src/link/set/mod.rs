//! The links of a network: each direction with its counters and its observer.

mod entry;
mod shared_media;

use std::borrow::Cow;
use std::ops::Range;

use gridhaul_scenario::scenario::{Diagnostic, Direction, Directions, Scenario};
use gridhaul_scenario::units::{BitRate, Instant};

use super::medium::Media;
use super::member_keys::{MemberStreams, keys_of_member};
use super::{DropReason, LinkAccount, LinkPayload, LinkRandomStreams};
use crate::random::RandomStreamName;

pub use entry::{LinkEntry, LinkObserver};

/// The directions of the links of a network, indexed from 0.
///
/// [`offer`](Self::offer) passes a packet to a direction, counts it, and notifies the observer of
/// the direction and the directions paired with it. When the direction is due, the caller takes
/// departing packets from the entry ([`LinkEntry::front`]). The caller schedules the deadlines: the
/// simulator in its event queue, others in [`TimedLinks`](super::TimedLinks).
///
/// A medium with contention has a deadline of its own. Its index follows those of the directions;
/// when it is due, the caller calls [`advance_medium`](Self::advance_medium).
#[derive(Debug, Clone)]
pub struct LinkSet<P, O = ()> {
    entries: Vec<LinkEntry<P, O>>,
    media: Media,
}

impl<P: LinkPayload, O: LinkObserver<P>> LinkSet<P, O> {
    /// Idle links: every direction of a scenario for each member of its group, in the order of
    /// `directions`. `observer` creates the observer of a direction from its name and member.
    ///
    /// # Errors
    /// A direction is paired with an unknown one, which validation of the scenario excludes, or the
    /// traces of the links have not been read.
    pub fn of_scenario(
        scenario: &Scenario,
        directions: &Directions,
        replication: u32,
        mut observer: impl FnMut(&str, u64, &Direction) -> O,
    ) -> Result<Self, Diagnostic> {
        let medium_random = |name: &str| RandomStreamName::new(scenario.seed, replication, name, 0);
        let count = directions.row_of().len();
        let (media, mut access) = Media::new(&directions.media(scenario), count, medium_random);
        let mut entries = Vec::with_capacity(count);
        let rows = directions.rows().iter().zip(Directions::keys(scenario)).enumerate();
        for (row, ((name, members), keys)) in rows {
            let keys = keys_with_files(directions, row, keys)?;
            let link = name.rsplit_once('.').map_or(name.as_str(), |(link, _)| link);
            let handover = scenario.link.get(link).and_then(|link| link.handover.as_ref());
            for member in 0..*members {
                let streams = |entity: &str| {
                    LinkRandomStreams::named(scenario.seed, replication, entity, member)
                };
                let random = streams(name);
                let of_member = MemberStreams { own: random, link: streams(link) };
                let drawn = keys_of_member(&keys, handover, of_member);
                let keys = drawn.as_ref().unwrap_or(&keys);
                let access = access.remove(&(entries.len() as u32)).unwrap_or_default();
                let observer = observer(name, member, keys);
                let mut entry = LinkEntry::with_access(keys, &access, random, observer);
                if let Some(trace) = directions.trace(row) {
                    entry.direction.follow(trace, keys, random);
                }
                entries.push(entry);
            }
        }
        for (entry, paired) in entries.iter_mut().zip(directions.paired(scenario)?) {
            // The packets of a direction are reported to the directions that are paired with it, as
            // to an observer.
            entry.is_observed |= !paired.is_empty();
            entry.paired = paired.into();
        }
        Ok(Self { entries, media })
    }

    /// Idle links, none of them paired, each direction with a medium of its own.
    pub fn of_entries(entries: impl IntoIterator<Item = LinkEntry<P, O>>) -> Self {
        Self { entries: entries.into_iter().collect(), media: Media::default() }
    }

    /// Number of directions.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no direction.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A direction by its index; `None` for the index of a medium.
    #[inline]
    pub fn direction_mut(&mut self, index: u32) -> Option<&mut LinkEntry<P, O>> {
        self.entries.get_mut(index as usize)
    }

    /// A direction by its index.
    ///
    /// # Panics
    /// If `link` is out of range.
    #[inline]
    #[must_use]
    pub fn entry(&self, link: u32) -> &LinkEntry<P, O> {
        &self.entries[link as usize]
    }

    /// A direction by its index.
    ///
    /// # Panics
    /// If `link` is out of range.
    #[inline]
    pub fn entry_mut(&mut self, link: u32) -> &mut LinkEntry<P, O> {
        &mut self.entries[link as usize]
    }

    /// All directions, in index order.
    pub fn iter(&self) -> std::slice::Iter<'_, LinkEntry<P, O>> {
        self.entries.iter()
    }

    /// All directions, in index order.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, LinkEntry<P, O>> {
        self.entries.iter_mut()
    }

    /// The counters of each direction up to `now`, and then those of the classes of each direction
    /// with a scheduler.
    pub fn accounts(&self, now: Instant) -> impl Iterator<Item = LinkAccount> {
        let directions = self.entries.iter();
        let directions = directions.map(move |entry| entry.account.at(now, &entry.direction));
        let classes = self.entries.iter();
        directions.chain(classes.flat_map(move |entry| entry.direction.class_accounts(now)))
    }

    /// The largest queue lengths of all directions and classes begin anew with the lengths at
    /// `now`: the measured time begins.
    pub fn restart_maxima(&mut self, now: Instant) {
        self.entries.iter_mut().for_each(|entry| entry.restart_maxima(now));
    }

    /// Makes the flows of a scenario known to the schedulers. `range` returns the
    /// [`LinkPayload::flow`] of the packets of a flow by its number; ranges are in the order of the
    /// flows. Packets in no range belong to the class of their code point.
    pub fn classify_flows(&mut self, scenario: &Scenario, range: impl Fn(usize) -> Range<u64>) {
        for entry in &mut self.entries {
            entry.direction.classify_flows(scenario, &range);
        }
    }

    /// Offers a packet of `bytes` to a direction; `packet` constructs the packet in place. If the
    /// deadline of the direction changes, `schedule` is called with its index and the new deadline;
    /// a packet queued after others does not change it. The same applies to a shared medium and to
    /// the directions that share it.
    ///
    /// # Errors
    /// The queue drops the packet, for the returned reason.
    ///
    /// # Panics
    /// If `link` is out of range.
    #[inline(always)]
    pub fn offer(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        packet: impl Fn() -> P,
        mut schedule: impl FnMut(u32, Instant),
    ) -> Result<(), DropReason> {
        let entry = &mut self.entries[link as usize];
        if entry.is_observed {
            return self.offer_observed(now, link, bytes, packet(), &mut schedule);
        }
        entry.account.offered += 1;
        // Most packets are queued after others and change no deadline: the caller then keeps its
        // event.
        let before = entry.direction.next_deadline();
        if let Err(reason) = entry.direction.handle_packet_with(now, bytes, packet) {
            entry.account.on_refused();
            return Err(reason);
        }
        entry.on_queued(before, |deadline| schedule(link, deadline));
        Ok(())
    }

    /// [`offer`](Self::offer) to a direction that is observed, paired or on a shared medium.
    #[cold]
    #[inline(never)]
    fn offer_observed(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        packet: P,
        schedule: &mut dyn FnMut(u32, Instant),
    ) -> Result<(), DropReason> {
        // Packets whose transmission began before this one arrives no longer occupy the queue.
        self.advance_medium_of(now, link, schedule);
        let entry = &mut self.entries[link as usize];
        entry.account.offered += 1;
        entry.observer.on_offered(now, &packet);
        let before = entry.direction.next_deadline();
        if let Err(reason) = entry.direction.handle_packet(now, bytes, packet) {
            entry.account.on_refused();
            return Err(reason);
        }
        entry.on_queued(before, |deadline| schedule(link, deadline));
        self.on_accepted(now, link, bytes, schedule);
        self.contend(now, link, schedule);
        Ok(())
    }

    fn on_accepted(
        &mut self,
        now: Instant,
        link: u32,
        bytes: u32,
        schedule: &mut dyn FnMut(u32, Instant),
    ) {
        let entry = &mut self.entries[link as usize];
        entry.observer.on_accepted(now, entry.direction.link_bytes(bytes));
        let paired = std::mem::take(&mut entry.paired);
        for &other in &paired {
            let direction = &mut self.entries[other as usize].direction;
            let before = direction.next_deadline();
            direction.note_paired_use(now);
            if direction.next_deadline() < before {
                schedule(other, direction.next_deadline());
            }
        }
        self.entries[link as usize].paired = paired;
    }
}

/// The keys of a row, with the quality in its file, and with the mean rate of its trace if it has
/// one: RED needs a rate.
fn keys_with_files<'a>(
    directions: &Directions,
    row: usize,
    keys: &'a Direction,
) -> Result<Cow<'a, Direction>, Diagnostic> {
    let not_read = |key: &str| {
        let key = format!("link.{}.{key}", directions.rows()[row].0);
        Diagnostic::new(key, "the file has not been read", "")
    };
    let mut found = Cow::Borrowed(keys);
    if keys.quality.as_ref().is_some_and(|quality| quality.file.is_some()) {
        let quality = directions.quality(row).ok_or_else(|| not_read("quality.file"))?;
        found.to_mut().quality = Some(quality.clone());
    }
    if keys.trace.is_some() {
        directions.trace(row).ok_or_else(|| not_read("trace"))?;
        // No opportunity may be in the measured time.
        found.to_mut().rate = directions.rates()[row].max(BitRate::from_bits_per_sec(1));
    }
    Ok(found)
}
