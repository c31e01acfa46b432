//! `gridhaul explain`: what limits each connection of a capture.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{IsTerminal, stderr, stdin};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use gridhaul_capture::{
    CaptureError, CaptureFile, Comparison, ConnectionComparison, Explanation, connections_csv,
    explain, explain_with_history, read_sequence, sequence_csv,
};
use gridhaul_cli::{print, say, signal};
use gridhaul_report::TextTable;
use gridhaul_scenario::backend::Progress;

use super::error::CommandError;
use crate::args::{ExplainArgs, ExplainFormat};
use crate::atomic_file;
use crate::capture_simulation::{self, CaptureSimulation, Options};
use crate::interrupt::Graceful;
use crate::terminal::{Bar, Terminal, texts};

/// Reads the captures, and prints or writes the explanation.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), CommandError> {
    if args.simulation.simulate {
        return simulate(args);
    }
    let mut explanation = read(&args.captures, explain, args.quiet)?;
    if let Some(number) = args.connection {
        let count = explanation.connections.len();
        explanation.connections.retain(|connection| connection.number == number.get());
        if explanation.connections.is_empty() {
            return Err(no_connection(number, count));
        }
    }
    let text = match args.format {
        ExplainFormat::Text if args.connection.is_some() => explanation.connections[0].details(),
        ExplainFormat::Text => explanation.text(),
        ExplainFormat::Json => json(&explanation)?,
        ExplainFormat::Csv => connections_csv(&explanation),
        ExplainFormat::Packets => packets(args, &explanation)?,
    };
    write(args, &text)?;
    if explanation.is_interrupted {
        let message = "interrupted: only the beginning of the capture is explained";
        return Err(CommandError::Interrupted(message.to_owned()));
    }
    Ok(())
}

fn no_connection(number: NonZeroUsize, count: usize) -> CommandError {
    anyhow!(
        "--connection {number}: the capture has {count} connections\n  help: the first number of \
         each line of the output without this option"
    )
    .into()
}

fn json(value: &impl serde::Serialize) -> Result<String, CommandError> {
    let json = serde_json::to_string_pretty(value);
    Ok(json.map_err(|error| CommandError::Internal(error.into()))? + "\n")
}

fn write(args: &ExplainArgs, text: &str) -> Result<(), CommandError> {
    let Some(out) = &args.out else { return Ok(print(text)?) };
    atomic_file::write(out, text.as_bytes())
        .with_context(|| format!("cannot write {}", out.display()))?;
    if !args.quiet {
        say(format_args!("written: {}", out.display()));
    }
    Ok(())
}

/// The packets of the only connection that is left, of the direction with more data.
fn packets(args: &ExplainArgs, explanation: &Explanation) -> Result<String, CommandError> {
    if args.connection.is_none() {
        return Err(anyhow!(
            "--format packets: the packets of one connection are printed\n  help: choose one with \
             --connection, such as --connection 1"
        )
        .into());
    }
    if args.captures.iter().any(|path| path == Path::new("-")) {
        return Err(anyhow!(
            "--format packets: standard input cannot be read twice\n  help: write the capture to \
             a file"
        )
        .into());
    }
    let connection = &explanation.connections[0];
    let files = open_all(&args.captures)?.files;
    let sequence =
        read_sequence(files, connection, connection.is_upload, connection.capture_start());
    Ok(sequence_csv(&sequence.map_err(anyhow::Error::new)?))
}

/// Simulates the load of the capture, and prints or writes the comparison.
fn simulate(args: &ExplainArgs) -> Result<(), CommandError> {
    let measured = read(&args.captures, explain_with_history, args.quiet)?;
    if measured.is_interrupted {
        return Err(CommandError::Interrupted("interrupted: nothing is simulated".to_owned()));
    }
    let _graceful = Graceful::begin();
    let folder = tempfile::tempdir().context("cannot create a temporary folder")?;
    let options = Options {
        seed: args.simulation.seed,
        rate: args.simulation.rate,
        tolerance: args.simulation.tolerance,
    };
    let terminal = Terminal::new(args.quiet).recording_in(folder.path());
    let simulation = capture_simulation::simulate(
        &shown(&args.captures),
        &measured,
        &options,
        folder.path(),
        &terminal,
    );
    let CaptureSimulation { mut comparison, .. } = simulation?;
    if let Some(number) = args.connection {
        comparison.connections.retain(|connection| connection.number == number.get());
        if comparison.connections.is_empty() {
            return Err(no_connection(number, measured.connections.len()));
        }
    }
    let text = match args.format {
        ExplainFormat::Text => table(&comparison),
        ExplainFormat::Json => json(&comparison)?,
        ExplainFormat::Csv => comparison.csv(),
        ExplainFormat::Packets => {
            return Err(anyhow!(
                "--format packets: a comparison has no packets\n  help: omit --simulate"
            )
            .into());
        }
    };
    write(args, &text)
}

