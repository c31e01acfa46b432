//! Installs the package in an empty Debian system, and uses it as an operator would.

use std::fs;
use std::path::Path;

use crate::empty_system::EmptySystem;
use crate::process::root;

/// Packages besides the essential ones: systemd has the checks of units, man-db the reader of
/// manual pages, iproute2 starts the loopback device.
const INCLUDED: &str = "systemd,man-db,iproute2";

/// Makes a Debian system in a folder, installs the package there with apt, and runs its programs.
pub(super) fn in_empty_system(package: &Path) -> anyhow::Result<()> {
    let system = EmptySystem::new("dist-system", INCLUDED)?;
    fs::copy(package, system.folder().join("gridhaul.deb"))?;
    let script = root().join("packaging/check.sh");
    fs::copy(&script, system.folder().join("check.sh"))?;
    system.run(&["/bin/sh", "-eu", "/check.sh"])?;
    system.remove()
}
