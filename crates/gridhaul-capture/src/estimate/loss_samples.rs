//! Losses by the queueing delay of the packet before, in a fixed amount of memory.

use gridhaul_scenario::units::Duration;

use super::DelayHistogram;

/// Transmitted and lost packets by the queueing delay that the last delivered packet before them
/// had: a drop-tail queue loses packets only while it is full, and random losses do not depend on
/// the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct LossSamples {
    pub(super) sent: DelayHistogram,
    pub(super) lost: DelayHistogram,
    /// Lost packets that were sent for the first time, and the groups of consecutive ones.
    pub(super) first_lost: DelayHistogram,
    pub(super) runs: DelayHistogram,
    /// Packets that were retransmitted although the first transmission was delivered.
    pub(super) spurious: u64,
    /// Queueing delay of the last delivered packet in the order of the stream.
    before: Duration,
    /// Whether the packet before was lost.
    is_in_run: bool,
    /// Queueing delay that was measured last.
    latest: Duration,
}

/// The first transmission of data of which it is known whether it was lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FirstTransmission {
    pub(crate) packets: u32,
    pub(crate) is_lost: bool,
    /// Its queueing delay, if that was measured.
    pub(crate) queueing: Option<Duration>,
}

/// A retransmission of which it is known whether it was lost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retransmission {
    pub(crate) packets: u32,
    pub(crate) is_lost: bool,
    /// Queueing delay that had been measured last when it was sent.
    pub(crate) queueing_before: Duration,
}

impl LossSamples {
    /// Adds first transmissions in the order of the stream.
    pub(crate) fn add_first(&mut self, transmission: &FirstTransmission) {
        let FirstTransmission { packets, is_lost, queueing } = *transmission;
        let packets = u64::from(packets);
        self.sent.add(self.before, packets);
        if is_lost {
            self.lost.add(self.before, packets);
            self.first_lost.add(self.before, packets);
            if !self.is_in_run {
                self.runs.add(self.before, 1);
            }
        } else if let Some(queueing) = queueing {
            self.before = queueing;
        }
        self.is_in_run = is_lost;
    }

    /// The next packet does not follow the last one.
    pub(crate) const fn end_run(&mut self) {
        self.is_in_run = false;
    }

    /// Adds a retransmission.
    pub(crate) fn add_retransmission(&mut self, retransmission: &Retransmission) {
        let Retransmission { packets, is_lost, queueing_before } = *retransmission;
        self.sent.add(queueing_before, u64::from(packets));
        if is_lost {
            self.lost.add(queueing_before, u64::from(packets));
        }
    }

    /// Adds packets whose retransmission was not necessary.
    pub(crate) fn add_spurious(&mut self, packets: u32) {
        self.spurious += u64::from(packets);
    }

    /// The queueing delay of a packet that is acknowledged now.
    pub(crate) const fn set_latest(&mut self, queueing: Duration) {
        self.latest = queueing;
    }

    /// The queueing delay of the newest packet that is acknowledged cumulatively: all before it
    /// have been added.
    pub(crate) const fn set_before(&mut self, queueing: Duration) {
        self.before = queueing;
    }

    pub(crate) const fn latest(&self) -> Duration {
        self.latest
    }

    #[cfg(test)]
    pub(crate) const fn sent_packets(&self) -> u64 {
        self.sent.total()
    }
    #[cfg(test)]
    pub(crate) const fn lost_packets(&self) -> u64 {
        self.lost.total()
    }
    #[cfg(test)]
    pub(crate) const fn lost_runs(&self) -> u64 {
        self.runs.total()
    }
    #[cfg(test)]
    pub(crate) const fn spurious_packets(&self) -> u64 {
        self.spurious
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_belongs_to_the_queueing_delay_of_the_last_delivered_packet_before() {
        let mut samples = LossSamples::default();
        let packet = |is_lost, millis: Option<u64>| FirstTransmission {
            packets: 1,
            is_lost,
            queueing: millis.map(Duration::from_millis),
        };
        samples.add_first(&packet(false, Some(40)));
        samples.add_first(&packet(true, None));
        samples.add_first(&packet(true, None));
        samples.add_first(&packet(false, Some(10)));
        samples.add_first(&packet(true, None));
        let after = |histogram: &DelayHistogram| {
            let above = histogram.above(Duration::from_millis(20));
            [above, histogram.total() - above]
        };
        assert_eq!(after(&samples.sent), [3, 2]);
        assert_eq!(after(&samples.lost), [2, 1]);
        assert_eq!(after(&samples.runs), [1, 1], "two consecutive losses are one group");
        samples.add_retransmission(&Retransmission {
            packets: 1,
            is_lost: true,
            queueing_before: Duration::from_millis(40),
        });
        assert_eq!((after(&samples.sent), after(&samples.lost)), ([4, 2], [3, 1]));
        assert_eq!(after(&samples.first_lost), [2, 1]);
    }
}
