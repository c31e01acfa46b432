//! Outstanding segments: transmissions that have not been acknowledged at the point of the capture.

use std::collections::VecDeque;

use gridhaul_scenario::units::Instant;

use crate::estimate::Losses;

/// A range of the stream that was sent at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transmission {
    pub(super) start: u64,
    pub(super) end: u64,
    /// Time of the latest transmission. Of a gap: the time at which it was noticed.
    pub(super) at: Instant,
    /// Bytes of the packets on the link.
    pub(super) bytes: u32,
    pub(super) packets: u32,
    /// Number of retransmissions.
    pub(super) retransmissions: u8,
    /// Whether nothing else was outstanding for the sender.
    pub(super) alone: bool,
    /// Whether the range has been captured; otherwise it is a gap in the capture.
    pub(super) captured: bool,
}

/// Outstanding segments in the order of the stream.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    queue: VecDeque<Transmission>,
    pub(super) losses: Losses,
    /// End of the last lost packet, which a consecutive one continues.
    end_of_run: u64,
}

/// Largest number of segments that are followed: a window of 90 MB in full-sized segments.
const FOLLOWED: usize = 65_536;

/// A retransmitted range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retransmitted {
    /// Time of the previous transmission, or at which the gap was noticed.
    pub(super) previous: Instant,
}

/// Segments that an acknowledgement acknowledges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledged {
    pub(super) newest: Transmission,
    pub(super) payload: u64,
    pub(super) bytes: u64,
    /// Whether none of the segments was retransmitted or is missing in the capture.
    pub(super) clean: bool,
}

