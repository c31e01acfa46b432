//! Table 5 by formula.
//!
//! The report does not state these settings: names are those of the VILLASnode documentation, and
//! they are confirmed by the sums of the table. See the page of the paper.

use gridhaul_protocols::overhead::{LayerBytes, LowerLayers};
use serde::Serialize;

use super::payload_size::{Interval, bytes_of_traffic, mean_payload};
use super::{Column, Encoding, MESSAGES, Protocol, Tables};
use crate::message_sizes::{AMQP_NAMES, MQTT_PUBLISH, SAMPLED_VALUES_NAMES};

/// Bytes of 10 32-bit floats.
const FLOATS: u64 = 40;

/// Two rows are rounded to a byte: their sum is known to one byte.
const ROUNDING: f64 = 1.0;

/// A column of Table 5 with its formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Heading of the column.
    pub name: String,
    /// Layers, then the total.
    pub rows: Vec<LayerRow>,
    /// Mean payload of a message on each leg.
    pub mean_payload_bytes: f64,
    /// Mean payloads that agree with Table 5.
    pub mean_payload_table_5: Interval,
    /// Mean payloads that agree with Tables 4 and 5.
    pub mean_payload_tables_4_and_5: Interval,
    /// Protocol bytes of the publisher's leg, besides the payload.
    pub publish_overhead_bytes: f64,
    /// Protocol bytes of the subscriber's leg; 0 without a broker.
    pub deliver_overhead_bytes: f64,
    /// Bytes of a message on the wire that agree with the traffic of Table 4.
    pub total_table_4: Interval,
}

/// A layer of a column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LayerRow {
    /// Name of the layer.
    pub layer: &'static str,
    /// Table 5.
    pub report_bytes: f64,
    /// By formula.
    pub formula_bytes: f64,
    /// Greatest deviation that rounding explains.
    pub tolerance_bytes: f64,
    /// Whether the deviation is at most the tolerance.
    pub agrees: bool,
}

/// Table 5 of the report compared with its formulas.
#[must_use]
pub fn comparisons(tables: &Tables) -> Vec<Comparison> {
    tables.column.iter().map(|column| comparison(tables, column)).collect()
}

fn comparison(tables: &Tables, column: &Column) -> Comparison {
    let payload = |traffic| {
        if column.encoding == Encoding::Float {
            Interval::rounded(FLOATS as f64, 0.0)
        } else {
            mean_payload(tables, column.encoding, traffic, |protocol| {
                legs(protocol, 128).iter().sum()
            })
        }
    };
    let mean_payload_table_5 = payload(false);
    let mean = mean_payload_table_5.middle();
    let [publish, deliver] = legs(column.protocol, mean as u64);
    let has_broker = column.protocol != Protocol::SampledValues;
    let carried = if has_broker { 2.0 * mean } else { mean };
    let lower = if has_broker { LowerLayers::TCP_IPV4 } else { LowerLayers::ETHERNET };
    // The report subtracts its payload once from the bytes of both legs; its row of the payload is
    // that of one message.
    let protocol = publish + deliver + carried - column.bytes.payload;
    let packets = column.packets / MESSAGES;
    let formula = LayerBytes::new(lower, packets, protocol, column.bytes.payload);
    Comparison {
        name: column.name.clone(),
        rows: rows(column, &formula),
        mean_payload_bytes: mean,
        mean_payload_table_5,
        mean_payload_tables_4_and_5: payload(true),
        publish_overhead_bytes: publish,
        deliver_overhead_bytes: deliver,
        total_table_4: bytes_of_traffic(column),
    }
}

