//! The mean payload of the report's messages, from Tables 4 and 5.
//!
//! JSON and Protobuf write a number in a varying number of bytes. The report does not state the
//! mean, but both of its protocols carried the same values, and each column limits the mean to an
//! interval.

use gridhaul_protocols::overhead::LowerLayers;

use super::{Column, Encoding, MESSAGES, Protocol, Tables};

/// Values from `low` to `high`.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Least value.
    pub low: f64,
    /// Greatest value.
    pub high: f64,
}

impl Interval {
    /// The values that are rounded to `value` at this unit.
    pub(super) const fn rounded(value: f64, unit: f64) -> Self {
        Self { low: value - unit / 2.0, high: value + unit / 2.0 }
    }

    /// Whether the value is in the interval.
    #[must_use]
    pub const fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The centre.
    #[must_use]
    pub const fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    fn intersection(self, other: Self) -> Self {
        Self { low: self.low.max(other.low), high: self.high.min(other.high) }
    }

    fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self { low: of(self.low), high: of(self.high) }
    }
}

/// Protocol and payload of a column: two rounded rows of Table 5.
fn bytes_of_rows(column: &Column) -> Interval {
    let (protocol, payload) = (column.bytes.protocol, column.bytes.payload);
    let [first, second] = [protocol, payload].map(|row| Interval::rounded(row, 1.0));
    Interval { low: first.low + second.low, high: first.high + second.high }
}

/// Bytes of a frame by the traffic of Table 4.
pub(super) fn bytes_of_traffic(column: &Column) -> Interval {
    let mib = f64::from(1 << 20);
    Interval::rounded(column.traffic_mib, 0.01).map(|traffic| traffic * mib / MESSAGES)
}

/// Protocol and payload by the traffic of Table 4, less the lower layers of its packets.
fn bytes_above_tcp(column: &Column) -> Interval {
    let LowerLayers { ethernet, ip, transport } = LowerLayers::TCP_IPV4;
    let lower = (ethernet + ip + transport) as f64 * column.packets / MESSAGES;
    bytes_of_traffic(column).map(|bytes| bytes - lower)
}

/// Mean payloads of an encoding that agree with Table 5 for MQTT and AMQP, and with Table 4 if
/// `traffic` is set. `overhead` is the sum over both legs.
pub(super) fn mean_payload(
    tables: &Tables,
    encoding: Encoding,
    traffic: bool,
    overhead: impl Fn(Protocol) -> f64,
) -> Interval {
    let all = Interval { low: 0.0, high: f64::INFINITY };
    let columns = tables.column.iter().filter(|column| column.encoding == encoding);
    columns.fold(all, |known, column| {
        let rows = bytes_of_rows(column);
        let bytes = if traffic { rows.intersection(bytes_above_tcp(column)) } else { rows };
        // The payload is in both legs: publisher to broker and broker to subscriber.
        let payload = bytes.map(|bytes| (bytes - overhead(column.protocol)) / 2.0);
        known.intersection(payload)
    })
}
