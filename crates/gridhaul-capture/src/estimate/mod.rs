//! Estimate of the link: rate of the bottleneck, delay, loss and buffer.

mod buffer;
mod delay;
mod first_packets;
mod histogram;
mod interval;
mod loss;
mod loss_samples;
mod rate;
mod round_trip;
mod samples;

use gridhaul_scenario::units::Duration;
use serde::Serialize;

pub use interval::Interval;

pub(crate) use first_packets::FirstPackets;
pub(crate) use histogram::DelayHistogram;
pub(crate) use loss_samples::{FirstTransmission, LossSamples, Retransmission};
pub(crate) use round_trip::{HandshakeRoundTrip, RoundTrips};
pub(crate) use samples::{Delivered, LinkSamples};

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval that contains the true value, if the assumptions of its method hold.
    pub interval: Interval,
}

/// Estimate of the link from one connection. Absent values are unknown.
///
/// The level of each interval but that of the buffer is 99 %, so that all hold at the same time in
/// 95 % of the captures (Bonferroni).
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LinkEstimate {
    /// Rate of the bottleneck in bit/s, of IP packets: the median of the rates of busy periods with
    /// the interval of its order statistics.
    pub rate_bit_per_s: Option<Estimate>,
    /// Propagation delay of both directions in s: the smallest round trip without transmission
    /// times, with the interval of an end point of a distribution (Robson and Whitlock 1964).
    pub round_trip_s: Option<Estimate>,
    /// Probability that a packet is lost, apart from losses of a full buffer (Wilson 1927).
    pub loss: Option<Estimate>,
    /// Mean number of consecutive lost packets.
    pub burst_packets: Option<Estimate>,
    /// Buffer of the bottleneck in bytes: queueing delay before the losses of a full buffer.
    pub buffer_byte: Option<Estimate>,
    /// Largest queueing delay in s; without losses of a full buffer, the buffer is at least as
    /// large.
    pub queueing_max_s: f64,
    /// Lost packets that a full buffer explains.
    pub overflow_losses: u64,
}

/// Basis of an estimate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Basis<'a> {
    pub(crate) samples: &'a LinkSamples,
    pub(crate) round_trips: &'a RoundTrips,
    /// From the point of the capture to the sender and back.
    pub(crate) sender_side: Duration,
    /// Whether the point of the capture is at the receiver, where arrivals show the rate.
    pub(crate) is_at_receiver: bool,
    /// Packets with data and their bytes on the link, with retransmissions.
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    pub(crate) losses: &'a LossSamples,
    /// Retransmissions of packets that were not lost.
    pub(crate) unnecessary: u64,
    /// Unit of the capture's times in nanoseconds.
    pub(crate) time_unit_nanos: u64,
}

impl Basis<'_> {
    /// Mean time in which a rate transmits a packet.
    fn packet_time_s(&self, bit_per_s: f64) -> f64 {
        self.bytes as f64 / self.packets.max(1) as f64 * 8.0 / bit_per_s
    }
}

impl LinkEstimate {
    pub(crate) fn new(basis: &Basis<'_>) -> Self {
        let rate = rate::estimate(basis);
        let losses = loss::divide(basis, rate.as_ref());
        let overflow = losses.overflow();
        Self {
            rate_bit_per_s: rate,
            round_trip_s: delay::estimate(basis, rate.as_ref()),
            loss: losses.probability(),
            burst_packets: losses.burst(),
            buffer_byte: buffer::estimate(overflow, rate.as_ref()),
            queueing_max_s: basis.samples.queueing().max().as_secs_f64(),
            overflow_losses: overflow.map_or(0, |overflow| overflow.packets),
        }
    }

    /// Forgets the rate, if more data was delivered than the bottleneck transmits in this time: the
    /// acknowledgements, or the clock of a capture with ticks of many milliseconds, had pauses of
    /// their own.
    pub(crate) fn check_rate(&mut self, bytes: u64, time: Duration) {
        let is_possible =
            |rate: Estimate| bytes as f64 * 8.0 <= RATE_TOLERANCE * rate.value * time.as_secs_f64();
        self.rate_bit_per_s = self.rate_bit_per_s.filter(|rate| is_possible(*rate));
        self.buffer_byte = self.buffer_byte.filter(|_| self.rate_bit_per_s.is_some());
    }
}

/// Delivered bytes, compared with those that the estimated rate transmits.
const RATE_TOLERANCE: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_below_that_of_the_data_is_no_estimate() {
        let interval = Interval { low: 2e6, high: 3e6, level: 0.99 };
        let rate = Some(Estimate { value: 2.4e6, interval });
        let estimate = LinkEstimate { rate_bit_per_s: rate, ..LinkEstimate::default() };
        let checked = |bytes| {
            let mut estimate = estimate.clone();
            estimate.check_rate(bytes, Duration::from_secs(25));
            estimate.rate_bit_per_s
        };
        // 7.5 MB are transmitted at this rate in 25 s.
        assert_eq!(checked(24_600_000), None);
        assert_eq!(checked(7_400_000), rate);
    }
}
