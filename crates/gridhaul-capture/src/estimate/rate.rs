//! Rate of the bottleneck.

use super::interval::{self, Interval};
use super::samples::RateSamples;
use super::{Basis, Estimate};

/// Fewest samples of busy periods.
const SAMPLES_MIN: usize = 3;

/// Fewest samples of consecutive packets: an interval of their median with a level of 99 %.
const SINGLE_MIN: usize = 8;

/// The rate of the bottleneck: by busy periods, whose acknowledgements arrive at its rate; at the
/// receiver by the distance of arriving packets (Keshav, "A control-theoretic approach to flow
/// control", SIGCOMM 1991: packet pairs).
pub(super) fn estimate(basis: &Basis<'_>) -> Option<Estimate> {
    if basis.is_at_receiver {
        return most_frequent(basis.samples.arrivals(), SINGLE_MIN, basis);
    }
    most_frequent(&basis.samples.acknowledged(), SAMPLES_MIN, basis)
        .or_else(|| most_frequent(basis.samples.single(), SINGLE_MIN, basis))
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
    let order = Interval::of_median(sorted);
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
