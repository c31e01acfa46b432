//! Transmissions on the media with contention that directions of a set share.

use gridhaul_scenario::units::Instant;

use super::{LinkObserver, LinkSet};
use crate::link::LinkPayload;
use crate::link::medium::AttemptResult;

impl<P: LinkPayload, O: LinkObserver<P>> LinkSet<P, O> {
    /// Number of media with contention, whose indices follow those of the directions.
    #[must_use]
    pub const fn media(&self) -> usize {
        self.media.len()
    }

    /// Transmits the packets whose contention for a medium is over by `now`. `schedule` is called
    /// with the new deadlines of their directions and of the medium.
    ///
    /// # Panics
    /// If `index` is not that of a medium.
    pub fn advance_medium(
        &mut self,
        now: Instant,
        index: u32,
        schedule: &mut dyn FnMut(u32, Instant),
    ) {
        let medium = index - self.entries.len() as u32;
        // `NEVER` is no deadline, even for a caller who waits for ever.
        while self.media.next_deadline(medium) <= now
            && self.media.next_deadline(medium) != Instant::NEVER
        {
            self.transmit_on(medium, schedule);
        }
        schedule(index, self.media.next_deadline(medium));
    }

    /// Advances the medium of a direction, if it has one with contention.
    pub(super) fn advance_medium_of(
        &mut self,
        now: Instant,
        link: u32,
        schedule: &mut dyn FnMut(u32, Instant),
    ) {
        if let Some(place) = self.media.place(link) {
            self.advance_medium(now, self.entries.len() as u32 + place.medium, schedule);
        }
    }

    /// The station of a direction contends for a packet that the queue has accepted, if the
    /// direction has a medium with contention.
    pub(super) fn contend(
        &mut self,
        now: Instant,
        link: u32,
        schedule: &mut dyn FnMut(u32, Instant),
    ) {
        let Some(place) = self.media.place(link) else { return };
        let medium = self.media.medium_mut(place.medium);
        medium.on_packet(now, place.station, link);
        schedule(self.entries.len() as u32 + place.medium, medium.next_deadline());
    }

    /// The stations of a medium whose slot has come transmit; several of them collide.
    fn transmit_on(&mut self, medium: u32, schedule: &mut dyn FnMut(u32, Instant)) {
        let contention = self.media.medium_mut(medium);
        let started = contention.next_deadline();
        let first_bit = started + contention.preamble();
        let winners = contention.begin();
        let collides = winners.len() > 1;
        let (mut end, mut results) = (first_bit, Vec::with_capacity(winners.len()));
        for (station, direction) in winners {
            let result = match collides {
                true => contention.after_collision(station),
                false => AttemptResult::Success,
            };
            let entry = &mut self.entries[direction as usize];
            if collides {
                entry.account.on_collision();
            }
            let sent = entry.direction.end_of_waiting(first_bit).unwrap_or(first_bit);
            end = end.max(sent);
            if result != AttemptResult::Collision {
                entry.direction.transmit_waiting(started, sent, collides);
                schedule(direction, entry.direction.next_deadline());
            }
            results.push((station, result));
        }
        contention.on_transmitted(end, results.into_iter());
    }
}
