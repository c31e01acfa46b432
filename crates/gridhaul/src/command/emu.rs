//! `gridhaul emu`: a network of namespaces for programs of one's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use gridhaul::ensure_memory;
use gridhaul_emu::{FlowEndpoints, StandaloneNetwork};
use gridhaul_linux::remove_stale_namespaces;
use gridhaul_report::TextTable;

use super::error::CommandError;
use super::run::load;
use crate::args::{Changes, EmuCommand, EmuUpArgs};
use crate::terminal::{print, print_tables, say};

/// Runs one of the commands.
pub(crate) fn run(command: &EmuCommand) -> Result<(), CommandError> {
    match command {
        EmuCommand::Up(args) => up(args),
        EmuCommand::Clean => sweep(),
    }
}

fn up(args: &EmuUpArgs) -> Result<(), CommandError> {
    let changes = Changes { seed: args.seed, set: args.set.clone(), ..Changes::default() };
    let scenario = load(&args.file, &changes, &[], false)?;
    let point = scenario.points()?.swap_remove(0);
    ensure_memory(&point.scenario)?;
    remove_stale_namespaces().context("removing what dead runs have left")?;
    let stop = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&stop);
    ctrlc::set_handler(move || ended.store(true, Ordering::Relaxed))
        .context("listening for Ctrl-C")?;
    let held = StandaloneNetwork::build(&point.scenario, &args.prefix)?;
    print_tables(&[table(&held.pairs(&args.prefix))])?;
    say(format_args!("the network stands until Ctrl-C"));
    held.run(|| stop.load(Ordering::Relaxed))?;
    Ok(())
}

fn sweep() -> Result<(), CommandError> {
    let removed = remove_stale_namespaces().context("removing what dead runs have left")?;
    if removed.is_empty() {
        say(format_args!("nothing was left"));
    }
    let lines: String = removed.iter().map(|name| format!("{name}\n")).collect();
    Ok(print(&lines)?)
}

fn table(pairs: &[FlowEndpoints]) -> TextTable {
    let row = |pair: &FlowEndpoints| {
        let [from, to] = [&pair.from, &pair.to];
        vec![
            pair.flow.clone(),
            pair.count.to_string(),
            from.0.clone(),
            from.1.to_string(),
            to.0.clone(),
            to.1.to_string(),
            control(pair),
        ]
    };
    let headers = ["flow", "members", "from", "address", "to", "address", "congestion control"];
    TextTable {
        headers: headers.map(String::from).to_vec(),
        rows: pairs.iter().map(row).collect(),
        key_columns: headers.len(),
        note: note(pairs),
        ..TextTable::default()
    }
}

/// A line to try, and the flows over which nothing comes back.
fn note(pairs: &[FlowEndpoints]) -> Option<String> {
    let (answered, silent): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.has_reverse_path);
    let mut lines = Vec::new();
    if let Some(FlowEndpoints { from, to, .. }) = answered.first() {
        lines.push(format!("try: ip netns exec {} ping -I {} {}", from.0, from.1, to.1));
    }
    if !silent.is_empty() {
        let flows: Vec<_> = silent.iter().map(|pair| pair.flow.as_str()).collect();
        lines.push(format!(
            "nothing comes back over one-way links, no echo of a ping either: flow {}",
            flows.join(", ")
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// What TCP connections over these addresses get from their routes.
fn control(pair: &FlowEndpoints) -> String {
    let [from, to] = pair.congestion_control.each_ref().map(|name| name.as_deref().unwrap_or(UNSAID));
    if from == to { from.to_owned() } else { format!("{from}, back {to}") }
}

/// The scenario chooses no variant: programs do, or they get the machine's default.
const UNSAID: &str = "the program's";
