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

/// A retransmission and its first transmission.
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
        if self.queue.len() == FOLLOWED {
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
    pub(super) fn reorder(&mut self, start: u64, at: Instant) {
        let index = self.queue.partition_point(|transmission| transmission.end <= start);
        if let Some(transmission) = self.queue.get_mut(index) {
            transmission.captured = true;
            transmission.at = at;
            // Its round trip is not that of a packet in order.
            transmission.retransmissions = 1;
        }
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
