//! The way of packets from one end to the other: links in a row, and what befalls single packets.

use gridhaul_core::link::{Fate as Passed, LinkChance, LinkDirection};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use crate::case::{Case, Fate, Peer};

type Parcel<T> = (T, Option<Fate>);

/// One direction, and what it carries.
pub(super) struct Route<T: Copy> {
    links: Vec<LinkDirection<Parcel<T>>>,
    late: Vec<(Instant, T)>,
    /// Packets that the last link's queue had no room for.
    pub refused: u64,
}

/// The routes of a case, from the client and from the server. Where the peer is a script there is
/// nothing on the way.
///
/// # Errors
/// A case with a path and a script, or with neither.
pub(super) fn routes<T: Copy>(case: &Case, seed: u64) -> Result<[Route<T>; 2], String> {
    let (forward, backward) = match (&case.path, case.peer) {
        (Some(path), Peer::Stack) if path.backward.is_empty() => {
            (&path.forward[..], &path.forward[..])
        }
        (Some(path), Peer::Stack) => (&path.forward[..], &path.backward[..]),
        (None, Peer::Script) => (&[][..], &[][..]),
        _ => return Err(format!("{}: a path, or a script, not both", case.name)),
    };
    Ok([Route::new(forward, "forward", seed), Route::new(backward, "backward", seed)])
}

impl<T: Copy> Route<T> {
    /// `name` tells the streams of chance of the two directions apart.
    fn new(directions: &[Direction], name: &str, seed: u64) -> Self {
        let link = |(index, direction): (usize, &Direction)| {
            let chance = LinkChance::named(seed, 0, &format!("{name}.{index}"), 0);
            LinkDirection::new(direction, chance)
        };
        Self {
            links: directions.iter().enumerate().map(link).collect(),
            late: Vec::new(),
            refused: 0,
        }
    }

    /// Hands in a packet of so many bytes.
    pub(super) fn send(&mut self, now: Instant, packet: T, bytes: u32, fate: Option<Fate>) {
        self.offer(0, now, (packet, fate), bytes);
    }

    fn offer(&mut self, index: usize, now: Instant, parcel: Parcel<T>, bytes: u32) {
        let last = index + 1 == self.links.len();
        let fate = parcel.1;
        if last && fate == Some(Fate::Lost) {
            return;
        }
        let copies = if last && fate == Some(Fate::Twice) { 2 } else { 1 };
        for _ in 0..copies {
            let refused = self.links[index].handle_packet(now, bytes, parcel);
            self.refused += u64::from(refused.is_err());
        }
    }

    /// When [`Self::arrived`] is wanted.
    pub(super) fn next_deadline(&self) -> Instant {
        let links = self.links.iter().map(LinkDirection::next_deadline);
        links.chain(self.late.iter().map(|late| late.0)).min().unwrap_or(Instant::NEVER)
    }

    /// What arrives at the other end now.
    pub(super) fn arrived(&mut self, now: Instant) -> Vec<T> {
        let mut arrived = Vec::new();
        for index in 0..self.links.len() {
            while let Some(passage) = self.links[index].poll_output(now) {
                let (packet, fate) = passage.payload;
                if matches!(passage.fate, Passed::Lost(_)) || passage.fate.is_damaged() {
                    continue;
                }
                if index + 1 < self.links.len() {
                    self.offer(index + 1, now, passage.payload, passage.bytes);
                } else if let Some(Fate::Late(by)) = fate {
                    self.late.push((now + by, packet));
                } else {
                    arrived.push(packet);
                }
            }
        }
        let due = self.late.extract_if(.., |late| late.0 <= now);
        arrived.extend(due.map(|late| late.1));
        arrived
    }
}
