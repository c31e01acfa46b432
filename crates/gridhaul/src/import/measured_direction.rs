//! A direction of a link, from the connections of a capture.

use std::fmt::Write;

use gridhaul_capture::{ConnectionExplanation, Estimate, LinkEstimate};
use gridhaul_scenario::units::{BitRate, Duration};

use super::link_scenario::{Direction, Sourced, bernoulli, delay, percent, rate};
use super::{File, ImportError};

/// Queue limit of a direction without the key `queue`.
const DEFAULT_PACKETS: f64 = 100.0;

/// The connections from which a direction is estimated.
struct Basis<'a> {
    connections: Vec<&'a ConnectionExplanation>,
    /// End of the sources of values, if the connections send in the other direction.
    note: &'static str,
}

/// A direction of the link, from the connections that send in it; without any, from the others.
/// `given_rate` replaces the rate of the capture.
pub(super) fn of(
    file: File<'_>,
    connections: &[&ConnectionExplanation],
    is_upload: bool,
    given_rate: Option<BitRate>,
) -> Result<Direction, ImportError> {
    let sending: Vec<_> = connections
        .iter()
        .copied()
        .filter(|connection| connection.is_upload == is_upload)
        .collect();
    let is_measured = !sending.is_empty();
    let basis = if is_measured {
        Basis { connections: sending, note: "" }
    } else {
        let note = "; of the other direction, assumed to be equal";
        Basis { connections: connections.to_vec(), note }
    };
    let given =
        given_rate.map(|rate| Sourced { value: rate, source: "the option --rate".to_owned() });
    let rate = given.or_else(|| basis.rate()).ok_or_else(|| {
        let message = "no connection has filled the link, so that its rate is unknown";
        file.error("the rate", message, "give it with --rate, such as --rate '10 Mbit/s'")
    })?;
    let delay = basis.delay(given_rate, rate.value).ok_or_else(|| {
        let help = "capture the handshake of a connection, or acknowledgements of its data";
        file.error("the delay", "the capture has no round trip", help)
    })?;
    let queue = basis.queue().or_else(|| basis.longest_queue());
    let loss = if is_measured { basis.loss() } else { None };
    Ok(Direction { rate, delay, loss, jitter: None, queue })
}

impl Basis<'_> {
    /// An estimate of the connection with most data among those that have it.
    fn of_most_data(
        &self,
        value: fn(&LinkEstimate) -> Option<Estimate>,
    ) -> Option<(&ConnectionExplanation, Estimate)> {
        let known = self.connections.iter().filter_map(|connection| {
            value(&connection.link).map(|estimate| (*connection, estimate))
        });
        known.max_by_key(|(connection, _)| connection.counters.payload_byte)
    }

    fn rate(&self) -> Option<Sourced<BitRate>> {
        let (connection, Estimate { value, interval }) =
            self.of_most_data(|link| link.rate_bit_per_s)?;
        let source = format!(
            "median of the busy periods of connection {}: {} {:.0} to {:.0} bit/s \
             (order statistics){}",
            connection.number,
            interval.name(),
            interval.low,
            interval.high,
            self.note
        );
        Some(Sourced { value: rate(value), source })
    }

    /// The delay by the rate of each connection, or by the given one. The rate of the link replaces
    /// one that a connection does not show: its round trips contain transmission times.
    fn delay(&self, given: Option<BitRate>, link: BitRate) -> Option<Sourced<Duration>> {
        let known = self.connections.iter().filter_map(|connection| {
            let estimate = if given.is_none() && connection.link.rate_bit_per_s.is_some() {
                connection.link.round_trip_s
            } else {
                connection.round_trip_at(link.as_bits_per_sec() as f64)
            };
            estimate.map(|estimate| (*connection, estimate))
        });
        let (fastest, trip) = known.min_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
        let source = format!(
            "half of the round trip of connection {} without transmission times: {} \
             {:.3} to {:.3} ms in both directions (end point of a distribution)",
            fastest.number,
            trip.interval.name(),
            trip.interval.low * 1e3,
            trip.interval.high * 1e3
        );
        Some(Sourced { value: delay(trip.value / 2.0), source })
    }

    fn queue(&self) -> Option<Sourced<String>> {
        let (connection, Estimate { value, interval }) =
            self.of_most_data(|link| link.buffer_byte)?;
        let source = format!(
            "queueing delay before the losses of connection {}: {:.0} to {:.0} B, in packets of \
             1,500 B{}",
            connection.number, interval.low, interval.high, self.note
        );
        Some(Sourced { value: packets(value), source })
    }

    /// The queue that the longest queueing delay shows, if it is longer than that of a link without
    /// the key: no connection has lost packets at the limit of the queue.
    fn longest_queue(&self) -> Option<Sourced<String>> {
        let queued = self.connections.iter().filter_map(|connection| {
            let rate = connection.link.rate_bit_per_s?.value;
            Some((connection.number, connection.link.queueing_max_s * rate / 8.0))
        });
        let (number, bytes) = queued.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let source = format!(
            "longest queueing delay of connection {number}, {bytes:.0} B, in packets of 1,500 B: \
             no loss shows the limit of the queue{}",
            self.note
        );
        (bytes > DEFAULT_PACKETS * 1_500.0).then(|| Sourced { value: packets(bytes), source })
    }

    /// Losses of the connection with most packets: independent, or in bursts if their length
    /// differs significantly from that of independent losses.
    fn loss(&self) -> Option<Sourced<String>> {
        let most = self.connections.iter().max_by_key(|connection| connection.counters.packets)?;
        let Estimate { value, interval } = most.link.loss.filter(|loss| loss.value > 0.0)?;
        let mut source = format!(
            "connection {}: {} {:.4} to {:.4} % of its packets, without losses of a \
             full queue (Wilson)",
            most.number,
            interval.name(),
            100.0 * interval.low,
            100.0 * interval.high
        );
        let burst = most.link.burst_packets;
        // Independent losses have runs of 1 / (1 - p) packets.
        let is_bursty = burst.is_some_and(|burst| burst.interval.low > 1.0 / (1.0 - interval.high));
        let value = match burst.filter(|_| is_bursty) {
            Some(burst) => {
                let _ = write!(
                    source,
                    "; bursts of {:.2} packets ({:.2} to {:.2})",
                    burst.value, burst.interval.low, burst.interval.high
                );
                // Of a two-state chain that loses all packets of its bad state.
                let leave = 1.0 / burst.value;
                let enter = leave * value / (1.0 - value).max(1e-9);
                format!(
                    "{{ gilbert_elliott = {{ good_to_bad = \"{} %\", bad_to_good = \"{} %\" }} }}",
                    percent(enter.min(1.0)),
                    percent(leave.min(1.0))
                )
            }
            None => bernoulli(value),
        };
        Some(Sourced { value, source })
    }
}

/// The key `queue` in packets of 1,500 bytes.
fn packets(bytes: f64) -> String {
    format!("\"{:.0} packets\"", (bytes / 1_500.0).ceil().max(1.0))
}
