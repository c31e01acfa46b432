//! The measuring commands: `latency`, `reliability`, `outage`, `rate`, and `run` with a file.

use std::fs;
use std::process::ExitCode;

use anyhow::Context;
use gridhaul_cli::exit_code::{CHECK_FAILED, INTERRUPTED};
use gridhaul_cli::{print, say};
use gridhaul_measure::experiment;
use gridhaul_measure::measurement::{Experiment, Measurement};
use gridhaul_measure::results_folder::create;

use super::observer::TerminalObserver;
use crate::args::{Options, OutputArgs, RunFileArgs};
use crate::terminal::text;

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
            "interrupt the network under test during the messages, which take {time:.0} s after \
             the warm-up"
        ));
    }
    let result = experiment::run(measurement, folder, &observer)?;
    let report = result.report(measurement)?;
    // A result is printed also if its files cannot be written.
    print(&if output.json {
        report.json()?
    } else {
        report.tables.iter().map(text).collect::<Vec<_>>().join("\n")
    })?;
    let is_interrupted = observer.is_interrupted();
    let fault = result.fault();
    if let Some(fault) = fault.as_deref().filter(|_| !is_interrupted) {
        say(format_args!("{fault}"));
    }
    if let Some(folder) = folder {
        result.write(&report, measurement, folder)?;
        say(format_args!("results in {}", folder.display()));
    }
    Ok(match fault {
        _ if is_interrupted => ExitCode::from(INTERRUPTED),
        Some(_) => ExitCode::from(CHECK_FAILED),
        None if report.is_class_not_met => ExitCode::from(CHECK_FAILED),
        None => ExitCode::SUCCESS,
    })
}
