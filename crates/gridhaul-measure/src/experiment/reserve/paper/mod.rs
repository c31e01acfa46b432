//! The study RESERVE D4.6: its tables, Table 5 by formula, and the messages of test 8.

mod claims;
mod efficiency;
mod messages;
mod payload_size;

use serde::{Deserialize, Serialize};

pub use claims::{RecordedClaim, RecordedVerdict};
pub use efficiency::{Comparison, LayerRow, comparisons};
pub use messages::test_messages;
pub use payload_size::Interval;

/// Number of messages of each column of Tables 4 and 5.
pub const MESSAGES: f64 = 10_000.0;

/// Tables 1 to 5.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tables {
    /// Tables 1 to 3.
    pub test: Vec<TestCase>,
    /// Tables 4 and 5.
    pub column: Vec<Column>,
}

/// A test of the report.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestCase {
    /// `1a` to `8`.
    pub number: String,
    /// Subject of the test.
    pub name: String,
    /// Power-network simulation scenarios for which the test is relevant (Table 1).
    pub scenarios: Vec<String>,
    /// Network codes for which the test is relevant (Table 2).
    pub network_codes: Vec<String>,
    /// Why the report has no result (Table 3); `None` for a test that was conducted.
    pub not_conducted: Option<String>,
}

/// A protocol with an encoding.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Heading.
    pub name: String,
    /// Protocol.
    pub protocol: Protocol,
    /// Encoding of the payload.
    pub encoding: Encoding,
    /// Table 4: packets of all messages.
    pub packets: f64,
    /// Table 4: mean bandwidth in units of 1024 bit/s.
    pub bandwidth_kbit_s: f64,
    /// Table 4: traffic of all messages in MiB.
    pub traffic_mib: f64,
    /// Table 5: mean bytes of a message.
    pub bytes: PublishedBytes,
}

/// A protocol of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// IEC 61850-9-2.
    SampledValues,
    /// MQTT 3.1.1.
    Mqtt,
    /// AMQP 0-9-1.
    Amqp,
}

/// An encoding of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encoding {
    /// 32-bit floats.
    Float,
    /// JSON of VILLASnode.
    Json,
    /// Protobuf of VILLASnode.
    Protobuf,
}

/// A column of Table 5, in bytes. A layer that the protocol does not have is 0.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedBytes {
    /// Ethernet.
    pub ethernet: f64,
    /// IPv4.
    pub ip: f64,
    /// TCP.
    pub transport: f64,
    /// SV, MQTT or AMQP.
    pub protocol: f64,
    /// Payload.
    pub payload: f64,
    /// Total as printed.
    pub total: f64,
}

impl Tables {
    /// The tables of the report, from the folder of the paper.
    #[must_use]
    pub fn published() -> Self {
        let text = include_str!("../../../../../../papers/reserve/tables.toml");
        toml::from_str(text).expect("a test reads the file")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_complete() {
        let tables = Tables::published();
        assert_eq!(tables.test.len(), 10);
        let missing = tables.test.iter().filter(|test| test.not_conducted.is_some());
        assert!(missing.map(|test| test.number.as_str()).eq(["1b", "2b", "5", "6", "7"]));
        let marks = |of: fn(&TestCase) -> &Vec<String>| -> usize {
            tables.test.iter().map(|test| of(test).len()).sum()
        };
        // Check marks of Table 1 and Table 2.
        assert_eq!(marks(|test| &test.scenarios), 38);
        assert_eq!(marks(|test| &test.network_codes), 32);
    }

    #[test]
    fn the_bandwidth_of_table_4_follows_from_its_traffic() {
        for column in Tables::published().column {
            // 100 s, in units of 1024 bit/s.
            let bandwidth = column.traffic_mib * 1024.0 * 8.0 / 100.0;
            assert!((bandwidth - column.bandwidth_kbit_s).abs() < 0.01, "{}", column.name);
        }
    }

    #[test]
    fn the_totals_of_table_5_are_sums() {
        for Column { name, bytes, .. } in Tables::published().column {
            let sum = bytes.ethernet + bytes.ip + bytes.transport + bytes.protocol + bytes.payload;
            assert_eq!(sum, bytes.total, "{name}");
        }
    }
}
