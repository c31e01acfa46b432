//! The radio interface of a mobile network: blocks that are repeated until they arrive.

use gridhaul_scenario::scenario::{self, RadioParameters};
use gridhaul_scenario::units::{Duration, Instant};

use super::LinkRandomStreams;
use super::outage::Outages;
use crate::random::{RandomStream, Threshold};

/// Blocks and grants of a direction.
#[derive(Debug, Clone)]
pub(super) struct Radio {
    keys: RadioParameters,
    block_error: Threshold,
    repetition_error: Threshold,
    /// Time of the first scheduling request, at the beginning of a slot.
    phase: Duration,
    /// The latest block, which the next packet may share.
    latest: Option<Block>,
    errors: RandomStream,
}

/// A block and its fate.
#[derive(Debug, Clone, Copy)]
struct Block {
    /// Number of its slot, or of that of its rest.
    slot: u64,
    /// Transmissions after the first one.
    repetitions: u32,
    lost: bool,
}

/// The way of a packet through its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Carried {
    /// When all of its blocks have arrived.
    pub(super) received: Instant,
    /// Whether one of them has not.
    pub(super) lost: bool,
    /// Time of the transmitter for repetitions of blocks that no earlier packet has.
    pub(super) repetitions: Duration,
}

impl Radio {
    pub(super) fn new(keys: &scenario::Radio, random: LinkRandomStreams) -> Self {
        let keys = keys.parameters();
        let slots = keys.request_every.unwrap_or(keys.slot).as_nanos() / keys.slot.as_nanos();
        let phase = keys.slot * random.stream("scheduling requests").below(slots.max(1));
        Self {
            block_error: keys.block_error.into(),
            repetition_error: keys.repetition_error.into(),
            phase,
            latest: None,
            errors: random.stream("blocks"),
            keys,
        }
    }

    /// The earliest transmission of a packet that finds the direction idle at `now`.
    pub(super) fn start(&self, now: Instant) -> Instant {
        let Some(every) = self.keys.request_every else { return self.start_of_slot(now) };
        let first = Instant::ZERO + self.phase;
        let periods = now.since(first).as_nanos().div_ceil(every.as_nanos());
        self.start_of_slot(first + every * periods + self.keys.grant_delay)
    }

    /// The beginning of the slot that follows `at`, or `at` if a slot begins then.
    pub(super) fn start_of_slot(&self, at: Instant) -> Instant {
        if at == Instant::NEVER {
            return at;
        }
        let slots = at.since(Instant::ZERO).as_nanos().div_ceil(self.keys.slot.as_nanos());
        Instant::ZERO + self.keys.slot * slots
    }

    /// Carries a packet that is in transmission from `started` to `sent`, in the slots that no
    /// outage pauses. Calls must be in the order of transmissions.
    pub(super) fn carry(&mut self, outages: &Outages, started: Instant, sent: Instant) -> Carried {
        let mut carried = Carried { received: sent, lost: false, repetitions: Duration::ZERO };
        // A transmission that never ends is not delivered anyway.
        if sent == Instant::NEVER {
            return carried;
        }
        let mut at = started;
        loop {
            let slot = at.since(Instant::ZERO).as_nanos() / self.keys.slot.as_nanos();
            let end = Instant::ZERO + self.keys.slot * (slot + 1);
            let block = match self.latest {
                Some(latest) if latest.slot == slot => latest,
                _ => {
                    let block = self.transmit(slot);
                    carried.repetitions += self.keys.slot * u64::from(block.repetitions);
                    block
                }
            };
            let delay = self.keys.round_trip * u64::from(block.repetitions);
            carried.received = carried.received.max(end + delay);
            carried.lost |= block.lost;
            at = outages.release(end);
            if at >= sent {
                break;
            }
        }
        // The rest of the latest block follows the repetitions.
        if let Some(latest) = &mut self.latest {
            latest.slot += carried.repetitions.as_nanos() / self.keys.slot.as_nanos();
        }
        carried
    }

