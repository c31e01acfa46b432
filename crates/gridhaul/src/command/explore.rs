//! `gridhaul explore`: a page with the runs of a scenario, or with stored results.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use gridhaul_cli::{print, say};
use gridhaul_explore::{
    Access, Cancellation, Changes, Explorer, Results, RunBackend, RunFailure, Runner, Subject,
};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::backend::Progress;
use gridhaul_scenario::scenario::Scenario;

use super::error::CommandError;
use super::export::{answer_files, label};
use super::run::load;
use crate::args::ExploreArgs;
use crate::{BackendName, Engine, Error, Observer, read_answer};

/// Serves the page until the program is ended.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), CommandError> {
    let subject = subject(args.path.as_deref())?;
    let listener = listen(args.port)?;
    let port = listener.local_addr().context("cannot determine the port")?.port();
    let token = gridhaul_explore::token().context("cannot read random numbers for a token")?;
    let access = Access::new(token, port);
    let url = access.url();
    print(&format!("{url}\n"))?;
    if args.no_browser || !open_browser(&url) {
        say(format_args!("open this address in a browser; Ctrl-C ends the page"));
    } else {
        say(format_args!("opening the address in your browser; Ctrl-C ends the page"));
    }
    gridhaul_explore::serve(&listener, Explorer::new(access, subject, Box::new(Library)))
        .context("cannot accept connections")
        .map_err(CommandError::Input)
}

/// The scenario or the results at a path.
fn subject(path: Option<&Path>) -> Result<Subject, CommandError> {
    let Some(path) = path else {
        return Subject::example().map_err(|error| CommandError::Internal(anyhow!(error)));
    };
    if path.is_dir() || path.extension().is_some_and(|ending| ending == "json") {
        return results(path);
    }
    of_scenario(path)
}

fn of_scenario(file: &Path) -> Result<Subject, CommandError> {
    let scenario = load(file, &crate::Changes::default(), &[], false)?;
    let subject = Subject::of_scenario(&scenario, &file.display().to_string());
    Ok(subject.map_err(|error| anyhow!(error))?)
}

/// Stored answers, with the scenario that is stored beside them.
fn results(path: &Path) -> Result<Subject, CommandError> {
    let mut answers = Vec::new();
    for file in answer_files(path)? {
        answers.push((label(path), read_answer(&file)?));
    }
    let folder = if path.is_dir() { path.to_owned() } else { parent_of(path) };
    let scenario = folder.join("scenario.toml");
    let subject = if scenario.is_file() { of_scenario(&scenario)? } else { subject(None)? };
    Ok(subject.with_results(Results { path: path.display().to_string(), answers }))
}

fn parent_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}

fn listen(port: u16) -> Result<TcpListener, CommandError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    Ok(listener.map_err(|error| {
        let help = match error.kind() {
            ErrorKind::AddrInUse => {
                "another program uses this port; choose another one, or omit \
                                     --port"
            }
            ErrorKind::PermissionDenied => "ports below 1024 need permissions; choose a larger one",
            _ => "omit --port for any free port",
        };
        anyhow!("--port {port}: cannot listen on 127.0.0.1: {error}\n  help: {help}")
    })?)
}

/// Opens an address with the program of the desktop. Returns whether that was possible.
fn open_browser(url: &str) -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return false;
    }
    let mut command = Command::new("xdg-open");
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// The library as the page uses it.
struct Library;

impl Runner for Library {
    fn change(&self, scenario: &Scenario, changes: &Changes) -> Result<Scenario, String> {
        let set = changes.settings.iter().map(|text| text.parse());
        let changes = crate::Changes {
            seed: changes.seed,
            replications: changes.replications,
            set: set.collect::<Result<_, _>>()?,
            series: changes.series,
            pcap: changes.pcap.clone(),
            events: changes.events.clone(),
            ..crate::Changes::default()
        };
        let changed = crate::change(scenario.clone(), "scenario", &changes, &[]);
        changed.map(|(scenario, _)| scenario).map_err(|error| error.to_string())
    }

    fn run(
        &self,
        scenario: &Scenario,
        backend: RunBackend,
        cancellation: &Cancellation,
    ) -> Result<Answer, RunFailure> {
        let backend = match backend {
            RunBackend::Sim => BackendName::Sim,
            RunBackend::Model => BackendName::Model,
        };
        let engine = Engine { backends: vec![backend], ..Engine::default() };
        let answers = crate::run(scenario, &engine, "scenario", &Observed(cancellation.clone()));
        // An interrupted run may have an answer of its finished replications.
        if cancellation.is_cancelled() {
            return Err(RunFailure::Cancelled);
        }
        match answers {
            Ok(mut answers) => {
                let missing = || RunFailure::Refused("the run has no answer".to_owned());
                answers.pop().ok_or_else(missing)
            }
            Err(Error::Interrupted(_)) => Err(RunFailure::Cancelled),
            Err(error) => Err(RunFailure::Refused(error.to_string())),
        }
    }
}

/// Ends a run that a later request replaces.
struct Observed(Cancellation);

impl Observer for Observed {
    fn begin(&self, _part: &str) -> Box<dyn Progress> {
        Box::new(Self(self.0.clone()))
    }
}

impl Progress for Observed {
    fn advance(&self, _done: u64, _total: u64) {}

    fn is_interrupted(&self) -> bool {
        self.0.is_cancelled()
    }
}
