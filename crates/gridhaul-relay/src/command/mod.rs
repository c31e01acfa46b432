//! Commands of `gridhaul-relay`. The doc comments are the texts of `--help`.

mod config;

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory, Parser, Subcommand};
use gridhaul_cli::{PackageFilesArgs, write_package_files};
use gridhaul_linux::Clock;
use gridhaul_relay::daemon::{
    Program, RunError, StatusError, machine_notes, query, remove_router, router_commands,
    run as run_relay, validate,
};
use gridhaul_relay::listing::{ListingError, Owner, list};
use gridhaul_relay::log::{Findings, Folder, LogError, open, verify};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::scenario::ScenarioError;
use gridhaul_scenario::units::Duration;

use config::ConfigArgs;

/// Run the relay: store data of meters durably and forward it over few connections
#[derive(Debug, Parser)]
#[command(name = "gridhaul-relay", version, max_term_width = 100)]
#[command(disable_help_subcommand = true, arg_required_else_help = true)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    /// With '--version': commit and kernel, for a report of a defect
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Command to run.
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Validate configuration files on this machine, with certificates and folders, without opening
    /// an address
    Check(Files),
    /// Run the relay of a configuration file until it is stopped
    Run(Run),
    /// Print the status of a running relay as JSON
    Status(Status),
    /// Print the configuration of a collector for a node of a scenario
    Config(ConfigArgs),
    /// Wait until everything that a running collector or head has stored is delivered
    Drain(Drain),
    /// List, verify or repair the record log of a relay that is not running
    #[command(subcommand)]
    Log(LogCommand),
    /// Write manual pages and completions for a package
    #[command(hide = true)]
    PackageFiles(PackageFilesArgs),
}

#[derive(Debug, Args)]
struct Files {
    /// Configuration files
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
struct File {
    /// Configuration file
    file: PathBuf,
}

#[derive(Debug, Args)]
struct Run {
    /// Configuration file
    file: PathBuf,
    /// Stop when standard input ends, as it does when the program that has started the relay ends
    #[arg(long)]
    until_input_ends: bool,
    /// Print the commands of a hybrid router that change routes, shapers and filters, and change
    /// nothing
    #[arg(long, conflicts_with = "remove")]
    dry_run: bool,
    /// Undo the changes of a hybrid router that was killed, and start nothing
    #[arg(long)]
    remove: bool,
}

#[derive(Debug, Args)]
struct Status {
    /// Configuration file of the relay
    file: PathBuf,
    /// Print a list instead of the totals: the meters of a collector, the connections of a split
    /// proxy or a bridge, the links and classes of a hybrid router
    #[arg(long)]
    details: bool,
}

#[derive(Debug, Args)]
struct Drain {
    /// Configuration file of the collector or head
    file: PathBuf,
    /// Longest time to wait
    #[arg(long, value_name = "TIME", default_value = "60 s")]
    limit: Duration,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// Print each record as a line of JSON, without changing the log
    List(File),
    /// Report entries, incomplete appends and damage, without changing the log
    Verify(File),
    /// Drop incomplete appends, and set damaged regions aside
    Repair(File),
}

/// The exit codes, for `--help`.
const EXIT_CODES: &str = "\
Exit codes:
  0  success; a relay also ends with 0 after SIGTERM or Ctrl-C
  1  the relay or the command failed: no connection to the relay, damage of the log, data not \
  delivered in time
  2  invalid input or usage: the message names the file, the key and the remedy";

/// A command that has failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    Config(ScenarioError),
    Run(RunError),
    Status(StatusError),
    Log(LogError),
    Listing(ListingError),
    Output(io::Error),
    Usage(String),
    Damaged,
    Undelivered { rest: u64, limit: Duration, reason: Option<String> },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Run(error) => error.fmt(f),
            Self::Status(error) => error.fmt(f),
            Self::Log(error) => error.fmt(f),
            Self::Listing(error) => error.fmt(f),
            Self::Output(error) => write!(f, "standard output: {error}"),
            Self::Usage(message) => f.write_str(message),
            Self::Damaged => f.write_str(
                "the log is damaged or incomplete\n  help: the next start of the relay, or `log \
                 repair`, keeps what is intact",
            ),
            Self::Undelivered { rest, limit, reason } => {
                write!(f, "after {limit}, {rest} bytes of the log are not delivered")?;
                match reason {
                    Some(reason) => write!(f, ": {reason}"),
                    None => f.write_str(
                        "\n  help: wait longer (--limit), or see the status of \
                        the relay",
                    ),
                }
            }
        }
    }
}

impl CommandError {
    /// 2 for errors of the user, 1 for others.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Usage(_) => 2,
            _ => 1,
        }
    }
}

/// Runs a command.
pub(crate) fn run(cli: &Cli) -> Result<(), CommandError> {
    match &cli.command {
        Command::Check(files) => check(&files.files),
        Command::Run(run) => {
            let config = load(&run.file)?;
            if run.dry_run || run.remove {
                return change_router(run, &config);
            }
            let program = Program::new(&run.file, run.until_input_ends, validate)
                .map_err(|error| CommandError::Usage(format!("/proc/self/exe: {error}")))?;
            run_relay(&config, &program).map_err(CommandError::Run)
        }
        Command::Status(status) => print_status(status),
        Command::Config(args) => config::config(args),
        Command::Drain(args) => drain(args),
        Command::PackageFiles(args) => {
            let written = write_package_files(&Cli::command(), &args.folder);
            written
                .map_err(|error| CommandError::Usage(format!("{}: {error}", args.folder.display())))
        }
        Command::Log(LogCommand::List(file)) => list_log(&file.file),
        Command::Log(LogCommand::Verify(file)) => {
            let storage = log_of(&file.file)?;
            let findings = verify(&storage).map_err(CommandError::Log)?;
            print_findings(&findings);
            if findings.damage.is_empty() { Ok(()) } else { Err(CommandError::Damaged) }
        }
        Command::Log(LogCommand::Repair(file)) => {
            let opened = open(log_of(&file.file)?, 0, &[]).map_err(CommandError::Log)?;
            print_findings(&opened.findings);
            Ok(())
        }
    }
}

