//! `gridhaul measure matrix`: all combinations of protocols, networks and settings.

mod axis;
mod plan;

use std::process::ExitCode;

use gridhaul_cli::exit_code::{CHECK_FAILED, INTERRUPTED};
use gridhaul_cli::{print, say};
use gridhaul_measure::experiment::matrix::{self, Planned, estimate};
use gridhaul_measure::results_folder::create;

use super::observer::TerminalObserver;
use crate::args::MatrixArgs;
use crate::terminal::text;

/// Measures all combinations.
pub(crate) fn run(args: &MatrixArgs) -> anyhow::Result<ExitCode> {
    let axes = args.vary.iter().map(|text| axis::axis(text)).collect::<anyhow::Result<_>>()?;
    let axes = plan::sorted(axes)?;
    let planned: Vec<Planned> = plan::plan(&axes, &args.options, args.time)?;
    if args.list {
        let commands = planned.iter().map(|planned| planned.command.clone() + "\n");
        print(&commands.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let output = &args.output;
    let folder = output.out.as_deref();
    folder.map_or(Ok(()), create)?;
    if !output.quiet {
        let (count, time) = (planned.len(), estimate(&planned));
        say(format_args!("{count} measurements, at least {:.0} s", time.as_secs_f64()));
    }
    let observer = TerminalObserver::new(output.quiet)?.without_bars();
    let done = matrix::measure(axes, &planned, folder, &observer);
    if let Some(folder) = folder {
        done.write(folder)?;
        if !output.quiet {
            say(format_args!("results in {}", folder.display()));
        }
    }
    print(&if output.json { done.json()? } else { text(&done.table()) })?;
    Ok(match () {
        () if observer.is_interrupted() => ExitCode::from(INTERRUPTED),
        () if done.has_failure() => ExitCode::from(CHECK_FAILED),
        () => ExitCode::SUCCESS,
    })
}
