//! The programs that set up what is in a namespace.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::fault::Fault;

/// Hands lines to a program of iproute2, `ip` or `tc`, in the namespace of the calling thread, which
/// errors call `node`.
///
/// # Errors
/// The program is not there, or refuses a line.
pub fn run_batch(program: &'static str, lines: &str, node: &str) -> Result<(), Fault> {
    let mut command = Command::new(program);
    command.args(["-batch", "-"]).stdin(Stdio::piped());
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let doing = format!(
        "starting `{program}`, which sets up the network of a node (Debian: apt-get install iproute2)"
    );
    let mut child = command.spawn().map_err(Fault::call(doing))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that ends early says why below.
        let _ = stdin.write_all(lines.as_bytes());
    }
    let output =
        child.wait_with_output().map_err(Fault::call(format!("waiting for `{program}`")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Fault::Refused { program, node: node.to_owned(), said })
}
