//! `cargo xtask browser`: the status page of the relay in headless Chromium, whose installation
//! would take too much of CI.

use anyhow::ensure;

use crate::process::{self, cargo, installed};

/// Runs the test.
pub(crate) fn run() -> anyhow::Result<()> {
    ensure!(
        installed("chromium"),
        "chromium is missing; install the Debian package chromium (`apt-get install \
         --no-install-recommends chromium`)"
    );
    let mut test = cargo();
    test.args(["test", "--locked", "-p", "gridhaul-relay", "--test", "daemon", "page::"]);
    process::run(test.args(["--", "--ignored"]))
}
