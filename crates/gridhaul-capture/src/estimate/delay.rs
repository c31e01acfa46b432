//! Propagation delay of both directions.

use gridhaul_scenario::units::Duration;

use super::interval::Interval;
use super::{Basis, Estimate, FirstPackets, RoundTrips, Smallest, is_echo_of_sender};
use crate::Position;

/// The round trips of a connection from which the propagation delay is estimated.
#[derive(Debug, Clone)]
pub(crate) struct DelayBasis {
    position: Position,
    sides: Option<[Duration; 2]>,
    echo: Smallest,
    round_trips: RoundTrips,
    time_unit_nanos: u64,
}

/// A round trip with the packets that were transmitted for it.
#[derive(Debug, Clone, Copy)]
struct Sample {
    time_s: f64,
    /// Bytes of the packet, and of its acknowledgement.
    packet: f64,
    acknowledgement: f64,
}

/// Seconds in which a byte is transmitted.
#[derive(Debug, Clone, Copy)]
struct PerByte {
    forward: f64,
    reverse: f64,
}

impl DelayBasis {
    pub(super) fn new(basis: &Basis<'_>) -> Self {
        Self {
            position: basis.position,
            sides: basis.sides,
            echo: *basis.echo,
            round_trips: basis.round_trips.clone(),
            time_unit_nanos: basis.time_unit_nanos,
        }
    }

    /// The same for later estimates, without the packets that need most of the memory: they only
    /// make the interval more precise.
    pub(crate) fn for_later(basis: &Basis<'_>) -> Self {
        let round_trips =
            RoundTrips { first: FirstPackets::default(), ..basis.round_trips.clone() };
        Self { round_trips, ..Self::new(basis) }
    }

    /// The estimate for a bottleneck of this rate in bit/s.
    pub(crate) fn at_rate(&self, rate: f64) -> Option<Estimate> {
        let interval = Interval { low: rate, high: rate, level: Some(1.0) };
        estimate(self, Some(&Estimate { value: rate, interval }))
    }

    /// From the point of the capture to the end that acknowledgements and echoed timestamps of its
    /// [`Position`] do not show, and back.
    fn other_side(&self) -> Duration {
        let [sender, receiver] = self.sides.unwrap_or_default();
        if self.position == Position::Receiver { receiver } else { sender }
    }

    /// Whether echoed timestamps show that the point of the capture is at the sender.
    fn is_echo_near(&self) -> bool {
        let trips = self.echo.times[0].zip(self.round_trips.base());
        trips.is_some_and(|(echo, to_receiver)| is_echo_of_sender(echo, to_receiver))
    }
}

impl Sample {
    fn bytes(&self) -> f64 {
        self.packet + self.acknowledgement
    }

    fn without_transmission(&self, per_byte: PerByte) -> f64 {
        self.time_s - self.packet * per_byte.forward - self.acknowledgement * per_byte.reverse
    }
}

/// The smallest round trip of a full path, without the time to transmit the packets.
///
/// The round trip of a packet of `b` bytes is at least the propagation delay, `b` bytes at the rate
/// of the bottleneck, and the acknowledgement at the rate of the reverse direction. That rate is
/// unknown, and assumed to be at least that of the bottleneck: the interval reaches from the rate
/// of the bottleneck to a transmission without time.
///
/// Without a rate, the estimate contains the transmission times, and its interval begins at the
/// smallest delay that the samples permit (see [`longest_per_byte`]).
///
/// An unknown place shows the path to one end only, so that nothing is estimated.
pub(super) fn estimate(basis: &DelayBasis, rate: Option<&Estimate>) -> Option<Estimate> {
    if basis.position == Position::Unknown && !basis.is_echo_near() {
        return None;
    }
    let samples = samples(basis);
    // Times that are equal in the capture may differ by two of its units.
    let unit_s = basis.time_unit_nanos as f64 * 1e-9;
    let smallest = |per_byte| {
        let times = samples.iter().map(|sample| sample.without_transmission(per_byte));
        times.min_by(f64::total_cmp)
    };
    let equal = |rate: f64| {
        let per_byte = if rate > 0.0 { 8.0 / rate } else { 0.0 };
        PerByte { forward: per_byte, reverse: per_byte }
    };
    let [slow, fast, likely] = match rate {
        Some(rate) => [rate.interval.low, rate.interval.high, rate.value].map(equal),
        None => {
            let longest = longest_per_byte(&samples, unit_s);
            [PerByte { forward: longest, reverse: longest }, equal(0.0), equal(0.0)]
        }
    };
    let value = smallest(likely)?.max(0.0);
    let low = smallest(slow)?;
    let high = smallest(PerByte { reverse: 0.0, ..fast })?.max(0.0);
    let first = first_packets(basis, likely).filter(|_| rate.is_some());
    let low = first.map_or(low, |(time_s, _)| low.min(time_s));
    let distance =
        first.map_or_else(|| distance(basis, &samples, likely), |(_, distance)| distance);
    let low = low - handshake_queue(basis);
    let second = low + distance + 2.0 * unit_s;
    let rounding = 4.0 * (basis.time_unit_nanos as f64 + 1.0) * 1e-9;
    let end = Interval::of_lower_end(low.max(0.0), second.max(0.0));
    let interval =
        Interval { low: (end.low - rounding).max(0.0), high: high + rounding, level: end.level };
    Some(Estimate { value, interval })
}

