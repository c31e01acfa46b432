//! Transmission at the delivery opportunities of a trace.

use std::sync::Arc;

use gridhaul_scenario::scenario::Deliveries;
use gridhaul_scenario::units::{Duration, Instant};

/// The opportunities of a direction, and how far packets have used them: `rationalize` in
/// `link_queue.cc` of Mahimahi, evaluated when a packet is accepted.
#[derive(Debug, Clone)]
pub(super) struct Opportunities {
    deliveries: Arc<Deliveries>,
    /// Position of the first opportunity with room, and the bytes of it that are in use.
    position: u64,
    used: u32,
}

impl Opportunities {
    pub(super) const fn new(deliveries: Arc<Deliveries>) -> Self {
        Self { deliveries, position: 0, used: 0 }
    }

    /// When the transmission of a packet that arrives at `now` can begin: those opportunities that
    /// are at this very time are over when the packet arrives.
    pub(super) fn start_of_arrival(&self, now: Instant) -> Instant {
        self.start_from(now + Duration::from_nanos(1))
    }

    /// When the transmission of a packet that has waited can begin, at the earliest at `from`.
    pub(super) fn start_from(&self, from: Instant) -> Instant {
        self.deliveries.time(self.first_from(from))
    }

    /// Uses the opportunities from `started` on for a packet, and returns the time of the last one.
    pub(super) fn end_of_transmission(&mut self, started: Instant, bytes: u32) -> Instant {
        let first = self.first_from(started);
        if first != self.position {
            (self.position, self.used) = (first, 0);
        }
        // The room from the start of this opportunity on that is in use after the packet.
        let used = u64::from(self.used) + u64::from(bytes) + u64::from(Deliveries::PACKET_HEADER);
        let room = u64::from(Deliveries::ROOM);
        let last = first.saturating_add((used - 1) / room);
        self.position = first.saturating_add(used / room);
        self.used = (used % room) as u32;
        self.deliveries.time(last)
    }

    /// Position of the first opportunity with room that is not before `from`.
    fn first_from(&self, from: Instant) -> u64 {
        self.position.max(self.deliveries.first_from(from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Opportunities at 1, 2, 2, 5, 10 ms, then 11, 12, 12, 15, 20 ms, and so on.
    fn opportunities(repeat: bool) -> Opportunities {
        let deliveries = Deliveries::new(vec![1, 2, 2, 5, 10], repeat).expect("a trace");
        Opportunities::new(Arc::new(deliveries))
    }

    /// Start and end of the transmission of each packet, which arrive at these times.
    fn transmissions(repeat: bool, packets: &[(u64, u32)]) -> Vec<[Instant; 2]> {
        let mut opportunities = opportunities(repeat);
        let transmit = |&(arrival, bytes): &(u64, u32)| {
            let started = opportunities.start_of_arrival(at(arrival));
            [started, opportunities.end_of_transmission(started, bytes)]
        };
        packets.iter().map(transmit).collect()
    }

    #[test]
    fn full_packets_use_one_opportunity_each() {
        let packets = [(0, 1_500); 7];
        let times = transmissions(true, &packets);
        assert_eq!(times, [1, 2, 2, 5, 10, 11, 12].map(|ms| [at(ms); 2]));
    }

    #[test]
    fn small_packets_share_an_opportunity_with_4_b_each() {
        // 47 packets of 32 B use 47 × 32 B = 1504 B with their headers of 4 B.
        let times = transmissions(true, &vec![(0, 28); 48]);
        assert!(times[..47].iter().all(|times| *times == [at(1); 2]));
        assert_eq!(times[47], [at(2); 2]);
    }

    #[test]
    fn a_packet_continues_in_the_next_opportunity() {
        // 1000 B, then 500 B of 1500 B; 1004 B of it in the second opportunity, and so on.
        let times = transmissions(true, &[(0, 1_000), (0, 1_500), (0, 9_000)]);
        // 1004 + 1504 + 9004 B end in the eighth opportunity.
        assert_eq!(times, [[at(1), at(1)], [at(1), at(2)], [at(2), at(12)]]);
    }

    #[test]
    fn unused_room_is_lost() {
        // The packet of 100 B leaves room at 1 ms that the packet at 1 ms comes too late for.
        let times = transmissions(true, &[(0, 100), (1, 100), (5, 1_500), (10, 1_500)]);
        assert_eq!(times, [1, 2, 10, 11].map(|ms| [at(ms); 2]));
    }

    #[test]
    fn nothing_is_delivered_after_a_trace_that_does_not_repeat() {
        let times = transmissions(false, &[(9, 1_000), (9, 1_000), (10, 40)]);
        let never = Instant::NEVER;
        assert_eq!(times, [[at(10); 2], [at(10), never], [never; 2]]);
    }
}
