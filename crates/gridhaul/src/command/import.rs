//! `gridhaul import`: scenarios from files of other programs.

use std::fs;
use std::path::Path;

use anyhow::Context;
use gridhaul_cli::{print, say};
use gridhaul_scenario::scenario::Scenario;

use super::error::CommandError;
use crate::args::{ImportCommand, NatigArgs};
use crate::atomic_file;
use crate::natig::{self, File, Options};

/// Prints or writes the scenario.
pub(crate) fn run(command: &ImportCommand) -> Result<(), CommandError> {
    match command {
        ImportCommand::Natig(args) => import_natig(args),
    }
}

fn import_natig(args: &NatigArgs) -> Result<(), CommandError> {
    let topology = read(&args.topology)?;
    let grid = args.grid.as_deref().map(read).transpose()?;
    let name = |path: &Path| path.display().to_string();
    let (topology_name, grid_name) = (name(&args.topology), args.grid.as_deref().map(name));
    let grid = grid.as_deref().zip(grid_name.as_deref());
    let options = Options {
        poll: args.poll,
        duration: args.duration,
        request: args.request,
        response: args.response,
        all_paths: args.all_paths,
        external: args.external,
    };
    let topology = File { name: &topology_name, text: &topology };
    let grid = grid.map(|(text, name)| File { name, text });
    let text = natig::import(topology, grid, &options).map_err(anyhow::Error::new)?;
    // Names of substations and sizes are checked as those of any scenario.
    Scenario::from_toml(&text, &topology_name)?;
    let Some(out) = &args.out else { return Ok(print(&text)?) };
    atomic_file::write(out, text.as_bytes())
        .with_context(|| format!("cannot write {}", out.display()))?;
    say(format_args!("written: {}", out.display()));
    Ok(())
}

fn read(path: &Path) -> Result<String, CommandError> {
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
}
