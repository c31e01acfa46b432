//! Outstanding segments: transmissions that have not been acknowledged at the point of the capture.

mod delivery;

use std::collections::VecDeque;

use gridhaul_scenario::units::{Duration, Instant};

use crate::estimate::{LossSamples, Retransmission};

pub(super) use delivery::Cumulative;

/// A range of the stream that was sent at once.
#[derive(Debug, Clone, Copy, Default)]
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
    /// Whether the first transmission has been delivered, before it was retransmitted.
    pub(super) is_delivered: bool,
    /// Whether the receiver has closed its window before this range: it drops the packets, which
    /// are no losses of the network.
    pub(super) is_refused: bool,
    /// Queueing delay of the first transmission, if it was measured.
    pub(super) queueing: Option<Duration>,
    /// Queueing delay that had been measured last at the latest retransmission.
    pub(super) queueing_before: Duration,
}

/// Outstanding segments in the order of the stream.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    queue: VecDeque<Transmission>,
    /// Retransmitted packets.
    retransmitted: u64,
    samples: LossSamples,
    /// End of the ranges that the receiver has reported as received out of order.
    delivered_until: u64,
}

/// Largest number of segments that are followed: a window of 90 MB in full-sized segments.
const FOLLOWED: usize = 65_536;

/// A retransmitted range.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retransmitted {
    /// Time of the previous transmission, or at which the gap was noticed.
    pub(super) previous: Instant,
    /// Whether the receiver has closed its window before this range.
    pub(super) is_refused: bool,
}

/// Segments that an acknowledgement acknowledges.
#[derive(Debug, Clone, Copy)]
pub(super) struct Acknowledged {
    pub(super) newest: Transmission,
    pub(super) payload: u64,
    pub(super) bytes: u64,
    /// Whether none of the segments was retransmitted or is missing in the capture.
    pub(super) clean: bool,
    /// Bytes that are missing in the capture.
    pub(super) missing: u64,
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
            let Transmission { packets, queueing_before, is_refused, .. } = *transmission;
            found = found.or(Some(Retransmitted { previous: transmission.at, is_refused }));
            self.retransmitted += if is_refused { 0 } else { u64::from(packets) };
            if is_refused {
                // Not a loss of the network.
            } else if transmission.is_delivered {
                self.samples.add_spurious(packets);
            } else if transmission.retransmissions > 0 {
                // The retransmission before was lost.
                let retransmission = Retransmission { packets, is_lost: true, queueing_before };
                self.samples.add_retransmission(&retransmission);
            }
            transmission.at = at;
            transmission.captured = true;
            transmission.retransmissions = transmission.retransmissions.saturating_add(1);
            transmission.queueing_before = self.samples.latest();
        }
        found
    }

    /// Bytes of a range that have not been captured, as they are in a gap.
    pub(super) fn uncaptured(&self, start: u64, end: u64) -> u64 {
        let first = self.queue.partition_point(|transmission| transmission.end <= start);
        let range = self.queue.iter().skip(first).take_while(|gap| gap.start < end);
        let gaps = range.filter(|transmission| !transmission.captured);
        gaps.map(|gap| gap.end.min(end) - gap.start.max(start)).sum()
    }

    /// The receiver closes its window before this byte, although later ones were sent.
    pub(super) fn refuse(&mut self, byte: u64) {
        let first = self.queue.partition_point(|transmission| transmission.end <= byte);
        self.queue.iter_mut().skip(first).for_each(|transmission| transmission.is_refused = true);
    }

    /// A packet of a gap that arrives late, and was not lost.
    pub(super) fn reorder(&mut self, start: u64, end: u64, at: Instant) {
        self.divide_at(start);
        self.divide_at(end);
        let index = self.queue.partition_point(|transmission| transmission.end <= start);
        if let Some(transmission) = self.queue.get_mut(index) {
            transmission.captured = true;
            transmission.at = at;
            transmission.is_delivered = true;
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

    /// Removes all segments before the acknowledged byte.
    pub(super) fn acknowledge(&mut self, cumulative: &Cumulative) -> Option<Acknowledged> {
        let mut acknowledged: Option<Acknowledged> = None;
        while let Some(&front) = self.queue.front()
            && front.end <= cumulative.ack
        {
            self.queue.pop_front();
            self.add_sample(&front, cumulative);
            let clean = front.retransmissions == 0 && front.captured && !front.is_refused;
            let payload = front.end - front.start;
            let sum = acknowledged.get_or_insert(Acknowledged {
                newest: front,
                payload: 0,
                bytes: 0,
                clean: true,
                missing: 0,
            });
            sum.newest = front;
            sum.payload += payload;
            sum.bytes += u64::from(front.bytes);
            sum.clean &= clean;
            sum.missing += if front.captured { 0 } else { payload };
        }
        acknowledged
    }

    /// Notes the queueing delay of the newest segment of an acknowledgement.
    pub(super) const fn set_acknowledged_queueing(&mut self, queueing: Duration) {
        self.samples.set_before(queueing);
        self.samples.set_latest(queueing);
    }

    /// Number of retransmitted packets.
    pub(super) const fn retransmitted(&self) -> u64 {
        self.retransmitted
    }

    /// Lost packets by the state of the queue.
    pub(super) const fn samples(&self) -> &LossSamples {
        &self.samples
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
            bytes: if captured { 1_040 * packets } else { 0 },
            packets,
            captured,
            ..Transmission::default()
        }
    }

    fn acknowledge(outstanding: &mut Outstanding, ack: u64) -> Acknowledged {
        let at = Instant::from_nanos(1_000_000);
        let cumulative = Cumulative { ack, at, round_trip_min: Duration::ZERO };
        outstanding.acknowledge(&cumulative).unwrap()
    }

    #[test]
    fn each_lost_packet_of_a_large_segment_or_a_gap_is_one_loss() {
        for captured in [true, false] {
            let mut outstanding = Outstanding::default();
            outstanding.push(transmission(0, 44, captured));
            let at = Instant::from_nanos(1);
            // Consecutive packets, of which the first is lost again, and four in one segment.
            for (start, end) in [(5_000, 6_000), (6_000, 7_000), (5_000, 6_000), (40_000, 44_000)] {
                outstanding.retransmit(start, end, at);
            }
            assert_eq!(outstanding.retransmitted(), 7);
            acknowledge(&mut outstanding, 44_000);
            assert_eq!(outstanding.samples().lost_packets(), 7);
            assert_eq!(outstanding.samples().lost_runs(), 2);
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
        let acknowledged = acknowledge(&mut outstanding, 3_000);
        assert!(acknowledged.clean, "these packets were sent once");
        assert!(!acknowledge(&mut outstanding, 4_000).clean);
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
