//! `gridhaul measure matrix`: all combinations of protocols, networks and settings.

mod axis;
mod plan;
mod report;

use std::process::ExitCode;

use serde_json::json;

use self::axis::Axis;
use self::plan::Planned;
use super::cells::{CellResult, measure_each};
use super::place::Interrupt;
use super::report::create;
use super::run::write;
use super::{CHECK, INTERRUPTED};
use crate::args::MatrixArgs;
use crate::terminal::{message, print, say, text};

/// A measurement that was made.
struct Done {
    values: Vec<Option<String>>,
    command: String,
    /// `None` if no message arrived, or if the measurement failed.
    result: Option<CellResult>,
    /// Why it failed.
    error: Option<String>,
}

/// Measures all combinations.
pub(crate) fn run(args: &MatrixArgs) -> anyhow::Result<ExitCode> {
    let axes = args.vary.iter().map(|text| Axis::parse(text)).collect::<anyhow::Result<_>>()?;
    let axes = plan::sorted(axes)?;
    let planned = plan::plan(&axes, &args.options, args.time)?;
    if args.list {
        let commands = planned.iter().map(|it| it.command.clone() + "\n");
        print(&commands.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    args.results.out.as_deref().map_or(Ok(()), create)?;
    if !args.results.quiet {
        let (count, time) = (planned.len(), plan::estimate(&planned));
        say(format_args!("{count} measurements, at least {:.0} s", time.as_secs_f64()));
    }
    let interrupt = Interrupt::new()?;
    let done = measure(args, &planned, &interrupt);
    publish(args, &axes, &done, interrupt.is_set())?;
    Ok(match done.iter().find_map(|it| it.error.as_deref()) {
        _ if interrupt.is_set() => ExitCode::from(INTERRUPTED),
        Some(_) => ExitCode::from(CHECK),
        None => ExitCode::SUCCESS,
    })
}

fn measure(args: &MatrixArgs, planned: &[Planned], interrupt: &Interrupt) -> Vec<Done> {
    let mut done = Vec::new();
    let runs: Vec<_> = planned
        .iter()
        .enumerate()
        .map(|(number, it)| {
            let mut run = it.args.clone();
            run.out = args.results.out.as_ref().map(|out| out.join(folder(number)));
            run
        })
        .collect();
    measure_each(&runs, interrupt, &mut |number, outcome| {
        let Planned { values, command, .. } = planned[number].clone();
        let (result, error) = match outcome {
            Ok(result) => (result, None),
            Err(error) => (None, Some(message(&error))),
        };
        if !args.results.quiet {
            let total = planned.len();
            say(format_args!("{} of {total}: {command}", number + 1));
            error.iter().for_each(|error| say(format_args!("  {error}")));
        }
        done.push(Done { values, command, result, error });
    });
    done
}

/// The folder of a measurement.
fn folder(number: usize) -> String {
    format!("measurement-{:03}", number + 1)
}

fn publish(
    args: &MatrixArgs,
    axes: &[Axis],
    done: &[Done],
    interrupted: bool,
) -> anyhow::Result<()> {
    let cells = done.iter().enumerate().map(|(number, it)| {
        let names = axes.iter().map(|axis| axis.option.clone());
        let parameters: serde_json::Map<_, _> =
            names.zip(it.values.iter().map(|value| json!(value))).collect();
        json!({
            "parameters": parameters,
            "command": it.command,
            "folder": args.results.out.as_ref().map(|_| folder(number)),
            "result": it.result,
            "error": it.error,
        })
    });
    let document = json!({
        "gridhaul": env!("CARGO_PKG_VERSION"),
        "command": "matrix",
        "complete": !interrupted,
        "measurements": cells.collect::<Vec<_>>(),
    });
    let pretty = serde_json::to_string_pretty(&document)? + "\n";
    let table = report::table(axes, done);
    if let Some(out) = &args.results.out {
        write(&out.join("matrix.json"), &pretty)?;
        write(&out.join("report.html"), &report::html(axes, done, &table))?;
        if !args.results.quiet {
            say(format_args!("results in {}", out.display()));
        }
    }
    print(&if args.results.json { pretty } else { text(&table) })
}
