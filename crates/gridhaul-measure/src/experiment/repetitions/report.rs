//! Results of several runs, with the spread between them.

use gridhaul_report::{TextTable, format};
use serde_json::{Value, json};

use super::{Quantity, Repetition, milliseconds};
use crate::method::Spread;
use crate::report::{Report, tally, tally_json};

/// The report of several runs: the spread between them, and the document of all.
pub(in crate::experiment) fn report(command: &str, runs: &[Repetition]) -> Report {
    let spreads: [Option<Spread>; Quantity::ALL.len()] = std::array::from_fn(|quantity| {
        Spread::of(runs.iter().filter_map(|run| run.values[quantity]))
    });
    let between: serde_json::Map<_, _> = Quantity::ALL
        .iter()
        .zip(&spreads)
        .map(|(quantity, spread)| {
            (quantity.key.to_owned(), spread.map_or(Value::Null, spread_json))
        })
        .collect();
    let verdicts: Vec<_> = runs.iter().map(|run| &run.verdicts).collect();
    let document = json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": command,
        "between_runs": between,
        "classes": tally_json(&verdicts),
        "runs": runs.iter().map(|run| &run.summary).collect::<Vec<_>>(),
    });
    let tables = vec![table(runs, &spreads), tally(&verdicts)];
    let is_class_not_met = runs.iter().any(Repetition::is_class_not_met);
    Report { tables, document, is_class_not_met }
}

fn spread_json(spread: Spread) -> Value {
    json!({
        "runs": spread.runs,
        "median": spread.median,
        "min": spread.min,
        "max": spread.max,
        "median_low95": spread.interval.map(|interval| interval[0]),
        "median_high95": spread.interval.map(|interval| interval[1]),
    })
}

/// A row for each run, and the rows of the spread.
fn table(runs: &[Repetition], spreads: &[Option<Spread>]) -> TextTable {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let mark = if run.is_invalid { " *" } else { "" };
        let mut row = vec![
            format!("{}{mark}", number + 1),
            run.messages.to_string(),
            run.missing.to_string(),
        ];
        row.extend(run.values.map(milliseconds));
        rows.push(row);
    }
    let row = |name: &str, of: fn(&Spread) -> f64| {
        let cells = [name, "", ""].map(str::to_owned).into_iter();
        cells.chain(spreads.iter().map(|spread| milliseconds(spread.as_ref().map(of)))).collect()
    };
    rows.extend([
        row("median", |spread| spread.median),
        row("min", |spread| spread.min),
        row("max", |spread| spread.max),
    ]);
    let headings = Quantity::ALL.map(|quantity| quantity.heading);
    let title = runs.first().map_or("", |run| run.title.as_str());
    TextTable {
        title: format!("{title}: {} runs, latency from the send time", runs.len()),
        headers: ["run", "messages", "missing"]
            .into_iter()
            .chain(headings)
            .map(String::from)
            .collect(),
        rows,
        key_columns: 1,
        note: Some(note(runs, spreads[0])),
    }
}

/// The spread of the medians, and what limits it.
fn note(runs: &[Repetition], medians: Option<Spread>) -> String {
    let mut lines = Vec::new();
    if let Some(spread) = medians {
        let width = spread.max - spread.min;
        let share = if spread.median > 0.0 { 100.0 * width / spread.median } else { 0.0 };
        lines.push(format!(
            "median of the medians: {} ms; the medians differ by up to {} ms, {} % of it",
            milliseconds(Some(spread.median)),
            milliseconds(Some(width)),
            format::number(share),
        ));
        lines.push(match spread.interval {
            Some([low, high]) => format!(
                "the median of all possible runs is between {} and {} ms (95 % confidence)",
                milliseconds(Some(low)),
                milliseconds(Some(high))
            ),
            None => "at least six runs are needed for a confidence interval of the median".into(),
        });
    }
    if runs.iter().any(|run| run.is_invalid) {
        lines.push("* the generator was late: lateness could explain a part of the result".into());
    }
    lines.join("\n")
}
