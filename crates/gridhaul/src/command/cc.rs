//! `gridhaul cc`: congestion control for this machine's kernel.

use std::fs;
use std::sync::mpsc;

use anyhow::{Context, bail};
use gridhaul_cc::{
    Algorithm, Counters, Error, LoadedAlgorithms, LoadedSettings, MedxSettings, Settings, Status,
    VegasSettings,
};
use gridhaul_cli::{print, say, signal};
use gridhaul_report::TextTable;

use super::error::CommandError;
use crate::args::{CcAlgorithm, CcCommand, CcLoadArgs};
use crate::terminal::print_tables;

/// Runs one of the commands.
pub(crate) fn run(command: &CcCommand) -> Result<(), CommandError> {
    match command {
        CcCommand::Load(args) => load(args),
        CcCommand::Unload(args) => unload(&chosen(&args.algorithms)),
        CcCommand::List => list(),
        CcCommand::Status => status(),
    }
}

fn load(args: &CcLoadArgs) -> Result<(), CommandError> {
    let algorithms = chosen(&args.algorithms);
    reject_unused_options(args, &algorithms)?;
    let settings = settings(args);
    // The handler is installed before anything is loaded, so that an early Ctrl-C is not missed.
    let (sender, interrupted) = mpsc::channel();
    if args.hold {
        signal::on_signal(move || _ = sender.send(())).context("waiting for Ctrl-C")?;
    }
    let loaded = LoadedAlgorithms::load(&algorithms, &settings)?;
    let names = names(&algorithms);
    if args.hold {
        print(&format!("loaded until Ctrl-C: {names}\n"))?;
        let _ = interrupted.recv();
        return Ok(());
    }
    loaded.pin()?;
    let first = algorithms.first().map_or("", |algorithm| algorithm.name());
    Ok(print(&format!(
        "loaded: {names}\n\
         use on one route:  ip route change <route> congctl {first}\n\
         use as default:    sysctl net.ipv4.tcp_congestion_control={first}\n\
         unload:            gridhaul cc unload\n"
    ))?)
}

/// Rejects options of an algorithm that is not loaded: they would have no effect.
fn reject_unused_options(args: &CcLoadArgs, algorithms: &[Algorithm]) -> anyhow::Result<()> {
    let options = [
        (Algorithm::Vegas, "--vegas-alpha", args.vegas_alpha.is_some()),
        (Algorithm::Vegas, "--vegas-beta", args.vegas_beta.is_some()),
        (Algorithm::Vegas, "--vegas-gamma", args.vegas_gamma.is_some()),
        (Algorithm::Medx, "--medx-alpha", args.medx_alpha.is_some()),
        (Algorithm::Medx, "--medx-beta", args.medx_beta.is_some()),
        (Algorithm::Medx, "--medx-buffer", args.medx_buffer.is_some()),
        (Algorithm::Medx, "--cgroup", args.cgroup.is_some()),
    ];
    for (algorithm, name) in [(Algorithm::Vegas, "vegas"), (Algorithm::Medx, "medx")] {
        let own = options.iter().filter(|(of, _, given)| *given && *of == algorithm);
        let own: Vec<_> = own.map(|(_, option, _)| *option).collect();
        if !own.is_empty() && !algorithms.contains(&algorithm) {
            bail!(
                "{}: option of {name}, which this command does not load\n  \
                 help: remove the option, or load {name} as well: `gridhaul cc load vegas medx`",
                own.join(", ")
            );
        }
    }
    Ok(())
}

fn settings(args: &CcLoadArgs) -> Settings {
    let (vegas, medx) = (VegasSettings::default(), MedxSettings::default());
    Settings {
        vegas: VegasSettings {
            alpha: args.vegas_alpha.unwrap_or(vegas.alpha),
            beta: args.vegas_beta.unwrap_or(vegas.beta),
            gamma: args.vegas_gamma.unwrap_or(vegas.gamma),
        },
        medx: MedxSettings {
            alpha: args.medx_alpha.unwrap_or(medx.alpha),
            beta: args.medx_beta.unwrap_or(medx.beta),
            buffer: args.medx_buffer.unwrap_or(medx.buffer),
            ..medx
        },
        cgroup: args.cgroup.clone(),
        ..Settings::default()
    }
}

