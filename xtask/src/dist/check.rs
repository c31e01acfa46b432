//! Installs the package in an empty Debian system, and uses it as an operator would.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::process::{self, installed, program, root, target};

/// Packages besides the essential ones: systemd has the checks of units, man-db the reader of
/// manual pages, iproute2 starts the loopback device.
const INCLUDED: &str = "--include=systemd,man-db,iproute2";

/// Makes a Debian system in a folder with debootstrap, installs the package there with apt, and
/// runs its programs.
pub(super) fn in_empty_system(package: &Path) -> anyhow::Result<()> {
    ensure!(
        installed("debootstrap"),
        "debootstrap makes the empty system: apt install debootstrap"
    );
    let system = target().join("dist-system");
    if system.exists() {
        fs::remove_dir_all(&system)?;
    }
    let release = fs::read_to_string("/etc/os-release")?;
    let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    let codename = codename.context("/etc/os-release has no VERSION_CODENAME")?;
    let mut debootstrap = program("debootstrap");
    process::run(debootstrap.args(["--variant=minbase", INCLUDED, codename]).arg(&system))?;
    fs::copy(package, system.join("gridhaul.deb"))?;
    let script = root().join("packaging/check.sh");
    fs::copy(&script, system.join("check.sh"))?;
    // In own namespaces: what the script starts ends with it, and reaches only the loopback device.
    let mut check = program("unshare");
    check.args(["--net", "--pid", "--mount", "--fork", "--kill-child", "chroot"]).arg(&system);
    process::run(check.args(["/bin/sh", "-eu", "/check.sh"]))?;
    fs::remove_dir_all(&system)?;
    Ok(())
}
