//! Rate of the bottleneck.

use gridhaul_scenario::units::Duration;

use super::interval::{self, Interval};
use super::samples::RateSamples;
use super::{Basis, Estimate};
use crate::Position;

/// Fewest samples of busy periods.
const SAMPLES_MIN: usize = 3;

/// Fewest samples of consecutive packets: an interval of their median with a level of 99 %.
const SINGLE_MIN: usize = 8;

/// The rate of the bottleneck: by busy periods, whose acknowledgements arrive at its rate; at the
/// receiver by the distance of arriving packets (Keshav, "A control-theoretic approach to flow
/// control", SIGCOMM 1991: packet pairs).
pub(super) fn estimate(basis: &Basis<'_>) -> Option<Estimate> {
    if basis.position == Position::Receiver {
        let found = most_frequent(basis.samples.arrivals(), SINGLE_MIN, basis);
        return found.filter(|rate| is_of_pairs(rate, basis));
    }
    most_frequent(&basis.samples.acknowledged(), SAMPLES_MIN, basis)
        .or_else(|| most_frequent(basis.samples.single(), SINGLE_MIN, basis))
}

/// Largest share of distances that are much shorter than those of packet pairs: packets that wait
/// for each other's transmission do not arrive at a higher rate.
const FASTER_MAX: f64 = 0.05;

/// Time by which the handshake's packets may be late without a queue.
const HANDSHAKE_LATE: Duration = Duration::from_millis(1);

/// Whether arrivals at this rate are distances of packet pairs, and not of packets that waited for
/// acknowledgements: the smallest round trip of data, from an acknowledgement to the data that
/// echoes its timestamp, is longer than that of the handshake by about the transmission of a packet
/// at least. Without timestamps, hardly any packets are closer to each other.
fn is_of_pairs(rate: &Estimate, basis: &Basis<'_>) -> bool {
    let Some((echo, [sender, _])) = basis.echo.times[0].zip(basis.sides) else {
        let sorted = basis.samples.arrivals().sorted();
        let faster = sorted.len() - sorted.partition_point(|&sample| sample <= 1.5 * rate.value);
        return faster as f64 <= FASTER_MAX * sorted.len() as f64;
    };
    let transmission = Duration::from_secs_f64(f64::from(basis.echo.bytes) * 8.0 / rate.value);
    transmission <= echo.saturating_sub(sender).mul_f64(2.0) + HANDSHAKE_LATE
}

/// The rate at which most samples are within 10 %: acknowledgements that the receiver delays, and
/// pauses that look like a busy period, have rates that vary.
fn most_frequent(samples: &RateSamples, fewest: usize, basis: &Basis<'_>) -> Option<Estimate> {
    let sorted = samples.sorted();
    let within = |index: usize| {
        let end = sorted.partition_point(|&rate| rate <= sorted[index] * 1.1);
        end - index
    };
    let start = (0..sorted.len()).max_by_key(|&index| (within(index), index))?;
    let frequent = &sorted[start..start + within(start)];
    // Fewer than a fifth of the samples are no proof that they were transmitted without a pause.
    if frequent.len() * 5 < sorted.len() || frequent.len() < fewest {
        return None;
    }
    of_median(frequent, samples, basis)
}

fn of_median(sorted: &[f64], samples: &RateSamples, basis: &Basis<'_>) -> Option<Estimate> {
    let value = interval::middle(sorted)?;
    let order = Interval::of_median(sorted)?;
    // Each end of a sample's time is rounded to the unit of the capture's times. The transmitter of
    // the simulator rounds the time of each packet to a nanosecond.
    let packet_s = basis.packet_time_s(value);
    let unit_s = basis.time_unit_nanos as f64 * 1e-9;
    let rounding = 2.0 * unit_s / samples.time_mean_s().max(1e-9) + 1e-9 / packet_s;
    let interval = Interval {
        low: order.low * (1.0 - rounding),
        high: order.high * (1.0 + rounding),
        level: order.level,
    };
    Some(Estimate { value, interval })
}

#[cfg(test)]
mod tests {
    use gridhaul_scenario::units::Instant;

    use super::*;
    use crate::estimate::collected::Collected;

    /// Packets each 11 ms, and some after 0.6 ms: of each acknowledgement. The smallest round trip
    /// of a packet that echoes a timestamp is longer than that of the handshake by this time.
    fn found(echo_us: Option<u64>, pairs: u64) -> Option<Estimate> {
        let (mut collected, mut at) = (Collected::default(), Instant::ZERO);
        for number in 0..100 {
            at += Duration::from_micros(if number < pairs { 600 } else { 11_000 });
            collected.samples.add_arrival(at, 1_500, false, Duration::from_millis(100));
        }
        let times = echo_us.into_iter().map(|time| Duration::from_micros(100_000 + time));
        times.for_each(|time| collected.echo.add(time, 1_500));
        estimate(&Basis {
            position: Position::Receiver,
            sides: Some([Duration::from_millis(100), Duration::ZERO]),
            time_unit_nanos: 1_000,
            ..collected.basis()
        })
    }

    #[test]
    fn packets_that_wait_for_acknowledgements_do_not_show_the_rate() {
        assert!(found(Some(11_000), 5).is_some(), "transmitted in 11 ms");
        assert_eq!(found(Some(600), 5), None, "transmitted in 0.6 ms");
        assert!(found(None, 3).is_some());
        assert_eq!(found(None, 20), None, "a fifth of all packets are closer to each other");
    }
}
