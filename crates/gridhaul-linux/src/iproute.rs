//! The programs of iproute2 and nftables, which configure a namespace.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::Error;

/// Passes lines to a program of iproute2, `ip` or `tc`, in the namespace of the calling thread,
/// which errors call `node`.
///
/// # Errors
/// The program is not installed, or rejects a line.
pub fn run_batch(program: &'static str, lines: &str, node: &str) -> Result<(), Error> {
    let output = output_of(program, &["-batch", "-"], lines)?;
    accepted(program, &output, node).map(drop)
}

/// Changes the packet filter of the namespace of the calling thread by a file of nft(8), as one
/// transaction: all of the changes are made, or none.
///
/// # Errors
/// The program `nft` is not installed, or rejects a line.
pub fn apply_ruleset(ruleset: &str, node: &str) -> Result<(), Error> {
    let output = output_of("nft", &["-f", "-"], ruleset)?;
    accepted("nft", &output, node).map(drop)
}

/// Output of a program of iproute2 or nftables in the namespace of the calling thread.
///
/// # Errors
/// The program is not installed, or rejects the arguments.
pub fn read_output(program: &'static str, arguments: &[&str], node: &str) -> Result<String, Error> {
    let output = output_of(program, arguments, "")?;
    accepted(program, &output, node)
}

fn output_of(program: &'static str, arguments: &[&str], input: &str) -> Result<Output, Error> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let package = if program == "nft" { "nftables" } else { "iproute2" };
    let operation = format!(
        "starting `{program}`, which sets up the network of a node (Debian: apt-get install \
         {package})"
    );
    let mut child = command.spawn().map_err(Error::call(operation))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early reports the reason, which is read below.
        let _ = stdin.write_all(input.as_bytes());
    }
    child.wait_with_output().map_err(Error::call(format!("waiting for `{program}`")))
}

fn accepted(program: &'static str, output: &Output, node: &str) -> Result<String, Error> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Rejected { program, node: node.to_owned(), message })
}
