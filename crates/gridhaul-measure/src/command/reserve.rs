//! `gridhaul measure reserve`.

use std::process::ExitCode;

use gridhaul_cli::exit_code::{CHECK_FAILED, INTERRUPTED};
use gridhaul_cli::{print, say};
use gridhaul_measure::experiment::reserve::{self, ReserveSettings};
use gridhaul_measure::results_folder::create;

use super::observer::TerminalObserver;
use crate::args::ReserveArgs;
use crate::terminal::text;

/// Measures, and compares with the report. The exit code is 1 if a verdict is not the recorded one,
/// or a measurement has failed.
pub(crate) fn run(args: &ReserveArgs) -> anyhow::Result<ExitCode> {
    let output = &args.output;
    let folder = output.out.as_deref();
    folder.map_or(Ok(()), create)?;
    let observer = TerminalObserver::new(output.quiet)?.without_bars();
    let settings = ReserveSettings {
        quick: args.quick,
        discards: args.force,
        parts: args.part.iter().map(|part| (*part).into()).collect(),
        systems: args.system.clone(),
        repetitions: args.repetitions,
    };
    let found = reserve::measure(&settings, folder, &observer)?;
    if let Some(folder) = folder.filter(|_| !output.quiet) {
        say(format_args!("results in {}", folder.display()));
    }
    print(&if output.json {
        found.json
    } else {
        found.tables.iter().map(text).collect::<Vec<_>>().join("\n")
    })?;
    say(format_args!("{}", found.summary));
    Ok(match () {
        () if observer.is_interrupted() => ExitCode::from(INTERRUPTED),
        () if found.has_deviation => ExitCode::from(CHECK_FAILED),
        () => ExitCode::SUCCESS,
    })
}