/// Prints or undoes the changes of a hybrid router.
fn change_router(run: &Run, config: &RelayConfig) -> Result<(), CommandError> {
    let Some(router) = &config.router else {
        return Err(CommandError::Usage(format!(
            "{}: --dry-run and --remove are for hybrid routers\n  help: the configuration has no \
             [router]",
            run.file.display()
        )));
    };
    if run.dry_run {
        print!("{}", router_commands(router).map_err(CommandError::Run)?);
        return Ok(());
    }
    let removed = remove_router(config, router, folder_of(&run.file));
    let text = if removed.map_err(CommandError::Run)? {
        "all changes are undone"
    } else {
        "there is nothing to undo"
    };
    println!("{text}");
    Ok(())
}

fn check(files: &[PathBuf]) -> Result<(), CommandError> {
    for file in files {
        let config = load(file)?;
        let at = |message: String| CommandError::Usage(format!("{}: {message}", file.display()));
        let faults = validate(&config, folder_of(file)).map_err(|error| at(error.to_string()))?;
        if !faults.is_empty() {
            return Err(at(faults.join("\n")));
        }
        println!("{}: valid", file.display());
        for note in config.notes().into_iter().chain(machine_notes(&config)) {
            println!("note: {note}");
        }
    }
    Ok(())
}

fn print_status(status: &Status) -> Result<(), CommandError> {
    let path = if status.details { "/details" } else { "/status" };
    println!("{}", query(&management(&status.file)?, path).map_err(CommandError::Status)?);
    Ok(())
}

/// The management address of a configuration.
fn management(file: &Path) -> Result<String, CommandError> {
    match load(file)?.management {
        Some(management) => Ok(management.address),
        None => Err(CommandError::Usage(format!(
            "{}: the relay has no management address\n  help: add management.address \
             = \"127.0.0.1:9180\"",
            file.display()
        ))),
    }
}

fn drain(args: &Drain) -> Result<(), CommandError> {
    let address = management(&args.file)?;
    let clock = Clock::starts_in(Duration::ZERO);
    loop {
        let text = query(&address, "/status").map_err(CommandError::Status)?;
        let status: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let bytes = |key: &str| status[key].as_u64();
        let Some(backlog) = bytes("backlog_byte") else {
            let text = format!("{}: this relay stores nothing", args.file.display());
            return Err(CommandError::Usage(format!(
                "{text}\n  help: use the configuration of a collector or head"
            )));
        };
        // A head has no bytes that are not stored: it confirms nothing before.
        if backlog + bytes("bytes_at_risk_byte").unwrap_or(0) == 0 {
            println!("everything is delivered");
            return Ok(());
        }
        if clock.now().as_nanos() >= args.limit.as_nanos() {
            let reasons = [&status["upstream_error"], &status["delivery_error"]];
            let reason = reasons.iter().find_map(|reason| reason.as_str()).map(str::to_owned);
            return Err(CommandError::Undelivered { rest: backlog, limit: args.limit, reason });
        }
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "a running daemon is observed in real time")]
fn pause() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}

fn print_findings(findings: &Findings) {
    println!("entries: {}", findings.entries);
    println!("positions: {} to {}", findings.start, findings.end);
    println!("bytes of incomplete appends: {}", findings.torn_bytes);
    println!("regions that were repaired before: {}", findings.repaired);
    for damage in &findings.damage {
        println!("{damage}");
    }
}

fn list_log(file: &Path) -> Result<(), CommandError> {
    let config = load(file)?;
    let owner = match &config.collector {
        Some(_) => Owner::Collector(&config.name),
        None => Owner::Head,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let listed = list(&log_of(file)?, owner, |line| {
        if written.is_ok() {
            written = writeln!(out, "{line}");
        }
    });
    match written.and_then(|()| out.flush()) {
        // The reader has seen enough, such as head(1).
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        other => other.map_err(CommandError::Output)?,
    }
    listed.map_err(CommandError::Listing)
}

fn log_of(file: &Path) -> Result<Folder, CommandError> {
    let config = load(file)?;
    let Some(log) = &config.log else {
        return Err(CommandError::Usage(format!("{}: the relay has no log", file.display())));
    };
    Folder::open(&folder_of(file).join(&log.folder)).map_err(CommandError::Log)
}

fn load(file: &Path) -> Result<RelayConfig, CommandError> {
    RelayConfig::load(file).map_err(CommandError::Config)
}

/// The folder at which relative paths of a configuration begin.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new(""))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_help_lists_every_exit_code() {
        let help = Cli::command().render_help().to_string();
        let errors = [CommandError::Damaged, CommandError::Usage(String::new())];
        let codes = errors.iter().map(CommandError::exit_code).chain([0]);
        for code in codes {
            assert!(help.contains(&format!("\n  {code}  ")), "{code}: {help}");
        }
    }
}
