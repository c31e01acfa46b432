//! One run, or several that do not share connections, broker and network, with the spread between them.

use std::path::Path;
use std::process::ExitCode;

use gridhaul_measure::agent::SILENCE;
use gridhaul_measure::method::{Spread, findings};
use gridhaul_report::format::UNKNOWN;
use gridhaul_report::{TextTable, format};
use serde_json::{Value, json};

use super::place::Interrupt;
use super::remote::{self, AgentRequest};
use super::report::{create, judge_and_publish, keep, title};
use super::run::{Run, execute_until, write};
use super::verdicts::{Verdicts, classes, tally, tally_json};
use super::{CHECK, INTERRUPTED};
use crate::args::{PathArgs, RunArgs};
use crate::terminal::{print, say, text};

/// Runs as often as requested, and publishes the results; `table` shows those of one run.
pub(super) fn run(
    args: &PathArgs,
    command: &str,
    table: fn(&Run) -> TextTable,
) -> anyhow::Result<ExitCode> {
    let PathArgs { run: args, repetitions, remote, no_echo } = args;
    args.out.as_deref().map_or(Ok(()), create)?;
    classes(args.class.as_deref())?;
    let interrupt = Interrupt::new()?;
    if *repetitions == 1 {
        let run = match remote.agent {
            Some(address) => {
                let request =
                    AgentRequest { remote, address, is_returned: !no_echo, silence: SILENCE };
                remote::execute(args, request, &interrupt)?
            }
            None => execute_until(args, &interrupt, None)?,
        };
        return judge_and_publish(args, command, &run, table(&run));
    }
    let mut done = Vec::new();
    for number in 1..=*repetitions {
        let repetition = Repetition::execute(args, (command, number), &interrupt, table)?;
        let is_complete = repetition.fault.is_none() && !interrupt.is_set();
        if !args.common.quiet {
            let median = Quantity::MEDIAN.text(&repetition);
            say(format_args!("run {number} of {repetitions}: median {median} ms"));
        }
        done.push(repetition);
        if !is_complete {
            break;
        }
    }
    publish(args, command, &done)?;
    Ok(match done.iter().find_map(|it| it.fault.as_deref()) {
        _ if interrupt.is_set() => ExitCode::from(INTERRUPTED),
        Some(fault) => {
            say(format_args!("run {} ended early: {fault}", done.len()));
            ExitCode::from(CHECK)
        }
        None if done.iter().any(|it| it.verdicts.is_chosen_class_not_met()) => {
            ExitCode::from(CHECK)
        }
        None => ExitCode::SUCCESS,
    })
}

/// One of several runs.
struct Repetition {
    title: String,
    /// Its JSON document.
    summary: Value,
    verdicts: Verdicts,
    /// Values in the order of [`Quantity::ALL`].
    values: [Option<f64>; Quantity::ALL.len()],
    messages: u64,
    missing: u64,
    /// Whether the generator was late.
    is_invalid: bool,
    fault: Option<String>,
}

/// A quantity that is compared between runs, in seconds.
#[derive(Debug, Clone, Copy)]
struct Quantity {
    heading: &'static str,
    key: &'static str,
    of: fn(&Run) -> Option<f64>,
}

impl Quantity {
    const MEDIAN: Self = Self { heading: "p50 (ms)", key: "p50_s", of: |run| latency(run, 0.5) };

    const ALL: [Self; 6] = [
        Self::MEDIAN,
        Self { heading: "p98", key: "p98_s", of: |run| latency(run, 0.98) },
        Self { heading: "p99.9", key: "p999_s", of: |run| latency(run, 0.999) },
        Self {
            heading: "max",
            key: "max_s",
            of: |run| Some(run.outcome.summary.from_send.max()?.as_secs_f64()),
        },
        Self {
            heading: "mean",
            key: "mean_s",
            of: |run| Some(run.outcome.summary.from_send.mean()?.as_secs_f64()),
        },
        Self {
            heading: "lateness p98",
            key: "lateness_p98_s",
            of: |run| Some(run.outcome.summary.lateness.quantile(0.98)?.value.as_secs_f64()),
        },
    ];

    /// The value of a run in milliseconds. `self` is one of [`ALL`](Self::ALL).
    fn text(&self, run: &Repetition) -> String {
        let value = Self::ALL.iter().zip(run.values).find(|(it, _)| it.key == self.key);
        milliseconds(value.and_then(|(_, value)| value))
    }
}

fn latency(run: &Run, share: f64) -> Option<f64> {
    Some(run.outcome.summary.from_send.quantile(share)?.value.as_secs_f64())
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| UNKNOWN.into(), |it| format!("{:.3}", it * 1e3))
}

impl Repetition {
    fn execute(
        args: &RunArgs,
        (command, number): (&str, u32),
        interrupt: &Interrupt,
        table: fn(&Run) -> TextTable,
    ) -> anyhow::Result<Self> {
        let out = args.out.as_ref().map(|folder| folder.join(format!("run-{number}")));
        out.as_deref().map_or(Ok(()), create)?;
        let args = RunArgs { out, ..args.clone() };
        let run = execute_until(&args, interrupt, None)?;
        let verdicts = Verdicts::new(&run, args.class.as_deref())?;
        let mut tables = [table(&run), verdicts.table()];
        let classes = [("classes", verdicts.json())];
        let summary = keep(args.out.as_deref(), command, &run, &mut tables, classes)?;
        let found = &run.outcome.summary;
        Ok(Self {
            title: title(&run),
            summary,
            verdicts,
            values: Quantity::ALL.map(|it| (it.of)(&run)),
            messages: found.counts.messages,
            missing: found.missing(),
            is_invalid: !findings(found).is_empty(),
            fault: run.outcome.fault,
        })
    }
}

/// Prints the runs and the spread between them, and writes the document of all runs.
fn publish(args: &RunArgs, command: &str, runs: &[Repetition]) -> anyhow::Result<()> {
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
    let verdicts: Vec<_> = runs.iter().map(|it| &it.verdicts).collect();
    let document = json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": command,
        "between_runs": between,
        "classes": tally_json(&verdicts),
        "runs": runs.iter().map(|it| &it.summary).collect::<Vec<_>>(),
    });
    let pretty = serde_json::to_string_pretty(&document)? + "\n";
    if let Some(folder) = &args.out {
        write(&Path::new(folder).join("repetitions.json"), &pretty)?;
        say(format_args!("results in {}", folder.display()));
    }
    let tables = [table(runs, &spreads), tally(&verdicts)];
    print(&if args.common.json { pretty } else { tables.map(|it| text(&it)).join("\n") })
}

fn spread_json(spread: Spread) -> Value {
    json!({
        "runs": spread.runs,
        "median": spread.median,
        "least": spread.least,
        "largest": spread.largest,
        "median_low95": spread.interval.map(|it| it[0]),
        "median_high95": spread.interval.map(|it| it[1]),
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
        cells.chain(spreads.iter().map(|it| milliseconds(it.as_ref().map(of)))).collect()
    };
    rows.extend([
        row("median", |it| it.median),
        row("least", |it| it.least),
        row("largest", |it| it.largest),
    ]);
    let headings = Quantity::ALL.map(|it| it.heading);
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
        let width = spread.largest - spread.least;
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
    if runs.iter().any(|it| it.is_invalid) {
        lines.push("* the generator was late: lateness could explain a part of the result".into());
    }
    lines.join("\n")
}