    /// Transmits a new block until it arrives, or for the last time.
    fn transmit(&mut self, slot: u64) -> Block {
        let mut failed = self.errors.occurs(self.block_error);
        let mut repetitions = 0;
        while failed && repetitions + 1 < self.keys.transmissions {
            repetitions += 1;
            failed = self.errors.occurs(self.repetition_error);
        }
        let block = Block { slot, repetitions, lost: failed };
        self.latest = Some(block);
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gridhaul_scenario::scenario::RadioStandard;
    use gridhaul_scenario::units::Probability;

    fn keys(error: f64, transmissions: u32) -> scenario::Radio {
        scenario::Radio {
            standard: RadioStandard::Lte,
            slot: None,
            block_error: Probability::new(error),
            repetition_error: None,
            round_trip: None,
            transmissions: Some(transmissions),
            request_every: None,
            grant_delay: None,
        }
    }

    fn radio(keys: &scenario::Radio) -> Radio {
        Radio::new(keys, LinkRandomStreams::named(3, 0, "cell.forward", 0))
    }

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn a_packet_arrives_with_the_end_of_its_last_block() {
        let mut radio = radio(&keys(0.0, 5));
        // Within a slot, two packets in one slot, over three slots, and up to the end of a slot.
        let times = [(2_000, 2_200), (2_200, 2_300), (2_300, 4_100), (4_100, 5_000)];
        let received = times.map(|(started, sent)| {
            radio.carry(&Outages::default(), at(started), at(sent)).received
        });
        assert_eq!(received, [3_000, 3_000, 5_000, 5_000].map(at));
    }

    #[test]
    fn a_block_that_always_fails_is_lost_after_all_transmissions() {
        let mut radio = radio(&keys(1.0, 4));
        let carried = radio.carry(&Outages::default(), at(0), at(1_500));
        // Two blocks with three repetitions each, the second one after 3 * 8 ms.
        let repetitions = Duration::from_millis(6);
        assert_eq!(carried, Carried { received: at(26_000), lost: true, repetitions });
        // Another packet in the rest of the second block shares its fate, and costs nothing.
        let carried = radio.carry(&Outages::default(), at(7_500), at(7_600));
        let repetitions = Duration::ZERO;
        assert_eq!(carried, Carried { received: at(32_000), lost: true, repetitions });
    }

    #[test]
    fn delays_are_steps_of_the_round_trip_with_the_probabilities_of_the_errors() {
        let repetition_error = Probability::new(0.25);
        let mut radio = radio(&scenario::Radio { repetition_error, ..keys(0.4, 3) });
        let (count, mut steps) = (40_000, [0_u32; 4]);
        let mut end = Instant::ZERO;
        for _ in 0..count {
            let started = end;
            end += Duration::from_millis(1);
            let carried = radio.carry(&Outages::default(), started, end);
            let step = carried.received.since(end).as_nanos() / 8_000_000;
            end += carried.repetitions;
            steps[if carried.lost { 3 } else { step as usize }] += 1;
        }
        // 0.6; 0.4 * 0.75; 0.4 * 0.25 * 0.75; and 0.4 * 0.25 * 0.25 are lost.
        for (found, expected) in steps.into_iter().zip([0.6, 0.3, 0.075, 0.025]) {
            let n = f64::from(count);
            let deviation = (n * expected * (1.0 - expected)).sqrt();
            assert!((f64::from(found) - n * expected).abs() < 4.0 * deviation, "{steps:?}");
        }
    }

    #[test]
    fn an_idle_uplink_waits_for_a_request_and_its_grant() {
        let request_every = Some(Duration::from_millis(10));
        let mut radio = radio(&scenario::Radio { request_every, ..keys(0.1, 5) });
        radio.phase = Duration::from_millis(3);
        let starts = [0, 3_000, 3_001, 12_500].map(|micros| radio.start(at(micros)));
        assert_eq!(starts, [11_000, 11_000, 21_000, 21_000].map(at));
        radio.keys.request_every = None;
        let starts = [0, 3_000, 3_001].map(|micros| radio.start(at(micros)));
        assert_eq!(starts, [0, 3_000, 4_000].map(at));
    }

    #[test]
    fn slots_within_a_pause_carry_nothing() {
        use gridhaul_scenario::scenario::{Outage, OutageMode};
        let (start, length) = (Duration::from_millis(1), Duration::from_secs(3_600));
        let pause = Outage { start, length, every: None, mode: OutageMode::Hold };
        let mut radio = radio(&keys(1.0, 2));
        let end = 3_600_001_500;
        let carried = radio.carry(&Outages::new(&[pause]), at(500), at(end));
        // One block before the pause and one after it.
        assert_eq!(carried.repetitions, Duration::from_millis(2));
        assert_eq!(carried.received, at(3_600_002_000 + 8_000));
    }
}