impl Outstanding {
    /// Adds a transmission of new data.
    pub(super) fn push(&mut self, transmission: Transmission) {
        while self.queue.len() >= FOLLOWED {
            self.queue.pop_front();
        }
        self.queue.push_back(transmission);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Marks a range as retransmitted. `None`: it has been acknowledged already.
    pub(super) fn retransmit(
        &mut self,
        start: u64,
        end: u64,
        at: Instant,
    ) -> Option<Retransmitted> {
        self.divide_at(start);
        self.divide_at(end);
        let first = self.queue.partition_point(|transmission| transmission.end <= start);
        let mut found: Option<Retransmitted> = None;
        for transmission in self.queue.iter_mut().skip(first) {
            if transmission.start >= end {
                break;
            }
            found = found.or(Some(Retransmitted { previous: transmission.at }));
            transmission.at = at;
            transmission.captured = true;
            transmission.retransmissions = transmission.retransmissions.saturating_add(1);
            self.losses.packets += u64::from(transmission.packets);
            if transmission.retransmissions == 1 {
                self.losses.in_runs += u64::from(transmission.packets);
                self.losses.runs += u64::from(transmission.start != self.end_of_run);
                self.end_of_run = transmission.end;
            }
        }
        found
    }

    /// A packet of a gap that arrives late, and was not lost.
    pub(super) fn reorder(&mut self, start: u64, end: u64, at: Instant) {
        self.divide_at(start);
        self.divide_at(end);
        let index = self.queue.partition_point(|transmission| transmission.end <= start);
        if let Some(transmission) = self.queue.get_mut(index) {
            transmission.captured = true;
            transmission.at = at;
            // Its round trip is not that of a packet in order.
            transmission.retransmissions = 1;
        }
    }

    /// Divides a transmission of several packets such that one begins at this byte. Packets of a
    /// large segment of segmentation offload, and those of a gap, are lost one by one.
    fn divide_at(&mut self, byte: u64) {
        let index = self.queue.partition_point(|transmission| transmission.end <= byte);
        let Some(&whole) = self.queue.get(index) else { return };
        if whole.start >= byte || whole.packets < 2 {
            return;
        }
        let payload = (whole.end - whole.start).div_ceil(u64::from(whole.packets));
        let packets = ((byte - whole.start).div_ceil(payload) as u32).min(whole.packets - 1);
        let bytes = whole.bytes / whole.packets * packets;
        let rest = Transmission {
            start: byte,
            bytes: whole.bytes - bytes,
            packets: whole.packets - packets,
            ..whole
        };
        self.queue[index] = Transmission { end: byte, bytes, packets, ..whole };
        self.queue.insert(index + 1, rest);
    }

    /// The transmission that contains a byte.
    pub(super) fn at(&self, start: u64) -> Option<&Transmission> {
        self.queue.get(self.queue.partition_point(|transmission| transmission.end <= start))
    }

    /// Removes all segments before this byte.
    pub(super) fn acknowledge(&mut self, ack: u64) -> Option<Acknowledged> {
        let mut acknowledged: Option<Acknowledged> = None;
        while let Some(&front) = self.queue.front()
            && front.end <= ack
        {
            self.queue.pop_front();
            let clean = front.retransmissions == 0 && front.captured;
            let payload = front.end - front.start;
            let sum = acknowledged.get_or_insert(Acknowledged {
                newest: front,
                payload: 0,
                bytes: 0,
                clean: true,
            });
            sum.newest = front;
            sum.payload += payload;
            sum.bytes += u64::from(front.bytes);
            sum.clean &= clean;
        }
        acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1,000 bytes, with headers of 40 bytes.
    fn transmission(start: u64, packets: u32, captured: bool) -> Transmission {
        Transmission {
            start,
            end: start + 1_000 * u64::from(packets),
            at: Instant::ZERO,
            bytes: if captured { 1_040 * packets } else { 0 },
            packets,
            retransmissions: 0,
            alone: false,
            captured,
        }
    }

    fn losses(outstanding: &Outstanding) -> [u64; 3] {
        let Losses { packets, runs, in_runs } = outstanding.losses;
        [packets, runs, in_runs]
    }

    #[test]
    fn each_lost_packet_of_a_large_segment_or_a_gap_is_one_loss() {
        for captured in [true, false] {
            let mut outstanding = Outstanding::default();
            outstanding.push(transmission(0, 44, captured));
            let at = Instant::from_nanos(1);
            outstanding.retransmit(5_000, 6_000, at);
            assert_eq!(losses(&outstanding), [1, 1, 1]);
            outstanding.retransmit(6_000, 7_000, at);
            assert_eq!(losses(&outstanding), [2, 1, 2], "consecutive packets");
            outstanding.retransmit(5_000, 6_000, at);
            assert_eq!(losses(&outstanding), [3, 1, 2], "lost again");
            outstanding.retransmit(40_000, 44_000, at);
            assert_eq!(losses(&outstanding), [7, 2, 6], "a retransmission of four packets");
        }
    }

    #[test]
    fn parts_of_a_large_segment_have_its_bytes_and_packets_together() {
        let mut outstanding = Outstanding::default();
        outstanding.push(transmission(0, 10, true));
        outstanding.retransmit(3_000, 4_000, Instant::from_nanos(1));
        let parts: Vec<_> = outstanding.queue.iter().map(|part| (part.end, part.packets)).collect();
        assert_eq!(parts, [(3_000, 3), (4_000, 1), (10_000, 6)]);
        assert_eq!(outstanding.queue.iter().map(|part| part.bytes).sum::<u32>(), 10_400);
        let acknowledged = outstanding.acknowledge(3_000).unwrap();
        assert!(acknowledged.clean, "these packets were sent once");
        assert!(!outstanding.acknowledge(4_000).unwrap().clean);
    }

    #[test]
    fn only_the_late_packet_of_a_gap_has_arrived() {
        let mut outstanding = Outstanding::default();
        outstanding.push(transmission(0, 3, false));
        outstanding.reorder(1_000, 2_000, Instant::from_nanos(1));
        let captured: Vec<_> = outstanding.queue.iter().map(|part| part.captured).collect();
        assert_eq!(captured, [false, true, false]);
    }

    #[test]
    fn the_number_of_followed_segments_is_bounded() {
        let mut outstanding = Outstanding::default();
        for index in 0..FOLLOWED as u64 {
            outstanding.push(transmission(2_000 * index, 2, true));
        }
        let last = 2_000 * FOLLOWED as u64;
        outstanding.retransmit(last - 1_000, last, Instant::from_nanos(1));
        outstanding.push(transmission(last, 2, true));
        assert_eq!(outstanding.queue.len(), FOLLOWED);
    }
}
