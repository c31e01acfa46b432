//! Tables of the bytes of a message by layer: those of the report, and by formula.

use gridhaul_report::TextTable;

use super::paper::{Comparison, Interval};
use crate::message_sizes::message_sizes;

/// Table 5 of RESERVE D4.6 and its formulas.
#[must_use]
pub fn table_5(comparisons: &[Comparison]) -> TextTable {
    let names = comparisons.iter().map(|comparison| comparison.name.clone());
    let layers = comparisons.first().map_or(0, |comparison| comparison.rows.len());
    let mut rows = Vec::new();
    for layer in 0..layers {
        let cells = |cell: &dyn Fn(&Comparison) -> String| comparisons.iter().map(cell).collect();
        let name = comparisons[0].rows[layer].layer;
        let report: Vec<_> =
            cells(&|comparison| format!("{}", comparison.rows[layer].report_bytes));
        let formula: Vec<_> =
            cells(&|comparison| format!("{:.1}", comparison.rows[layer].formula_bytes));
        rows.push([vec![name.into(), "report".into()], report].concat());
        rows.push([vec![String::new(), "formula".into()], formula].concat());
    }
    TextTable {
        title: "RESERVE D4.6, Table 5: mean bytes of a message by layer, both legs".into(),
        headers: ["layer", "source"].map(String::from).into_iter().chain(names).collect(),
        rows,
        key_columns: 2,
        note: Some(
            "Every row agrees within its rounding. The packets of Table 4 determine Ethernet, \
             IPv4 and TCP."
                .into(),
        ),
    }
}

/// Protocol bytes of each leg, and the payload that the report determines.
#[must_use]
pub fn payloads(comparisons: &[Comparison]) -> TextTable {
    let interval =
        |range: Interval, digits| format!("{:.digits$} to {:.digits$}", range.low, range.high);
    let row = |comparison: &Comparison| {
        let total = comparison.rows.last().map_or(0.0, |row| row.formula_bytes);
        vec![
            comparison.name.clone(),
            format!("{}", comparison.publish_overhead_bytes),
            format!("{}", comparison.deliver_overhead_bytes),
            interval(comparison.mean_payload_table_5, 2),
            interval(comparison.mean_payload_tables_4_and_5, 2),
            format!("{total:.1}"),
            interval(comparison.total_table_4, 1),
        ]
    };
    let headers = [
        "column",
        "publish (B)",
        "deliver (B)",
        "payload, Table 5 (B)",
        "payload, Tables 4 and 5 (B)",
        "total (B)",
        "total, Table 4 (B)",
    ];
    TextTable {
        title: "Protocol bytes of each leg, and the mean payload that the report determines".into(),
        headers: headers.map(String::from).into(),
        rows: comparisons.iter().map(row).collect(),
        key_columns: 1,
        note: Some(
            "Sampled Values: Table 4 contains 4 B for each frame that Table 5 does not list, the \
             size of a VLAN tag."
                .into(),
        ),
    }
}

/// One message in each protocol.
#[must_use]
pub fn one_message(payload: u64) -> TextTable {
    let rows = message_sizes(payload).into_iter().map(|(name, sizes)| {
        let layers = [
            sizes.ethernet,
            sizes.ip,
            sizes.transport,
            sizes.protocol,
            sizes.payload,
            sizes.total(),
        ];
        std::iter::once(name.to_owned()).chain(layers.map(|bytes| format!("{bytes}"))).collect()
    });
    let headers = ["protocol", "Ethernet", "IPv4", "TCP/UDP", "protocol", "payload", "total"];
    TextTable {
        title: format!(
            "One message of {payload} B from the publisher, without acknowledgements, in bytes"
        ),
        headers: headers.map(String::from).into(),
        rows: rows.collect(),
        key_columns: 1,
        ..TextTable::default()
    }
}
