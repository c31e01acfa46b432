//! `gridhaul measure efficiency`: bytes of a message by layer, by formula.

use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_measure::reserve::{Comparison, Interval, Tables, comparisons, message_sizes};
use gridhaul_report::TextTable;
use serde_json::json;

use crate::args::EfficiencyArgs;
use crate::terminal::{print, text};

/// Prints Table 5 of RESERVE D4.6 beside its formulas, and one message in each protocol.
pub(crate) fn run(args: &EfficiencyArgs) -> anyhow::Result<ExitCode> {
    let comparisons = comparisons(&Tables::published());
    if args.json {
        let messages = message_sizes(args.payload).into_iter();
        let messages =
            messages.map(|(protocol, bytes)| json!({ "protocol": protocol, "bytes": bytes }));
        let document = json!({ "table_5": comparisons, "messages": messages.collect::<Vec<_>>() });
        print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        let tables = [table_5(&comparisons), payloads(&comparisons), one_message(args.payload)];
        print(&tables.map(|table| text(&table)).join("\n"))?;
    }
    let deviating = comparisons.iter().filter(|it| it.rows.iter().any(|row| !row.agrees));
    let names: Vec<_> = deviating.map(|it| it.name.as_str()).collect();
    ensure!(names.is_empty(), "the formula deviates from Table 5: {}", names.join("; "));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn table_5(comparisons: &[Comparison]) -> TextTable {
    let names = comparisons.iter().map(|it| it.name.clone());
    let layers = comparisons.first().map_or(0, |it| it.rows.len());
    let mut rows = Vec::new();
    for layer in 0..layers {
        let of = |cell: &dyn Fn(&Comparison) -> String| comparisons.iter().map(cell).collect();
        let name = comparisons[0].rows[layer].layer;
        let report: Vec<_> = of(&|it| format!("{}", it.rows[layer].report_bytes));
        let formula: Vec<_> = of(&|it| format!("{:.1}", it.rows[layer].formula_bytes));
        rows.push([vec![name.into(), "report".into()], report].concat());
        rows.push([vec![String::new(), "formula".into()], formula].concat());
    }
    TextTable {
        title: "RESERVE D4.6, Table 5: mean bytes of a message by layer, both legs".into(),
        headers: ["layer", "source"].map(String::from).into_iter().chain(names).collect(),
        rows,
        key_columns: 2,
        note: Some(
            "Every row agrees within its rounding. The packets of Table 4 determine Ethernet, IPv4 and TCP."
                .into(),
        ),
    }
}

pub(super) fn payloads(comparisons: &[Comparison]) -> TextTable {
    let interval = |it: Interval, digits| format!("{:.digits$} to {:.digits$}", it.low, it.high);
    let row = |it: &Comparison| {
        let total = it.rows.last().map_or(0.0, |row| row.formula_bytes);
        vec![
            it.name.clone(),
            format!("{}", it.publish_overhead_bytes),
            format!("{}", it.deliver_overhead_bytes),
            interval(it.mean_payload_table_5, 2),
            interval(it.mean_payload_tables_4_and_5, 2),
            format!("{total:.1}"),
            interval(it.total_table_4, 1),
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

fn one_message(payload: u64) -> TextTable {
    let rows = message_sizes(payload).into_iter().map(|(name, it)| {
        let layers = [it.ethernet, it.ip, it.transport, it.protocol, it.payload, it.total()];
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
