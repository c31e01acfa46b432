//! Transmissions that were delivered, and those that were lost.

use gridhaul_scenario::units::{Duration, Instant};

use super::{Outstanding, Transmission};
use crate::estimate::{FirstTransmission, Retransmission};

/// A cumulative acknowledgement.
#[derive(Debug, Clone, Copy)]
pub(in crate::connection) struct Cumulative {
    pub(in crate::connection) ack: u64,
    pub(in crate::connection) at: Instant,
    /// The smallest round trip between the point of the capture and the receiver.
    pub(in crate::connection) round_trip_min: Duration,
}

impl Outstanding {
    /// Marks a range that the receiver reports as received out of order, as far as it is beyond all
    /// earlier ones. Returns its last transmission, if that was sent once.
    pub(in crate::connection) fn deliver(&mut self, start: u64, end: u64) -> Option<Transmission> {
        let start = start.max(self.delivered_until);
        if start >= end {
            return None;
        }
        self.delivered_until = end;
        self.divide_at(start);
        self.divide_at(end);
        let first = self.queue.partition_point(|transmission| transmission.end <= start);
        let mut newest = None;
        for transmission in self.queue.iter_mut().skip(first) {
            if transmission.end > end {
                break;
            }
            transmission.is_delivered = transmission.retransmissions == 0;
            newest = Some(*transmission);
        }
        newest.filter(|transmission| transmission.is_delivered && transmission.captured)
    }

    /// Notes the queueing delay of the transmission that contains a byte.
    pub(in crate::connection) fn set_queueing(&mut self, start: u64, queueing: Duration) {
        let index = self.queue.partition_point(|transmission| transmission.end <= start);
        if let Some(transmission) = self.queue.get_mut(index) {
            transmission.queueing = Some(queueing);
        }
        self.samples.set_latest(queueing);
    }

    /// Adds an acknowledged transmission to the samples of losses.
    pub(super) fn add_sample(&mut self, transmission: &Transmission, cumulative: &Cumulative) {
        let Transmission { packets, retransmissions, .. } = *transmission;
        if transmission.is_refused || retransmissions == 0 && !transmission.captured {
            // The receiver has dropped it, or the capture has missed it.
            self.samples.end_run();
            return;
        }
        // The receiver cannot acknowledge a retransmission sooner than after a round trip: the
        // first transmission was delivered (as in Eifel detection, RFC 3522, by the time instead of
        // the timestamp).
        let is_early = cumulative.at.since(transmission.at) < cumulative.round_trip_min;
        let is_retransmitted = retransmissions > 0 && !transmission.is_delivered;
        let is_lost = is_retransmitted && !is_early;
        let queueing = transmission.queueing;
        self.samples.add_first(&FirstTransmission { packets, is_lost, queueing });
        if is_lost {
            let queueing_before = transmission.queueing_before;
            let retransmission = Retransmission { packets, is_lost: false, queueing_before };
            self.samples.add_retransmission(&retransmission);
        } else if is_retransmitted {
            self.samples.add_spurious(packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::LossSamples;

    fn at(millis: u64) -> Instant {
        Instant::from_nanos(millis * 1_000_000)
    }

    /// Ten packets of 1,000 bytes, of which packet 2 is lost and the others are acknowledged
    /// selectively.
    fn with_loss() -> Outstanding {
        let mut outstanding = Outstanding::default();
        for number in 0..10 {
            outstanding.push(Transmission {
                start: 1_000 * number,
                end: 1_000 * (number + 1),
                bytes: 1_040,
                packets: 1,
                captured: true,
                ..Transmission::default()
            });
        }
        for number in 3..10 {
            let delivered = outstanding.deliver(3_000, 1_000 * (number + 1)).unwrap();
            assert_eq!(delivered.start, 1_000 * number, "the last one of the range");
            outstanding.set_queueing(delivered.start, Duration::from_millis(number));
        }
        outstanding
    }

    /// Lost, transmitted and spuriously retransmitted packets after all are acknowledged.
    fn counts(outstanding: &mut Outstanding, acknowledged: Instant) -> [u64; 3] {
        let round_trip_min = Duration::from_millis(100);
        outstanding.acknowledge(&Cumulative { ack: 10_000, at: acknowledged, round_trip_min });
        let samples: &LossSamples = outstanding.samples();
        [samples.lost_packets(), samples.sent_packets(), samples.spurious_packets()]
    }

    #[test]
    fn an_acknowledgement_within_a_round_trip_shows_that_the_first_transmission_was_delivered() {
        for (acknowledged, expected) in [(at(350), [1, 11, 0]), (at(320), [0, 10, 1])] {
            let mut outstanding = with_loss();
            outstanding.retransmit(2_000, 3_000, at(250));
            assert_eq!(counts(&mut outstanding, acknowledged), expected);
        }
    }

    #[test]
    fn a_retransmission_that_is_lost_counts_and_one_of_delivered_data_does_not() {
        let mut outstanding = with_loss();
        outstanding.retransmit(2_000, 3_000, at(200));
        outstanding.retransmit(2_000, 3_000, at(500));
        // A retransmission timer sends everything again.
        outstanding.retransmit(3_000, 5_000, at(500));
        assert_eq!(counts(&mut outstanding, at(600)), [2, 12, 2]);
    }
}
