//! The first round trips of a connection, without the queue of its own packets.

use gridhaul_scenario::units::{Duration, Instant};

/// The first packets of a direction. Until one is lost, all of them pass the bottleneck, so that
/// the queue of the connection itself follows from their times and the rate.
#[derive(Debug, Clone, Default)]
pub(crate) struct FirstPackets {
    packets: Vec<FirstPacket>,
    /// Whether later packets are not added.
    is_complete: bool,
}

#[derive(Debug, Clone, Copy)]
struct FirstPacket {
    at: Instant,
    bytes: u32,
    /// End of its data in the stream; 0: it only acknowledges.
    end: u64,
    round_trip: Option<Duration>,
}

/// Packets of the first four round trips of slow start with an initial window of ten segments
/// (RFC 6928).
const PACKETS_MAX: usize = 150;

impl FirstPackets {
    /// Adds a data packet.
    pub(crate) fn add(&mut self, at: Instant, bytes: u32, end: u64) {
        if !self.is_complete && self.packets.len() < PACKETS_MAX {
            self.packets.push(FirstPacket { at, bytes, end, round_trip: None });
        }
    }

    /// Adds a segment of the sender that only acknowledges, as the last one of the handshake: the
    /// first data waits for its transmission.
    pub(crate) fn add_acknowledgement(&mut self, at: Instant, bytes: u32) {
        if self.packets.iter().all(|packet| packet.end == 0) {
            self.packets = vec![FirstPacket { at, bytes, end: 0, round_trip: None }];
        }
    }

    /// Adds the round trip of the packet whose data ends here.
    pub(crate) fn add_round_trip(&mut self, end: u64, time: Duration) {
        if let Ok(index) = self.packets.binary_search_by_key(&end, |packet| packet.end) {
            self.packets[index].round_trip = Some(time);
        }
    }

    /// The data from here on may have been lost.
    pub(crate) fn end_at(&mut self, start: u64) {
        self.is_complete = true;
        self.packets.retain(|packet| packet.end <= start);
    }

    /// The round trips in s, without the time from the arrival at the bottleneck to the end of the
    /// transmission (Lindley's recursion), in ascending order. `per_byte`: time in which the
    /// bottleneck transmits a byte.
    pub(super) fn without_own_queue(&self, per_byte: f64) -> Vec<f64> {
        let Some(first) = self.packets.first() else { return Vec::new() };
        let mut free_at = 0.0_f64;
        let mut times = Vec::new();
        for packet in &self.packets {
            let at = packet.at.since(first.at).as_secs_f64();
            free_at = free_at.max(at) + f64::from(packet.bytes) * per_byte;
            times.extend(packet.round_trip.map(|time| time.as_secs_f64() - (free_at - at)));
        }
        times.sort_by(f64::total_cmp);
        times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_the_first_packets_is_no_delay_of_the_link() {
        // Ten packets of 1,000 bytes at once, 1 ms each, over a link with a round trip of 20 ms.
        let mut packets = FirstPackets::default();
        let at = Instant::from_nanos(5_000_000);
        packets.add_acknowledgement(at, 500);
        for number in 1..=10_u64 {
            packets.add(at, 1_000, 1_000 * number);
            let time = Duration::from_micros(20_500 + 1_000 * number);
            packets.add_round_trip(1_000 * number, time);
        }
        let times = packets.without_own_queue(1e-6);
        assert_eq!(times.len(), 10);
        assert!(times.iter().all(|time| (time - 0.02).abs() < 1e-9), "{times:?}");
        packets.end_at(3_500);
        packets.add(at, 1_000, 11_000);
        assert_eq!(packets.without_own_queue(1e-6).len(), 3, "later packets may have been lost");
    }
}
