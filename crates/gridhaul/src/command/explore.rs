//! `gridhaul explore`: a page with the runs of a scenario, with stored results, or with a capture.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow};
use gridhaul_capture::{CaptureFile, explain_with_history};
use gridhaul_cli::{print, say};
use gridhaul_explore::{
    Access, Cancellation, Capture, CaptureOptions, Changes, Explorer, Results, RunBackend,
    RunFailure, Runner, SimulatedCapture, Subject,
};
use gridhaul_scenario::answer::Answer;
use gridhaul_scenario::scenario::Scenario;

use super::error::CommandError;
use super::explain;
use super::export::{answer_files, label};
use super::run::load;
use crate::args::ExploreArgs;
use crate::capture_simulation;
use crate::page_runs::{self, Observed};
use crate::read_answers;

/// Serves the page until the program is ended.
pub(crate) fn run(args: &ExploreArgs) -> Result<(), CommandError> {
    let subject = subject(&args.paths)?;
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
    gridhaul_explore::serve(&listener, access, Explorer::new(subject, Box::new(Library)))
        .context("cannot accept connections")
        .map_err(CommandError::Input)
}

/// The scenario, the results or the capture at these paths.
fn subject(paths: &[PathBuf]) -> Result<Subject, CommandError> {
    let [path, others @ ..] = paths else { return example() };
    if paths.iter().all(|path| is_capture(path)) {
        return capture(paths);
    }
    if let Some(other) = others.first() {
        return Err(anyhow!(
            "{}: a second path\n  help: give one scenario or results folder; several files must \
             all be captures (pcap or pcapng)",
            other.display()
        )
        .into());
    }
    if path.is_dir() || path.extension().is_some_and(|ending| ending == "json") {
        return results(path);
    }
    of_scenario(path)
}

fn example() -> Result<Subject, CommandError> {
    Subject::example().map_err(|error| CommandError::Internal(anyhow!(error)))
}

/// Whether a file is a capture, by its first bytes: pcapng (draft-ietf-opsawg-pcapng, section 4.1),
/// or pcap in both byte orders, with microseconds or nanoseconds (draft-ietf-opsawg-pcap, section
/// 4). The name says it as well, so that a damaged capture has the error of a capture.
fn is_capture(path: &Path) -> bool {
    const MAGIC: [u32; 5] = [0x0a0d_0d0a, 0xa1b2_c3d4, 0xd4c3_b2a1, 0xa1b2_3c4d, 0x4d3c_b2a1];
    let named = path.extension().is_some_and(|ending| {
        ["pcap", "pcapng", "cap"].iter().any(|own| ending.eq_ignore_ascii_case(own))
    });
    let mut first = [0; 4];
    let begins = File::open(path).and_then(|mut file| file.read_exact(&mut first)).is_ok();
    named || begins && MAGIC.contains(&u32::from_be_bytes(first))
}

fn capture(paths: &[PathBuf]) -> Result<Subject, CommandError> {
    let explanation = explain::read(paths, explain_with_history, false)?;
    if explanation.is_interrupted {
        return Err(CommandError::Interrupted("interrupted: no page is opened".to_owned()));
    }
    let files = paths.iter().map(|path| path.display().to_string()).collect();
    Ok(example()?.with_capture(Capture { files, explanation }))
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
        let read = read_answers(&file)?.into_iter();
        answers.extend(read.map(|answer| (label(path), answer)));
    }
    let folder = if path.is_dir() { path.to_owned() } else { parent_of(path) };
    let scenario = folder.join("scenario.toml");
    let subject = if scenario.is_file() { of_scenario(&scenario)? } else { example()? };
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
        page_runs::change(scenario, changes)
    }

    fn run(
        &self,
        scenario: &Scenario,
        backend: RunBackend,
        cancellation: &Cancellation,
    ) -> Result<Answer, RunFailure> {
        page_runs::run(scenario, backend, cancellation)
    }

    fn open_captures(&self, files: &[String]) -> Result<Vec<CaptureFile>, String> {
        let open = |name: &String| {
            let file = File::open(name).map_err(|error| format!("cannot read {name}: {error}"))?;
            Ok(CaptureFile::new(name, file))
        };
        files.iter().map(open).collect()
    }

    fn simulate_capture(
        &self,
        capture: &Capture,
        options: &CaptureOptions,
        cancellation: &Cancellation,
    ) -> Result<SimulatedCapture, RunFailure> {
        let folder = tempfile::tempdir();
        let folder = folder.map_err(|error| {
            RunFailure::Refused(format!("cannot create a temporary folder: {error}"))
        })?;
        let CaptureOptions { seed, rate, tolerance } = *options;
        let simulation = capture_simulation::simulate(
            &capture.files.join(", "),
            &capture.explanation,
            &capture_simulation::Options { seed, rate, tolerance },
            folder.path(),
            &Observed::new(cancellation),
        )
        .map_err(|error| page_runs::failure(&error))?;
        let capture_simulation::CaptureSimulation { comparison, explanation, captures, scenario } =
            simulation;
        Ok(SimulatedCapture { comparison, explanation, captures, scenario })
    }
}
