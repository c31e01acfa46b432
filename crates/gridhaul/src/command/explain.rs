//! `gridhaul explain`: what limits each connection of a capture.

use std::fs::File;
use std::io::{IsTerminal, stderr, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use gridhaul_capture::{CaptureFile, Explanation, connections_csv, explain};
use gridhaul_cli::{print, say, signal};
use gridhaul_scenario::backend::Progress;

use super::error::CommandError;
use crate::args::{ExplainArgs, ExplainFormat};
use crate::atomic_file;
use crate::interrupt::Graceful;
use crate::terminal::Bar;

/// Reads the captures, and prints or writes the explanation.
pub(crate) fn run(args: &ExplainArgs) -> Result<(), CommandError> {
    let mut explanation = read(&args.captures, args.quiet)?;
    if let Some(number) = args.connection {
        let count = explanation.connections.len();
        explanation.connections.retain(|connection| connection.number == number.get());
        if explanation.connections.is_empty() {
            return Err(anyhow!(
                "--connection {number}: the capture has {count} connections\n  \
                 help: the first number of each line of the output without this option"
            )
            .into());
        }
    }
    let text = match args.format {
        ExplainFormat::Text if args.connection.is_some() => explanation.connections[0].details(),
        ExplainFormat::Text => explanation.text(),
        ExplainFormat::Json => {
            let json = serde_json::to_string_pretty(&explanation);
            json.map_err(|error| CommandError::Internal(error.into()))? + "\n"
        }
        ExplainFormat::Csv => connections_csv(&explanation),
    };
    match &args.out {
        None => print(&text)?,
        Some(out) => {
            atomic_file::write(out, text.as_bytes())
                .with_context(|| format!("cannot write {}", out.display()))?;
            if !args.quiet {
                say(format_args!("written: {}", out.display()));
            }
        }
    }
    if explanation.is_interrupted {
        let message = "interrupted: only the beginning of the capture is explained";
        return Err(CommandError::Interrupted(message.to_owned()));
    }
    Ok(())
}

/// Reads and explains captures.
pub(super) fn read(captures: &[PathBuf], quiet: bool) -> Result<Explanation, CommandError> {
    let _graceful = Graceful::begin();
    let mut files = Vec::new();
    let mut size = 0;
    for path in captures {
        let (file, bytes) = open(path)?;
        files.push(file);
        size += bytes;
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
