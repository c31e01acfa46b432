//! `gridhaul measure efficiency`: bytes of a message by layer, by formula.

use std::process::ExitCode;

use anyhow::ensure;
use gridhaul_cli::print;
use gridhaul_measure::experiment::reserve::paper::{Tables, comparisons};
use gridhaul_measure::experiment::reserve::{one_message, payloads, table_5};
use gridhaul_measure::message_sizes::message_sizes;
use serde_json::json;

use crate::args::EfficiencyArgs;
use crate::terminal::text;

/// Prints Table 5 of RESERVE D4.6 with its formulas, and one message in each protocol.
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
    let deviating = comparisons.iter().filter(|column| column.rows.iter().any(|row| !row.agrees));
    let names: Vec<_> = deviating.map(|column| column.name.as_str()).collect();
    ensure!(names.is_empty(), "the formula deviates from Table 5: {}", names.join("; "));
    Ok(ExitCode::SUCCESS)
}
