//! Data on standard output, messages on standard error.

use std::fmt;
use std::io::{self, ErrorKind, Write};

use anyhow::Context;

/// Prints data on standard output. A closed pipe (`| head`) is not an error: the program continues,
/// because it may still write files.
///
/// # Errors
/// Standard output cannot be written, for example because the disk is full.
pub fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to standard output"),
    }
}

/// Prints a message on standard error. Errors are ignored: there is no other channel to report
/// them.
pub fn say(line: fmt::Arguments<'_>) {
    // In one write, so that lines of several threads are not interleaved.
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
