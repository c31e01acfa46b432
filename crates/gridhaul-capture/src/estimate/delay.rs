//! Propagation delay of both directions.

use super::interval::Interval;
use super::{Basis, Estimate};

/// The smallest round trip of a full path, without the time to transmit the packets.
///
/// The round trip of a packet of `b` bytes is at least the propagation delay, `b` bytes at the rate
/// of the bottleneck, and the acknowledgement at the rate of the reverse direction. That rate is
/// unknown: the interval reaches from the rate of the bottleneck to a transmission without time.
pub(super) fn estimate(basis: &Basis<'_>, rate: Option<&Estimate>) -> Option<Estimate> {
    let trips = basis.round_trips;
    let handshake = trips.handshake.map(|handshake| (handshake.time, handshake.bytes));
    let acknowledgement = handshake.map_or(52.0, |(_, bytes)| f64::from(bytes));
    let classes = [&trips.full, &trips.short];
    let samples = classes
        .into_iter()
        .flat_map(|class| class.times.into_iter().flatten().map(|time| (time, class.bytes)));
    let sender_side = basis.sender_side.as_secs_f64();
    // Seconds for a byte: with the lower and the upper end of the rate's interval, and the
    // estimate.
    let per_byte = |rate: f64| if rate > 0.0 { 8.0 / rate } else { 0.0 };
    let [slow, fast, likely] = match rate {
        Some(rate) => [rate.interval.low, rate.interval.high, rate.value].map(per_byte),
        None => [0.0; 3],
    };
    let without_transmission = |per_byte: f64, acknowledged: f64| {
        let mut times: Vec<f64> = handshake
            .into_iter()
            .chain(samples.clone())
            .map(|(time, bytes)| {
                let transmission = (f64::from(bytes) + acknowledged) * per_byte;
                time.as_secs_f64() + sender_side - transmission
            })
            .collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let likely_times = without_transmission(likely, acknowledgement);
    let value = likely_times.first().copied()?.max(0.0);
    let low = without_transmission(slow, acknowledgement);
    let high = without_transmission(fast, 0.0);
    // Samples of one size differ by their delay only.
    let gaps = classes.into_iter().filter_map(|class| match class.times {
        [Some(first), Some(second)] => Some(second.as_secs_f64() - first.as_secs_f64()),
        _ => None,
    });
    let second = low.first()? + gaps.min_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    let rounding = 4.0 * (basis.time_unit_nanos as f64 + 1.0) * 1e-9;
    // Times that are equal in the capture may differ by two of its units.
    let second = second + 2.0 * basis.time_unit_nanos as f64 * 1e-9;
    let end = Interval::of_lower_end(low[0].max(0.0), second.max(0.0));
    let interval = Interval {
        low: (end.low - rounding).max(0.0),
        high: high.first().copied()?.max(0.0) + rounding,
        level: end.level,
    };
    Some(Estimate { value, interval })
}
