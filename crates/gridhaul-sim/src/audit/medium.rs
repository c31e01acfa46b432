//! Checks that no more is transmitted on a shared medium than its time permits.

use std::collections::BTreeSet;

use gridhaul_scenario::scenario::SharedMedium;
use gridhaul_scenario::units::{Duration, Instant};

use super::Violation;

/// Use of a shared medium by a direction, at least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct MediumUse {
    /// Transmission time of all packets at the largest rate of the direction.
    pub(super) time: Duration,
    pub(super) packets: u64,
}

impl MediumUse {
    /// A packet was transmitted, and has not collided: several packets collide at the same time.
    pub(super) fn add(&mut self, nanos: u64) {
        self.time += Duration::from_nanos(nanos);
        self.packets += 1;
    }
}

/// The directions on a medium.
pub(crate) fn directions_on(medium: &SharedMedium) -> BTreeSet<u32> {
    match medium {
        SharedMedium::CsmaCa { stations, .. } => stations.iter().flatten().copied().collect(),
        SharedMedium::Tdma { slots, .. } => slots.iter().copied().collect(),
    }
}

/// Checks the directions of a medium at the end of a run: one of them transmits at a time, so that
/// the sum of their times does not exceed the time that has passed.
pub(crate) fn check_medium(
    medium: &SharedMedium,
    uses: impl Iterator<Item = MediumUse>,
    end: Instant,
) -> Result<(), Violation> {
    // The response to the last packet may follow after the end.
    let (for_each_packet, response) = match medium {
        SharedMedium::CsmaCa { parameters, .. } => {
            (parameters.preamble + parameters.response, parameters.response)
        }
        SharedMedium::Tdma { .. } => (Duration::ZERO, Duration::ZERO),
    };
    let mut used = Duration::ZERO;
    for MediumUse { time, packets } in uses {
        used += time + for_each_packet * packets;
    }
    let available = end.since(Instant::ZERO) + response;
    match used > available {
        true => Err(Violation::Medium { used, available }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_core::link::{DropReason, PacketTransit, TransitOutcome};
    use gridhaul_scenario::scenario::{CsmaCa, Direction};
    use gridhaul_scenario::units::BitRate;

    use super::super::LinkAudit;
    use super::*;

    const TDMA: SharedMedium = SharedMedium::Tdma {
        slot: Duration::from_millis(1),
        guard: Duration::ZERO,
        slots: Vec::new(),
    };

    /// The use by a direction that transmits one packet of 1 ms.
    fn use_of(outcome: TransitOutcome) -> MediumUse {
        let rate = BitRate::from_bits_per_sec(80_000);
        let mut audit = LinkAudit::new(&Direction::new(rate, Duration::ZERO), None);
        audit.observe_medium();
        let (start, end) = (Instant::ZERO, Instant::ZERO + Duration::from_millis(1));
        let times = PacketTransit {
            payload: (),
            bytes: 10,
            offered: start,
            started: start,
            sent: end,
            left: end,
            outcome,
        };
        audit.on_transit(end, &times);
        audit.medium_use()
    }

    #[test]
    fn two_directions_of_a_medium_do_not_transmit_at_the_same_time() {
        let uses = [use_of(TransitOutcome::Arrived); 2];
        let end = |millis| Instant::ZERO + Duration::from_millis(millis);
        assert_eq!(check_medium(&TDMA, uses.into_iter(), end(2)), Ok(()));
        let error = check_medium(&TDMA, uses.into_iter(), end(1)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "packets occupy the shared medium for at least 2 ms in all, but only 1 ms have passed"
        );
    }

    #[test]
    fn each_access_with_contention_takes_the_time_of_preamble_and_response() {
        let parameters = CsmaCa::default().parameters();
        let (preamble, response) = (parameters.preamble, parameters.response);
        let (name, stations) = (String::new(), Vec::new());
        let medium = SharedMedium::CsmaCa { name, parameters, stations };
        let uses = [use_of(TransitOutcome::Arrived); 2];
        let end = Instant::ZERO + Duration::from_millis(2) + (preamble * 2 + response);
        assert_eq!(check_medium(&medium, uses.into_iter(), end), Ok(()));
        let earlier = Instant::ZERO + Duration::from_millis(2) + preamble;
        assert!(check_medium(&medium, uses.into_iter(), earlier).is_err());
    }

    #[test]
    fn packets_that_collide_are_not_counted() {
        let collided = use_of(TransitOutcome::Lost(DropReason::Collision));
        assert_eq!(collided, MediumUse::default());
        let lost = use_of(TransitOutcome::Lost(DropReason::Loss));
        assert_eq!(lost, use_of(TransitOutcome::Arrived), "a transmission takes its time");
        assert_eq!(lost.packets, 1);
    }
}
