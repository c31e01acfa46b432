//! `cargo xtask browser`: the status page of the relay and the page of `gridhaul explore` in
//! headless Chromium, whose installation would take too much of CI.

use anyhow::ensure;

use crate::process::{self, cargo, installed};

/// Runs the test.
pub(crate) fn run() -> anyhow::Result<()> {
    ensure!(
        installed("chromium"),
        "chromium is missing; install the Debian package chromium (`apt-get install \
         --no-install-recommends chromium`)"
    );
    for (package, test, filter) in
        [("gridhaul-relay", "daemon", "page::"), ("gridhaul", "cli", "explore::browser::")]
    {
        let mut command = cargo();
        command.args(["test", "--locked", "-p", package, "--test", test, filter]);
        process::run(command.args(["--", "--ignored"]))?;
    }
    Ok(())
}
