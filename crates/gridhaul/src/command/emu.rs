//! `gridhaul emu`: a network of namespaces for other programs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Changes, ensure_memory};
use anyhow::Context;
use gridhaul_cli::{print, say, signal};
use gridhaul_emu::{FlowEndpoints, StandaloneNetwork};
use gridhaul_linux::{Clock, remove_stale_namespaces};
use gridhaul_report::TextTable;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;

use super::error::CommandError;
use super::run::load;
use crate::args::{EmuCommand, EmuUpArgs};
use crate::terminal::print_tables;

/// Runs one of the commands.
pub(crate) fn run(command: &EmuCommand) -> Result<(), CommandError> {
    match command {
        EmuCommand::Up(args) => up(args),
        EmuCommand::Clean => clean(),
    }
}

fn up(args: &EmuUpArgs) -> Result<(), CommandError> {
    let changes = Changes { seed: args.seed, set: args.set.clone(), ..Changes::default() };
    let scenario = load(&args.file, &changes, &[], false)?;
    let point = scenario.points()?.swap_remove(0);
    ensure_memory(&point.scenario).map_err(|error| error.context(Scenario::name_of(&args.file)))?;
    remove_stale_namespaces().context("removing the namespaces of killed runs")?;
    let stop = Arc::new(AtomicBool::new(false));
    let stop_on_signal = Arc::clone(&stop);
    signal::on_signal(move || stop_on_signal.store(true, Ordering::Relaxed))
        .context("installing the handler of Ctrl-C")?;
    let network = StandaloneNetwork::build(&point.scenario, &args.prefix)?;
    print_tables(&[table(&network.pairs(&args.prefix))])?;
    say(format_args!("the network is up until Ctrl-C"));
    network.run(Clock::starts_in(Duration::ZERO), || stop.load(Ordering::Relaxed))?;
    Ok(())
}

fn clean() -> Result<(), CommandError> {
    let removed = remove_stale_namespaces().context("removing the namespaces of killed runs")?;
    if removed.is_empty() {
        say(format_args!("no namespaces to remove"));
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
            congestion_control(pair),
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

/// A `ping` command to try, and the flows that have no reverse path.
fn note(pairs: &[FlowEndpoints]) -> Option<String> {
    let (two_way, one_way): (Vec<_>, Vec<_>) = pairs.iter().partition(|pair| pair.has_reverse_path);
    let mut lines = Vec::new();
    if let Some(FlowEndpoints { from, to, .. }) = two_way.first() {
        lines.push(format!("try: ip netns exec {} ping -I {} {}", from.0, from.1, to.1));
    }
    if !one_way.is_empty() {
        let flows: Vec<_> = one_way.iter().map(|pair| pair.flow.as_str()).collect();
        lines.push(format!(
            "no reverse path over one-way links, not even for the replies of ping: flow {}",
            flows.join(", ")
        ));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Congestion control that the routes set for TCP connections between these addresses.
fn congestion_control(pair: &FlowEndpoints) -> String {
    let [from, to] =
        pair.congestion_control.each_ref().map(|name| name.as_deref().unwrap_or(NOT_SET));
    if from == to { from.to_owned() } else { format!("{from}, reverse {to}") }
}

/// The scenario sets no congestion control: the program does, or the machine's default applies.
const NOT_SET: &str = "set by program";