fn rows(column: &Column, formula: &LayerBytes) -> Vec<LayerRow> {
    let bytes = &column.bytes;
    // A row is rounded to the nearest byte. The bytes of the protocol are the rest of a sum with
    // the rounded payload.
    let layers = [
        ("Ethernet", bytes.ethernet, formula.ethernet, ROUNDING / 2.0),
        ("IPv4", bytes.ip, formula.ip, ROUNDING / 2.0),
        ("TCP", bytes.transport, formula.transport, ROUNDING / 2.0),
        ("protocol", bytes.protocol, formula.protocol, ROUNDING),
        ("payload", bytes.payload, formula.payload, 0.0),
        // The report's total is the sum of rounded rows.
        ("total", bytes.total, formula.total(), 5.0 * ROUNDING / 2.0),
    ];
    let row = |(layer, report_bytes, formula_bytes, tolerance_bytes): (_, f64, f64, f64)| {
        // Sums of decimal fractions are exact to 1e-9.
        let agrees = (report_bytes - formula_bytes).abs() <= tolerance_bytes + 1e-9;
        LayerRow { layer, report_bytes, formula_bytes, tolerance_bytes, agrees }
    };
    layers.map(row).into()
}

/// Bytes besides the payload: from the publisher, and to the subscriber.
fn legs(protocol: Protocol, payload: u64) -> [f64; 2] {
    match protocol {
        Protocol::SampledValues => [SAMPLED_VALUES_NAMES.overhead(FLOATS) as f64, 0.0],
        // The broker forwards a PUBLISH packet of the same length.
        Protocol::Mqtt => [MQTT_PUBLISH.overhead(payload) as f64; 2],
        Protocol::Amqp => {
            [AMQP_NAMES.publish_overhead(), AMQP_NAMES.deliver_overhead()].map(|bytes| bytes as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formulas_agree_with_every_row_of_table_5() {
        for comparison in comparisons(&Tables::published()) {
            for row in &comparison.rows {
                assert!(row.agrees, "{}: {row:?}", comparison.name);
            }
        }
    }

    #[test]
    fn one_mean_payload_for_each_encoding_agrees_with_tables_4_and_5() {
        let comparisons = comparisons(&Tables::published());
        for (names, low, high) in [
            (["MQTT, JSON", "AMQP, JSON"], 295.57, 295.65),
            (["MQTT, Protobuf", "AMQP, Protobuf"], 131.49, 131.57),
        ] {
            for name in names {
                let found = comparisons.iter().find(|comparison| comparison.name == name).unwrap();
                let interval = found.mean_payload_tables_4_and_5;
                assert!(interval.low <= interval.high, "{name}: {interval:?}");
                assert!(low <= interval.low && interval.high <= high, "{name}: {interval:?}");
            }
        }
    }

    /// The difference between AMQP and MQTT does not depend on the payload: 170 - 30 bytes, within
    /// rounding.
    #[test]
    fn the_difference_between_amqp_and_mqtt_is_that_of_the_names() {
        let tables = Tables::published();
        for encoding in [Encoding::Json, Encoding::Protobuf] {
            let bytes_of = |protocol| {
                let known =
                    |column: &&Column| column.encoding == encoding && column.protocol == protocol;
                let bytes = tables.column.iter().find(known).unwrap().bytes;
                bytes.protocol + bytes.payload
            };
            let difference = bytes_of(Protocol::Amqp) - bytes_of(Protocol::Mqtt);
            assert!((difference - 140.0).abs() <= 2.0 * ROUNDING, "{encoding:?}: {difference}");
        }
    }

    /// Table 5 has no row for a VLAN tag; Table 4 counts one in each frame of Sampled Values.
    #[test]
    fn the_traffic_of_sampled_values_contains_a_vlan_tag() {
        let tables = Tables::published();
        let column =
            tables.column.iter().find(|column| column.encoding == Encoding::Float).unwrap();
        let traffic = bytes_of_traffic(column);
        let above = SAMPLED_VALUES_NAMES.overhead(FLOATS) + FLOATS;
        let untagged = LowerLayers::ETHERNET.ethernet + above;
        assert!(!traffic.contains(untagged as f64));
        // A VLAN tag has 4 bytes (IEEE 802.1Q, section 9.3).
        assert!(traffic.contains((untagged + 4) as f64));
    }
}
