//! The path of packets between the two hosts: links in series, and impairments of single packets.

use gridhaul_core::link::{LinkEntry, LinkRandomStreams, LinkSet, TimedLinks};
use gridhaul_scenario::scenario::Direction;
use gridhaul_scenario::units::Instant;

use crate::case::{Case, PacketImpairment, Peer};

type ImpairedPacket<T> = (T, Option<PacketImpairment>);

/// The links of one direction, and the packets in transit.
pub(super) struct PacketPath<T: Copy> {
    links: TimedLinks<ImpairedPacket<T>>,
    /// Packets with an additional delay, and the times at which they arrive.
    delayed: Vec<(Instant, T)>,
}

/// The paths of a case: from the client, and from the server. A scripted peer has no path.
///
/// # Errors
/// A case with a path and a script, or with neither.
pub(super) fn packet_paths<T: Copy>(case: &Case, seed: u64) -> Result<[PacketPath<T>; 2], String> {
    let (forward, reverse) = match (&case.path, case.peer) {
        (Some(path), Peer::Stack) if path.reverse.is_empty() => {
            (&path.forward[..], &path.forward[..])
        }
        (Some(path), Peer::Stack) => (&path.forward[..], &path.reverse[..]),
        (None, Peer::Script) => (&[][..], &[][..]),
        _ => {
            return Err(format!("{}: expected either `path` or `peer = \"script\"`", case.name));
        }
    };
    Ok([PacketPath::new(forward, "forward", seed), PacketPath::new(reverse, "reverse", seed)])
}

impl<T: Copy> PacketPath<T> {
    /// `name` separates the random streams of the two directions.
    fn new(directions: &[Direction], name: &str, seed: u64) -> Self {
        let link = |(index, direction): (usize, &Direction)| {
            let random = LinkRandomStreams::named(seed, 0, &format!("{name}.{index}"), 0);
            LinkEntry::new(direction, random, ())
        };
        let links = LinkSet::of_entries(directions.iter().enumerate().map(link));
        Self { links: TimedLinks::new(links), delayed: Vec::new() }
    }

    /// Offers a packet of `bytes` bytes to the first link.
    pub(super) fn send(
        &mut self,
        now: Instant,
        packet: T,
        bytes: u32,
        impairment: Option<PacketImpairment>,
    ) {
        self.offer(0, now, (packet, impairment), bytes);
    }

    /// Packets that the queues have dropped on arrival.
    pub(super) fn queue_drops(&self) -> u64 {
        self.links.links.iter().map(|link| link.account.refused).sum()
    }

    fn offer(&mut self, link: u32, now: Instant, packet: ImpairedPacket<T>, bytes: u32) {
        let last = self.is_last(link);
        let impairment = packet.1;
        if last && impairment == Some(PacketImpairment::Lost) {
            return;
        }
        let copies = if last && impairment == Some(PacketImpairment::Duplicated) { 2 } else { 1 };
        for _ in 0..copies {
            // The account of the link counts the packets that its queue drops.
            let _ = self.links.offer(now, link, bytes, packet);
        }
    }

    fn is_last(&self, link: u32) -> bool {
        link as usize + 1 == self.links.links.len()
    }

    /// The time at which [`Self::arrived`] must be called next.
    pub(super) fn next_deadline(&self) -> Instant {
        let delayed = self.delayed.iter().map(|(at, _)| *at);
        delayed.fold(self.links.next_deadline(), Instant::min)
    }

    /// The packets that arrive at the other host now.
    pub(super) fn arrived(&mut self, now: Instant) -> Vec<T> {
        let mut arrived = Vec::new();
        while let Some((link, transit)) = self.links.poll(now) {
            let (packet, impairment) = transit.payload;
            if !transit.outcome.arrives() || transit.outcome.is_corrupted() {
                continue;
            }
            if !self.is_last(link) {
                self.offer(link + 1, now, transit.payload, transit.bytes);
            } else if let Some(PacketImpairment::Delayed(delay)) = impairment {
                self.delayed.push((now + delay, packet));
            } else {
                arrived.push(packet);
            }
        }
        let due = self.delayed.extract_if(.., |(at, _)| *at <= now);
        arrived.extend(due.map(|(_, packet)| packet));
        arrived
    }
}