fn unload(algorithms: &[Algorithm]) -> Result<(), CommandError> {
    let unloaded = gridhaul_cc::unload(algorithms)?;
    let default = fs::read_to_string(DEFAULT).unwrap_or_default();
    if unloaded.iter().any(|algorithm| algorithm.name() == default.trim()) {
        say(format_args!(
            "warning: the algorithm is still the default for new connections; to change it: \
             sysctl net.ipv4.tcp_congestion_control=reno"
        ));
    }
    if unloaded.is_empty() {
        say(format_args!("not loaded: {}", names(algorithms)));
        return Ok(());
    }
    Ok(print(&format!("unloaded: {}\n", names(&unloaded)))?)
}

/// Congestion control of new connections in this network namespace.
const DEFAULT: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

fn list() -> Result<(), CommandError> {
    let all = gridhaul_cc::status()?;
    let row = |algorithm: &Algorithm| {
        let status = all.iter().find(|status| status.algorithm == *algorithm);
        let open =
            status.and_then(|status| status.counters).map(|counters| counters.open().to_string());
        let state = status.map_or_else(|| String::from("not loaded"), state);
        vec![algorithm.name().to_owned(), state, open.unwrap_or_default()]
    };
    let table = TextTable {
        headers: ["name", "state", "connections"].map(String::from).to_vec(),
        rows: Algorithm::ALL.iter().map(row).collect(),
        key_columns: 2,
        ..TextTable::default()
    };
    Ok(print_tables(&[table])?)
}

fn status() -> Result<(), CommandError> {
    let all = gridhaul_cc::status()?;
    if all.is_empty() {
        return Ok(print("no algorithm is loaded\n")?);
    }
    let table = |status: &Status| TextTable {
        title: format!("{}: {}", status.algorithm.name(), state(status)),
        headers: ["parameter or counter", "value"].map(String::from).to_vec(),
        rows: {
            let chosen = status.settings.iter().flat_map(LoadedSettings::rows);
            let counters = status.counters.iter().flat_map(Counters::rows);
            let counted = counters.map(|(name, number)| (name, number.to_string()));
            let row = |(name, number): (&str, String)| vec![name.to_owned(), number];
            chosen.chain(counted).map(row).collect()
        },
        key_columns: 1,
        note: None,
    };
    Ok(print_tables(&all.iter().map(table).collect::<Vec<_>>())?)
}

fn state(status: &Status) -> String {
    if !status.registered {
        return "unloaded, still used by connections".into();
    }
    if status.pinned {
        return "loaded until `gridhaul cc unload`".into();
    }
    let holders =
        status.holders.iter().map(|holder| format!("process {} ({})", holder.pid, holder.name));
    format!("loaded by {}", holders.collect::<Vec<_>>().join(", "))
}

fn chosen(algorithms: &[CcAlgorithm]) -> Vec<Algorithm> {
    if algorithms.is_empty() {
        return Algorithm::ALL.to_vec();
    }
    let one = |algorithm: &CcAlgorithm| match algorithm {
        CcAlgorithm::Vegas => Algorithm::Vegas,
        CcAlgorithm::Medx => Algorithm::Medx,
    };
    algorithms.iter().map(one).collect()
}

fn names(algorithms: &[Algorithm]) -> String {
    algorithms.iter().map(|algorithm| algorithm.name()).collect::<Vec<_>>().join(", ")
}

impl From<Error> for CommandError {
    /// If the kernel rejects our own programs, the defect is ours; every other error is one of the
    /// machine.
    fn from(error: Error) -> Self {
        match error {
            Error::Refused { .. } | Error::Object(..) => Self::Internal(error.into()),
            _ => Self::Input(error.into()),
        }
    }
}