/// The longest time of a byte that the samples permit: the smallest round trip, which is assumed to
/// have no queue, consists of transmissions at most, and larger packets take longer in proportion.
fn longest_per_byte(samples: &[Sample], unit_s: f64) -> f64 {
    let Some(smallest) = samples.iter().min_by(|a, b| a.time_s.total_cmp(&b.time_s)) else {
        return 0.0;
    };
    let larger = samples.iter().filter(|sample| sample.bytes() > smallest.bytes());
    let slopes = larger.map(|sample| {
        let time_s = sample.time_s - smallest.time_s + 2.0 * unit_s;
        time_s / (sample.bytes() - smallest.bytes())
    });
    slopes.fold(smallest.time_s / smallest.bytes(), f64::min)
}

/// The first packets show how the delay varies apart from the queue of the connection itself: the
/// smallest round trip, and its distance to the second one. At the receiver they have no round
/// trip.
fn first_packets(basis: &DelayBasis, per_byte: PerByte) -> Option<(f64, f64)> {
    if basis.position == Position::Receiver {
        return None;
    }
    match basis.round_trips.first.without_own_queue(per_byte.forward)[..] {
        [smallest, second, ..] => {
            let acknowledgement = acknowledgement(basis) * per_byte.reverse;
            let time_s = smallest + basis.other_side().as_secs_f64() - acknowledgement;
            Some((time_s, second - smallest))
        }
        _ => None,
    }
}

/// Time in s for which the handshake may have waited in a queue on the side of the sender, of which
/// a capture between both ends has no other round trip: all of the time, or by the distance to the
/// smallest echo of a timestamp.
fn handshake_queue(basis: &DelayBasis) -> f64 {
    let Position::Between { sender_s, .. } = basis.position else { return 0.0 };
    let Some(echo) = basis.echo.times[0] else { return sender_s };
    let second = sender_s + (echo.as_secs_f64() - sender_s).abs();
    sender_s - Interval::of_lower_end(sender_s, second).low
}

/// The handshake, and the smallest round trips of data.
fn samples(basis: &DelayBasis) -> Vec<Sample> {
    let [sender, receiver] = basis.sides.unwrap_or_default().map(Duration::as_secs_f64);
    let handshake = basis.round_trips.handshake.map(|handshake| {
        let bytes = f64::from(handshake.bytes);
        Sample { time_s: sender + receiver, packet: bytes, acknowledgement: bytes }
    });
    let acknowledgement = acknowledgement(basis);
    let other_side = basis.other_side().as_secs_f64();
    let data = data(basis).into_iter().flat_map(|class| {
        class.times.into_iter().flatten().map(move |time| Sample {
            time_s: time.as_secs_f64() + other_side,
            packet: f64::from(class.bytes),
            acknowledgement,
        })
    });
    handshake.into_iter().chain(data).collect()
}

/// The smallest round trips of data: of full-sized and of shorter segments. At the receiver, data
/// has passed the bottleneck already; what crosses it there is an acknowledgement and the data that
/// echoes its timestamp.
fn data(basis: &DelayBasis) -> Vec<&Smallest> {
    match basis.position {
        Position::Receiver => vec![&basis.echo],
        _ => vec![&basis.round_trips.full, &basis.round_trips.short],
    }
}

/// Bytes of an acknowledgement, by default with a timestamps option (RFC 7323).
fn acknowledgement(basis: &DelayBasis) -> f64 {
    f64::from(basis.round_trips.acknowledgement.unwrap_or(52))
}

/// The distance of the two smallest samples: of segments of one size, or of the handshake and a
/// segment without their transmission.
fn distance(basis: &DelayBasis, samples: &[Sample], per_byte: PerByte) -> f64 {
    if basis.position == Position::Receiver {
        let mut times: Vec<_> =
            samples.iter().map(|sample| sample.without_transmission(per_byte)).collect();
        times.sort_by(f64::total_cmp);
        return times.get(1).map_or(f64::INFINITY, |second| second - times[0]);
    }
    let of_one_size = data(basis).into_iter().filter_map(|class| match class.times {
        [Some(first), Some(second)] => Some(second.as_secs_f64() - first.as_secs_f64()),
        _ => None,
    });
    let mut distances: Vec<f64> = of_one_size.collect();
    if let Some((handshake, data)) = samples.split_first()
        && basis.round_trips.handshake.is_some()
    {
        let time = |sample: &Sample| sample.without_transmission(per_byte);
        distances.extend(data.iter().map(|sample| {
            // The rate of the reverse direction is known least: the difference of the sizes of both
            // acknowledgements counts as equal times.
            let size = (sample.acknowledgement - handshake.acknowledgement).abs();
            ((time(sample) - time(handshake)).abs() - size * per_byte.reverse).max(0.0)
        }));
    }
    distances.into_iter().min_by(f64::total_cmp).unwrap_or(f64::INFINITY)
}
