//! `gridhaul measure corruption`: the effect of bit errors above and below the checksums.

use std::process::ExitCode;

use gridhaul_cli::print;
use gridhaul_protocols::corruption::{
    Checksum, ENCODINGS, ErrorPattern, Fates, above_checksums, below_checksums, goose_events,
    sampled_values,
};
use gridhaul_report::TextTable;
use serde_json::{Value, json};

use crate::args::CorruptionArgs;
use crate::terminal::text;

/// The fates of a message with one kind of errors.
struct Row {
    place: &'static str,
    name: &'static str,
    pattern: ErrorPattern,
    fates: Fates,
}

/// Tries every error, and prints their fates.
pub(crate) fn run(args: &CorruptionArgs) -> anyhow::Result<ExitCode> {
    let (values, seed) = (args.values, args.seed);
    let mut rows = Vec::new();
    for pattern in ErrorPattern::ALL {
        let mut add = |place, name, fates| rows.push(Row { place, name, pattern, fates });
        for checksum in [Checksum::Internet, Checksum::FrameCheckSequence] {
            add("below", checksum.name(), below_checksums(checksum, 8 * values, pattern, seed));
        }
        for (name, encoding) in ENCODINGS {
            add("above", name, above_checksums(encoding, values, pattern, seed));
        }
        add("above", "Sampled Values frame", sampled_values(values, pattern, seed));
        add("above", "GOOSE frame", goose_events(values, pattern, seed));
    }
    if args.json {
        let rows: Vec<Value> = rows.iter().map(json).collect();
        let document = json!({
            "gridhaul": env!("CARGO_PKG_VERSION"),
            "command": "corruption",
            "values": values,
            "seed": seed,
            "rows": rows,
        });
        print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
    } else {
        print(&text(&table(&rows, values)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn json(row: &Row) -> Value {
    json!({
        "checksums": row.place,
        "subject": row.name,
        "errors": row.pattern.name(),
        "messages": row.fates.total(),
        "rejected": row.fates.rejected,
        "unchanged": row.fates.unchanged,
        "silently_wrong": row.fates.silently_wrong,
    })
}

fn table(rows: &[Row], values: usize) -> TextTable {
    let cells = |row: &Row| {
        let Fates { rejected, unchanged, silently_wrong } = row.fates;
        let percent =
            |count: u64| format!("{:.2} %", 100.0 * count as f64 / row.fates.total() as f64);
        let keys = [row.pattern.name().to_owned(), row.place.to_owned(), row.name.to_owned()];
        let counts = [rejected, unchanged, silently_wrong].map(percent);
        keys.into_iter().chain([row.fates.total().to_string()]).chain(counts).collect()
    };
    TextTable {
        title: format!("Bit errors in a message of {values} values"),
        headers: [
            "errors",
            "checksums",
            "subject",
            "tried",
            "rejected",
            "unchanged",
            "silently \
            wrong",
        ]
        .map(String::from)
        .to_vec(),
        rows: rows.iter().map(cells).collect(),
        key_columns: 3,
        note: Some(
            "below: the checksum sees the error; above: only the decoder does. One bit and bursts \
             are tried at every place; two \
             bits at 20,000 random pairs."
                .into(),
        ),
    }
}
