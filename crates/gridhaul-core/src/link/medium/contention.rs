//! Contention for a medium: carrier sense multiple access with collision avoidance.

use std::collections::VecDeque;

use gridhaul_scenario::scenario::{ContentionStage, CsmaCaParameters};
use gridhaul_scenario::units::{Duration, Instant};

use crate::random::{RandomStream, RandomStreamName};

/// A medium with contention as a state machine.
///
/// The contention is that of IEEE 1901 as described by Vlachou et al. 2014, "Performance analysis
/// of MAC for power-line communications". A station with a packet draws a number of slots from the
/// contention window of its stage. Each idle slot reduces the number by one; at zero the station
/// transmits. When another station transmits first, the number and the deferral counter are reduced
/// by one; a deferral counter of zero leads to the next stage instead, with a new number. A
/// collision leads to the next stage as well, and a success to the first one. With deferral
/// counters of zero this is the contention of G3-PLC (ITU-T G.9903): a station that finds the
/// medium occupied draws again from a doubled window.
///
/// Call order: [`on_packet`](Self::on_packet) with values of `now` that never decrease; at
/// [`next_deadline`](Self::next_deadline), [`begin`](Self::begin) and then
/// [`on_transmitted`](Self::on_transmitted).
#[derive(Debug, Clone)]
pub(in crate::link) struct Contention {
    parameters: CsmaCaParameters,
    stations: Vec<Station>,
    /// Stations with packets.
    contending: Vec<u32>,
    /// Start of the first slot of the present or next contention.
    first_slot: Instant,
    /// When the next contention can begin: the medium is occupied until then.
    free_at: Instant,
    deadline: Instant,
}

/// The packets of a node for the medium, and the contention for the first of them.
#[derive(Debug, Clone)]
struct Station {
    /// Direction of each packet, in order of arrival.
    waiting: VecDeque<u32>,
    stage: usize,
    /// Collisions of the first packet.
    collisions: u32,
    /// Number of the slot in which the station transmits, unless another one is first.
    slot: u64,
    /// Number of the slot with which the station joined the present contention.
    joined: u64,
    deferral: u32,
    random: RandomStream,
}

/// The result of a transmission for one of its stations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::link) enum AttemptResult {
    /// The packet is transmitted.
    Success,
    /// The packet collided and stays in the queue.
    Collision,
    /// The packet collided for the last time and is lost.
    GivenUp,
}

impl Contention {
    /// An idle medium.
    pub(super) fn new(
        parameters: CsmaCaParameters,
        stations: usize,
        random: RandomStreamName,
    ) -> Self {
        let station = |number| Station {
            waiting: VecDeque::new(),
            stage: 0,
            collisions: 0,
            slot: 0,
            joined: 0,
            deferral: 0,
            random: random.numbered_stream("backoff", number),
        };
        Self {
            stations: (0..stations as u64).map(station).collect(),
            contending: Vec::new(),
            first_slot: Instant::ZERO + parameters.priority_resolution,
            free_at: Instant::ZERO,
            deadline: Instant::NEVER,
            parameters,
        }
    }

    /// When a station begins to transmit; [`Instant::NEVER`] without packets.
    pub(in crate::link) const fn next_deadline(&self) -> Instant {
        self.deadline
    }

    /// Time from the start of a transmission to the first bit of the packet.
    pub(in crate::link) const fn preamble(&self) -> Duration {
        self.parameters.preamble
    }

    /// A direction of a station has a further packet.
    pub(in crate::link) fn on_packet(&mut self, now: Instant, station: u32, direction: u32) {
        let sender = &mut self.stations[station as usize];
        sender.waiting.push_back(direction);
        if sender.waiting.len() > 1 {
            return;
        }
        if self.contending.is_empty() && self.free_at <= now {
            self.first_slot = now + self.parameters.priority_resolution;
        }
        // A contention that has begun is joined with the next slot.
        let joined = match now <= self.first_slot {
            true => 0,
            false => {
                let elapsed = now.since(self.first_slot).as_nanos();
                elapsed.div_ceil(self.parameters.slot.as_nanos().max(1))
            }
        };
        sender.collisions = 0;
        sender.enter(0, joined, &self.parameters.stages);
        self.contending.push(station);
        self.update_deadline();
    }

    /// The stations that begin to transmit at the deadline, at least one, with the direction of
    /// the packet of each. The others have found the medium occupied.
    pub(in crate::link) fn begin(&mut self) -> Vec<(u32, u32)> {
        let since = self.deadline.since(self.first_slot).as_nanos();
        let slot = since / self.parameters.slot.as_nanos().max(1);
        let mut winners = Vec::new();
        for &number in &self.contending {
            let station = &mut self.stations[number as usize];
            if station.slot == slot {
                winners.push((number, station.waiting[0]));
            } else {
                station.on_occupied(slot, &self.parameters.stages);
            }
        }
        // No station transmits before the present transmission is reported.
        self.deadline = Instant::NEVER;
        winners
    }

    /// The transmission of the stations that [`begin`](Self::begin) returned ends with the last
    /// bit of the longest packet at `end`.
    pub(in crate::link) fn on_transmitted(
        &mut self,
        end: Instant,
        results: impl Iterator<Item = (u32, AttemptResult)>,
    ) {
        for (number, result) in results {
            let station = &mut self.stations[number as usize];
            if result == AttemptResult::Collision {
                station.collisions += 1;
                station.enter(station.stage + 1, 0, &self.parameters.stages);
                continue;
            }
            station.waiting.pop_front();
            station.collisions = 0;
            station.enter(0, 0, &self.parameters.stages);
        }
        let stations = &self.stations;
        self.contending.retain(|number| !stations[*number as usize].waiting.is_empty());
        self.free_at = end + self.parameters.response + self.parameters.interframe;
        self.first_slot = self.free_at + self.parameters.priority_resolution;
        self.update_deadline();
    }

    /// The result of a collision for a station.
    pub(in crate::link) fn after_collision(&self, station: u32) -> AttemptResult {
        let collisions = self.stations[station as usize].collisions + 1;
        match self.parameters.attempts {
            Some(attempts) if collisions >= attempts => AttemptResult::GivenUp,
            _ => AttemptResult::Collision,
        }
    }

    fn update_deadline(&mut self) {
        let slots = self.contending.iter().map(|number| self.stations[*number as usize].slot);
        self.deadline = match slots.min() {
            Some(slot) => self.first_slot + self.parameters.slot * slot,
            None => Instant::NEVER,
        };
    }
}

impl Station {
    /// Begins a stage, the last one again after the last one, with the slot `joined`.
    fn enter(&mut self, stage: usize, joined: u64, stages: &[ContentionStage]) {
        self.stage = stage.min(stages.len() - 1);
        let ContentionStage { window, deferral } = stages[self.stage];
        self.deferral = deferral;
        self.joined = joined;
        self.slot = joined + self.random.below(u64::from(window));
    }

    /// Another station transmits in this slot, before this station.
    fn on_occupied(&mut self, slot: u64, stages: &[ContentionStage]) {
        if self.deferral == 0 {
            self.enter(self.stage + 1, 0, stages);
            return;
        }
        self.deferral -= 1;
        // The idle slots since the station joined, and the occupied one.
        let elapsed = slot.saturating_sub(self.joined) + 1;
        self.slot = (self.slot - self.joined) - elapsed;
        self.joined = 0;
    }
}
