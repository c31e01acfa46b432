//! `gridhaul measure matrix`: all combinations of protocols, networks and settings.

mod axis;
mod plan;

use std::process::ExitCode;

use gridhaul_measure::experiment::matrix::{self, Planned, estimate};
use gridhaul_measure::report::create;

use self::axis::VariedOption;
use super::observer::TerminalObserver;
use crate::args::MatrixArgs;
use crate::terminal::text;
use gridhaul_cli::exit_code::{CHECK_FAILED, INTERRUPTED};
use gridhaul_cli::{print, say};

/// Measures all combinations.
pub(crate) fn run(args: &MatrixArgs) -> anyhow::Result<ExitCode> {
    let varied =
        args.vary.iter().map(|text| VariedOption::parse(text)).collect::<anyhow::Result<_>>()?;
    let varied = plan::sorted(varied)?;
    let planned: Vec<Planned> = plan::plan(&varied, &args.options, args.time)?;
    if args.list {
        let commands = planned.iter().map(|planned| planned.command.clone() + "\n");
        print(&commands.collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let results = &args.results;
    let folder = results.out.as_deref();
    folder.map_or(Ok(()), create)?;
    if !results.quiet {
        let (count, time) = (planned.len(), estimate(&planned));
        say(format_args!("{count} measurements, at least {:.0} s", time.as_secs_f64()));
    }
    let observer = TerminalObserver::new(results.quiet)?.without_bars();
    let axes = varied.into_iter().map(|option| option.axis).collect();
    let done = matrix::measure(axes, &planned, folder, &observer);
    if let Some(folder) = folder {
        done.write(folder)?;
        if !results.quiet {
            say(format_args!("results in {}", folder.display()));
        }
    }
    print(&if results.json { done.json()? } else { text(&done.table()) })?;
    Ok(match () {
        () if observer.is_interrupted() => ExitCode::from(INTERRUPTED),
        () if done.has_failure() => ExitCode::from(CHECK_FAILED),
        () => ExitCode::SUCCESS,
    })
}
