//! The way of packets from one end to the other: links in a row, and what befalls single packets.

use gridhaul_core::link::{LinkEntry, LinkRandomStreams, LinkSet, TimedLinks};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use crate::case::{Case, Fate, Peer};

type Parcel<T> = (T, Option<Fate>);

/// One direction, and what it carries.
pub(super) struct Route<T: Copy> {
    links: TimedLinks<Parcel<T>>,
    late: Vec<(Instant, T)>,
}

/// The routes of a case, from the client and from the server. Where the peer is a script there is
/// nothing on the way.
///
/// # Errors
/// A case with a path and a script, or with neither.
pub(super) fn routes<T: Copy>(case: &Case, seed: u64) -> Result<[Route<T>; 2], String> {
    let (forward, reverse) = match (&case.path, case.peer) {
        (Some(path), Peer::Stack) if path.reverse.is_empty() => {
            (&path.forward[..], &path.forward[..])
        }
        (Some(path), Peer::Stack) => (&path.forward[..], &path.reverse[..]),
        (None, Peer::Script) => (&[][..], &[][..]),
        _ => return Err(format!("{}: a path, or a script, not both", case.name)),
    };
    Ok([Route::new(forward, "forward", seed), Route::new(reverse, "reverse", seed)])
}

impl<T: Copy> Route<T> {
    /// `name` tells the streams of chance of the two directions apart.
    fn new(directions: &[Direction], name: &str, seed: u64) -> Self {
        let link = |(index, direction): (usize, &Direction)| {
            let chance = LinkRandomStreams::named(seed, 0, &format!("{name}.{index}"), 0);
            LinkEntry::new(direction, chance, ())
        };
        let links = LinkSet::of_entries(directions.iter().enumerate().map(link));
        Self { links: TimedLinks::new(links), late: Vec::new() }
    }

    /// Hands in a packet of so many bytes.
    pub(super) fn send(&mut self, now: Instant, packet: T, bytes: u32, fate: Option<Fate>) {
        self.offer(0, now, (packet, fate), bytes);
    }

    /// Packets that the queues have dropped on arrival.
    pub(super) fn refused(&self) -> u64 {
        self.links.links.iter().map(|link| link.account.refused).sum()
    }

    fn offer(&mut self, link: u32, now: Instant, parcel: Parcel<T>, bytes: u32) {
        let last = self.is_last(link);
        let fate = parcel.1;
        if last && fate == Some(Fate::Lost) {
            return;
        }
        let copies = if last && fate == Some(Fate::Twice) { 2 } else { 1 };
        for _ in 0..copies {
            // The account of the link counts what its queue drops.
            let _ = self.links.offer(now, link, bytes, parcel);
        }
    }

    fn is_last(&self, link: u32) -> bool {
        link as usize + 1 == self.links.links.len()
    }

    /// When [`Self::arrived`] is wanted.
    pub(super) fn next_deadline(&self) -> Instant {
        let late = self.late.iter().map(|late| late.0);
        late.fold(self.links.next_deadline(), Instant::min)
    }

    /// What arrives at the other end now.
    pub(super) fn arrived(&mut self, now: Instant) -> Vec<T> {
        let mut arrived = Vec::new();
        while let Some((link, passage)) = self.links.poll(now) {
            let (packet, fate) = passage.payload;
            if !passage.outcome.arrives() || passage.outcome.is_corrupted() {
                continue;
            }
            if !self.is_last(link) {
                self.offer(link + 1, now, passage.payload, passage.bytes);
            } else if let Some(Fate::Late(by)) = fate {
                self.late.push((now + by, packet));
            } else {
                arrived.push(packet);
            }
        }
        let due = self.late.extract_if(.., |late| late.0 <= now);
        arrived.extend(due.map(|late| late.1));
        arrived
    }
}
