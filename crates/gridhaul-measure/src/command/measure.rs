//! The measuring commands: `latency`, `reliability`, `outage`, `rate`, and `run` with a file.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use gridhaul_measure::measurement::{Experiment, Measurement};
use gridhaul_measure::report::{Report, create};
use gridhaul_measure::run::{self, MeasurementResult};

use super::observer::TerminalObserver;
use crate::args::{Options, OutputArgs, RunFileArgs};
use crate::terminal::text;
use gridhaul_cli::exit_code::{CHECK_FAILED, INTERRUPTED};
use gridhaul_cli::{print, say};

/// Runs the measurement of a file.
pub(crate) fn run_file(args: &RunFileArgs) -> anyhow::Result<ExitCode> {
    let measurement = Measurement::load(&args.file)?;
    if measurement.place.emulated().is_some() {
        // If this fails, the run reports the missing permission and the remedy.
        let _ = gridhaul_linux::become_root();
    }
    run(&measurement, &args.output)
}

/// Runs a measurement that options mean, or writes it as a file.
pub(crate) fn run_options(options: &Options) -> anyhow::Result<ExitCode> {
    let Options { measurement, output, save } = options;
    let Some(file) = save else { return run(measurement, output) };
    fs::write(file, measurement.to_toml())
        .with_context(|| format!("cannot write {}", file.display()))?;
    if !output.quiet {
        say(format_args!("the measurement is in {0}: gridhaul measure run {0}", file.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs a measurement, and prints and writes its result.
fn run(measurement: &Measurement, output: &OutputArgs) -> anyhow::Result<ExitCode> {
    let folder = output.out.as_deref();
    folder.map_or(Ok(()), create)?;
    let observer = TerminalObserver::new(output.quiet)?;
    if let Experiment::Outage(outage) = &measurement.experiment
        && outage.disturbance.is_observed()
        && !output.quiet
    {
        let time = outage.schedule.messages as f64 / outage.schedule.rate;
        say(format_args!(
            "interrupt the network under test during the messages, which take {time:.0} s after the warm-up"
        ));
    }
    let result = run::run(measurement, folder, &observer)?;
    let report = Report::new(measurement, &result)?;
    // A result is printed also if its files cannot be written.
    print(&if output.json {
        report.json()?
    } else {
        report.tables.iter().map(text).collect::<Vec<_>>().join("\n")
    })?;
    let is_interrupted = observer.is_interrupted();
    let fault = fault(&result);
    if let Some(fault) = fault.as_deref().filter(|_| !is_interrupted) {
        say(format_args!("{fault}"));
    }
    if let Some(folder) = folder {
        report.write(&measurement.experiment, &result, folder)?;
        say(format_args!("results in {}", folder.display()));
    }
    Ok(match fault {
        _ if is_interrupted => ExitCode::from(INTERRUPTED),
        Some(_) => ExitCode::from(CHECK_FAILED),
        None if report.is_class_not_met => ExitCode::from(CHECK_FAILED),
        None => ExitCode::SUCCESS,
    })
}

/// Why a result is incomplete.
fn fault(result: &MeasurementResult) -> Option<String> {
    match result {
        MeasurementResult::Run(run) => {
            Some(format!("the run ended early: {}", run.outcome.fault.as_ref()?))
        }
        MeasurementResult::Repetitions(runs) => {
            let fault = runs.iter().find_map(|run| run.fault.as_ref())?;
            Some(format!("run {} ended early: {fault}", runs.len()))
        }
        MeasurementResult::Rate(search) => {
            Some(format!("the search ended early: {}", search.fault.as_ref()?))
        }
    }
}