/// The comparison as a table, and a sentence for each connection.
fn table(comparison: &Comparison) -> String {
    let sentences = comparison.connections.iter().map(ConnectionComparison::sentence);
    let table = TextTable {
        title: "Goodput".to_owned(),
        headers: ConnectionComparison::HEADINGS.map(str::to_owned).to_vec(),
        rows: comparison.connections.iter().map(|own| own.cells().to_vec()).collect(),
        key_columns: 1,
        note: Some(sentences.collect::<Vec<_>>().join("\n")),
    };
    texts(&[table])
}

/// Names of captures in messages.
pub(super) fn shown(captures: &[PathBuf]) -> String {
    let names: Vec<_> = captures.iter().map(|path| path.display().to_string()).collect();
    names.join(", ")
}

/// A function that explains captures.
pub(super) type Explain = fn(
    Vec<CaptureFile>,
    &mut dyn FnMut(gridhaul_capture::Progress) -> bool,
) -> Result<Explanation, CaptureError>;

/// Reads captures, and explains them with this function.
pub(super) fn read(
    captures: &[PathBuf],
    explain: Explain,
    quiet: bool,
) -> Result<Explanation, CommandError> {
    let _graceful = Graceful::begin();
    let OpenFiles { files, size } = open_all(captures)?;
    if files.len() < captures.len() && !quiet {
        say(format_args!("note: a capture is given twice, and read once"));
    }
    let bar = Bar::new("read", quiet || size == 0);
    let is_terminal = stderr().is_terminal();
    let mut reported = 0;
    let explanation = explain(files, &mut |progress| {
        bar.advance(progress.bytes, size);
        // Without a terminal, a line for each fifth of a large file.
        let fifths = progress.bytes * 5 / size.max(1);
        if !is_terminal && !quiet && size > LARGE && fifths > reported {
            reported = fifths;
            say(format_args!("read: {} %, {} segments", fifths * 20, progress.segments));
        }
        !signal::end_requested()
    });
    bar.finish();
    Ok(explanation.map_err(anyhow::Error::new)?)
}

/// Bytes of a file from which on progress is reported without a terminal.
const LARGE: u64 = 200_000_000;

/// Captures that have been opened.
pub(super) struct OpenFiles {
    pub(super) files: Vec<CaptureFile>,
    /// Bytes of all files; 0 if that is unknown.
    pub(super) size: u64,
}

/// Opens captures, each file once.
pub(super) fn open_all(captures: &[PathBuf]) -> Result<OpenFiles, CommandError> {
    let mut open_files = OpenFiles { files: Vec::new(), size: 0 };
    let mut seen = BTreeSet::new();
    for path in captures {
        // Standard input has no canonical path.
        if !fs::canonicalize(path).map_or(true, |found| seen.insert(found)) {
            continue;
        }
        let (file, bytes) = open(path)?;
        open_files.files.push(file);
        open_files.size += bytes;
    }
    Ok(open_files)
}

/// Opens a file, or standard input for `-`, and returns its size if it has one.
fn open(path: &Path) -> Result<(CaptureFile, u64), CommandError> {
    if path == Path::new("-") {
        return Ok((CaptureFile::new("standard input", stdin()), 0));
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let metadata = file.metadata().with_context(|| format!("cannot read {name}"))?;
    if metadata.is_dir() {
        return Err(anyhow!(
            "{name} is a folder\n  help: give the captures in it: {name}/*.pcapng"
        )
        .into());
    }
    Ok((CaptureFile::new(&name, file), metadata.len()))
}
