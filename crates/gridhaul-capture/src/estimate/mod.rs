//! Estimate of the link: rate of the bottleneck, delay, loss and buffer.

mod buffer;
#[cfg(test)]
mod collected;
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

use crate::Position;

pub use interval::Interval;

pub(crate) use delay::DelayBasis;
pub(crate) use first_packets::FirstPackets;
pub(crate) use histogram::DelayHistogram;
pub(crate) use loss_samples::{FirstTransmission, LossSamples, Retransmission};
pub(crate) use round_trip::{HandshakeRoundTrip, RoundTrips, Smallest};
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
    /// times, with the interval of an end point of a distribution (Robson and Whitlock 1964). If
    /// the rate is unknown, the transmission times are part of the value, and the interval begins
    /// at the smallest delay that the times of packets of different sizes permit.
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
    /// Where the capture was taken. At the receiver, arrivals show the rate.
    pub(crate) position: Position,
    /// From the point of the capture to the sender and back, and to the receiver and back, from the
    /// handshake.
    pub(crate) sides: Option<[Duration; 2]>,
    /// From the point of the capture to the sender and back, from echoed timestamps.
    pub(crate) echo: &'a Smallest,
    /// Acknowledged bytes of new data.
    pub(crate) acknowledged: u64,
    /// From the first data to the last acknowledgement.
    pub(crate) delivery: Duration,
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

    /// Whether a rate transmits the data that was delivered in its time. Otherwise the
    /// acknowledgements, or the clock of a capture with ticks of many milliseconds, had pauses of
    /// their own.
    fn permits_delivery(&self, rate: &Estimate) -> bool {
        let transmitted = rate.value * self.delivery.as_secs_f64();
        self.acknowledged as f64 * 8.0 <= RATE_TOLERANCE * transmitted
    }
}

/// Delivered bytes, compared with those that the estimated rate transmits.
const RATE_TOLERANCE: f64 = 1.2;

/// A shorter round trip is one within a machine.
const ONE_MACHINE: Duration = Duration::from_micros(500);

/// Whether a point is at the end to which it has the round trip `near`: less than a tenth of both
/// round trips together, or both ends are on one machine, where it is at either.
pub(crate) fn is_at_end(near: Duration, far: Duration) -> bool {
    near + far < ONE_MACHINE || near.mul_f64(9.0) <= far
}

/// Whether the smallest round trip of echoed timestamps shows that a point is at the sender. Unlike
/// that of the handshake, it contains the time in which the sender reacts to an acknowledgement: in
/// a local network, this may be more than a tenth.
pub(crate) fn is_echo_of_sender(echo: Duration, to_receiver: Duration) -> bool {
    echo < ONE_MACHINE || is_at_end(echo, to_receiver)
}

impl LinkEstimate {
    pub(crate) fn new(basis: &Basis<'_>) -> Self {
        let rate = rate::estimate(basis).filter(|rate| basis.permits_delivery(rate));
        let losses = loss::divide(basis, rate.as_ref());
        let overflow = losses.overflow();
        Self {
            rate_bit_per_s: rate,
            round_trip_s: delay::estimate(&DelayBasis::new(basis), rate.as_ref()),
            loss: losses.probability(),
            burst_packets: losses.burst(),
            buffer_byte: buffer::estimate(overflow, rate.as_ref()),
            queueing_max_s: basis.samples.queueing().max().as_secs_f64(),
            overflow_losses: overflow.map_or(0, |overflow| overflow.packets),
        }
    }
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::collected::Collected;
    use super::*;

    /// One packet each 5 ms, of which all are acknowledged at once.
    fn of_arrivals(acknowledged: u64) -> LinkEstimate {
        let mut collected = Collected::default();
        for number in 0..40 {
            let at = Instant::from_nanos(5_000_000 * number);
            collected.samples.add_arrival(at, 1_500, false, Duration::from_millis(100));
        }
        collected.round_trips.handshake =
            Some(HandshakeRoundTrip { time: Duration::ZERO, bytes: 60 });
        LinkEstimate::new(&Basis {
            position: Position::Receiver,
            sides: Some([Duration::from_millis(100), Duration::ZERO]),
            acknowledged,
            delivery: Duration::from_secs(25),
            ..collected.basis()
        })
    }

    #[test]
    fn a_rate_below_that_of_the_data_is_no_estimate_and_has_no_influence_on_the_delay() {
        // 2.4 Mbit/s: 7.5 MB are transmitted in 25 s.
        let found = of_arrivals(7_400_000);
        assert_eq!(found.rate_bit_per_s.map(|rate| rate.value.round()), Some(2.4e6));
        // The handshake's packets of 60 B take 0.2 ms each.
        let trip = found.round_trip_s.unwrap();
        assert!((trip.value - 0.0996).abs() < 1e-6, "{trip:?}");
        let found = of_arrivals(24_600_000);
        assert_eq!((found.rate_bit_per_s, found.buffer_byte), (None, None));
        let trip = found.round_trip_s.unwrap();
        assert!((trip.value - 0.1).abs() < 1e-6, "{trip:?}");
    }

    #[test]
    fn an_unknown_place_shows_no_delay_of_the_whole_path() {
        let delay = |echo_ms: Option<u64>| {
            let mut collected = Collected::default();
            for _ in 0..2 {
                collected.round_trips.add(Duration::from_millis(20), 1_500, true);
            }
            let times = echo_ms.into_iter().map(Duration::from_millis);
            times.for_each(|time| collected.echo.add(time, 1_500));
            let estimate = LinkEstimate::new(&collected.basis());
            estimate.round_trip_s.map(|trip| trip.value)
        };
        assert_eq!([None, Some(80)].map(delay), [None; 2]);
        assert_eq!(delay(Some(1)), Some(0.02), "at the sender");
    }
}
