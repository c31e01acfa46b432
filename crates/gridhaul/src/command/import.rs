//! `gridhaul import`: scenarios from files of other programs.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow};
use gridhaul_cli::{print, say};
use gridhaul_scenario::scenario::{PowerLineClass, Scenario};

use super::error::CommandError;
use super::explain;
use crate::args::{
    ImportCommand, IperfArgs, MetersArgs, NatigArgs, PcapArgs, PingArgs, PowerLine, TopologyArgs,
};
use crate::atomic_file;
use crate::import::{File, ImportError, capture, iperf, meters, ping, topology};
use crate::natig::{self, Options};

/// Prints or writes the scenario.
pub(crate) fn run(command: &ImportCommand) -> Result<(), CommandError> {
    match command {
        ImportCommand::Natig(args) => import_natig(args),
        ImportCommand::Pcap(args) => import_pcap(args),
        ImportCommand::Iperf(args) => import_iperf(args),
        ImportCommand::Ping(args) => import_ping(args),
        ImportCommand::Meters(args) => import_meters(args),
        ImportCommand::Topology(args) => import_topology(args),
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
    finish(natig::import(topology, grid, &options), &args.topology, args.scenario.out.as_deref())
}

fn import_pcap(args: &PcapArgs) -> Result<(), CommandError> {
    let explanation = explain::read(&args.captures, gridhaul_capture::explain, args.quiet)?;
    if explanation.is_interrupted {
        return Err(CommandError::Interrupted("interrupted: nothing is written".to_owned()));
    }
    let options = capture::Options { rate: args.rate, ..capture::Options::default() };
    let name = explain::shown(&args.captures);
    let imported = capture::import(&name, &explanation, &options).map_err(anyhow::Error::new)?;
    if args.out.exists() {
        return Err(anyhow!(
            "{} exists\n  help: give another folder with --out, or remove this one",
            args.out.display()
        )
        .into());
    }
    let create = || format!("cannot create {}", args.out.display());
    fs::create_dir_all(&args.out).with_context(create)?;
    for (name, rows) in &imported.traces {
        write(&args.out.join(name), rows)?;
    }
    let path = args.out.join("scenario.toml");
    Scenario::from_toml(&imported.scenario, &path.display().to_string())?;
    write(&path, &imported.scenario)?;
    if !args.quiet {
        say(format_args!("written: {} and {} traces", path.display(), imported.traces.len()));
    }
    Ok(())
}

fn import_iperf(args: &IperfArgs) -> Result<(), CommandError> {
    let options = iperf::Options { rate: args.rate, delay: args.delay };
    convert(&args.log, args.scenario.out.as_deref(), |file| iperf::import(file, &options))?;
    if args.delay.is_none() {
        say(format_args!(
            "warning: the delay contains the queue of the test, because iperf3 samples round trips \
             while it fills the link\n  help: measure an idle link by ping, and give half of its \
             round trip with --delay"
        ));
    }
    Ok(())
}

fn import_ping(args: &PingArgs) -> Result<(), CommandError> {
    let options = ping::Options { rate: args.rate, size: args.size, every: args.every };
    convert(&args.output, args.scenario.out.as_deref(), |file| ping::import(file, &options))
}

fn import_meters(args: &MetersArgs) -> Result<(), CommandError> {
    let options = meters::Options {
        power_line: match args.power_line {
            PowerLine::Narrowband => PowerLineClass::Narrowband,
            PowerLine::Broadband => PowerLineClass::Broadband,
            PowerLine::FutureBroadband => PowerLineClass::FutureBroadband,
        },
        rate: args.rate,
        delay: args.delay,
        size: args.size,
        every: args.every,
    };
    convert(&args.table, args.scenario.out.as_deref(), |file| meters::import(file, &options))
}

fn import_topology(args: &TopologyArgs) -> Result<(), CommandError> {
    let options = topology::Options {
        rate: args.rate,
        delay: args.delay,
        rate_unit: args.rate_unit.clone(),
        delay_unit: args.delay_unit.clone(),
        centre: args.centre.clone(),
        size: args.size,
        every: args.every,
    };
    convert(&args.graph, args.scenario.out.as_deref(), |file| topology::import(file, &options))
}

/// Reads a file, converts it, and prints or writes the scenario.
fn convert(
    path: &Path,
    out: Option<&Path>,
    import: impl FnOnce(File<'_>) -> Result<String, ImportError>,
) -> Result<(), CommandError> {
    let text = read(path)?;
    let name = path.display().to_string();
    finish(import(File { name: &name, text: &text }), path, out)
}

/// Checks a scenario, and prints or writes it.
fn finish(
    imported: Result<String, ImportError>,
    source: &Path,
    out: Option<&Path>,
) -> Result<(), CommandError> {
    let text = imported.map_err(anyhow::Error::new)?;
    // Names of nodes and sizes are checked as those of any scenario.
    Scenario::from_toml(&text, &source.display().to_string())?;
    let Some(out) = out.filter(|out| *out != Path::new("-")) else { return Ok(print(&text)?) };
    write(out, &text)?;
    say(format_args!("written: {}", out.display()));
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = || format!("cannot write {}", path.display());
    Ok(atomic_file::write(path, text.as_bytes()).with_context(failed)?)
}

fn read(path: &Path) -> Result<String, CommandError> {
    Ok(fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?)
}
