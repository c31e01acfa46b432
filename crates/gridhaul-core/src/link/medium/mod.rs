//! Media that several directions share.
//!
//! Time slots are known in advance: they are pauses of the transmitter of each direction
//! ([`TimeSlots`]), and the direction needs no other state. Contention depends on the packets of
//! all directions of a medium: their packets wait in the directions, and a [`Contention`] decides
//! which of them is transmitted when.

mod contention;
mod time_slots;

use std::collections::BTreeMap;

use gridhaul_scenario::scenario::SharedMedium;
use gridhaul_scenario::units::Instant;

use crate::random::RandomStreamName;
pub(super) use contention::{AttemptResult, Contention};
pub(super) use time_slots::TimeSlots;

/// Access of a direction to its medium.
#[derive(Debug, Clone, Default)]
pub(super) enum MediumAccess {
    /// The direction has a medium of its own.
    #[default]
    Own,
    /// The direction transmits in its time slots.
    TimeSlots(TimeSlots),
    /// The direction contends for each packet.
    Contention,
}

/// The media of a network with contention, and the place of each direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Media {
    media: Vec<Contention>,
    /// Medium and station of each direction; empty without contention.
    places: Vec<Option<Place>>,
}

/// A station of a medium.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) medium: u32,
    pub(super) station: u32,
}

impl Media {
    /// The media of a scenario for `directions` directions, and the access of those that share one.
    pub(super) fn new(
        shared: &[SharedMedium],
        directions: usize,
        random: impl Fn(&str) -> RandomStreamName,
    ) -> (Self, BTreeMap<u32, MediumAccess>) {
        let mut media = Self::default();
        let mut access = BTreeMap::new();
        for medium in shared {
            match medium {
                SharedMedium::Tdma { slot, guard, slots } => {
                    for (direction, slots) in TimeSlots::of_frame(*slot, *guard, slots) {
                        access.insert(direction, MediumAccess::TimeSlots(slots));
                    }
                }
                SharedMedium::CsmaCa { name, parameters, stations } => {
                    media.places.resize(directions, None);
                    let number = media.media.len() as u32;
                    for (station, directions) in (0..).zip(stations) {
                        for &direction in directions {
                            access.insert(direction, MediumAccess::Contention);
                            media.places[direction as usize] =
                                Some(Place { medium: number, station });
                        }
                    }
                    let random = random(&format!("medium.{name}"));
                    media.media.push(Contention::new(parameters.clone(), stations.len(), random));
                }
            }
        }
        (media, access)
    }

    /// Number of media with contention.
    pub(super) const fn len(&self) -> usize {
        self.media.len()
    }

    /// The station of a direction that contends.
    pub(super) fn place(&self, direction: u32) -> Option<Place> {
        *self.places.get(direction as usize)?
    }

    /// A medium by its index.
    pub(super) fn medium_mut(&mut self, medium: u32) -> &mut Contention {
        &mut self.media[medium as usize]
    }

    /// When a medium decides next.
    pub(super) fn next_deadline(&self, medium: u32) -> Instant {
        self.media[medium as usize].next_deadline()
    }
}
