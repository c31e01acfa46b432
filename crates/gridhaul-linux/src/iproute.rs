//! The programs of iproute2, which configure a namespace.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::Error;

/// Passes lines to a program of iproute2, `ip` or `tc`, in the namespace of the calling thread,
/// which errors call `node`.
///
/// # Errors
/// The program is not installed, or rejects a line.
pub fn run_batch(program: &'static str, lines: &str, node: &str) -> Result<(), Error> {
    let mut command = Command::new(program);
    command.args(["-batch", "-"]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let operation = format!(
        "starting `{program}`, which sets up the network of a node (Debian: apt-get install \
         iproute2)"
    );
    let mut child = command.spawn().map_err(Error::call(operation))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early reports the reason, which is read below.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output =
        child.wait_with_output().map_err(Error::call(format!("waiting for `{program}`")))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::Rejected { program, node: node.to_owned(), message })
}
