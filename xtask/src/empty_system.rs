//! Empty Debian systems, in which packages are tried.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::process::{self, installed, program, target};

/// A system of the Debian release of this machine, in a folder.
pub(crate) struct EmptySystem {
    folder: PathBuf,
}

impl EmptySystem {
    /// Makes a system with debootstrap: the essential packages, and these.
    pub(crate) fn new(name: &str, packages: &str) -> anyhow::Result<Self> {
        ensure!(
            installed("debootstrap"),
            "debootstrap makes the empty system: apt install debootstrap"
        );
        let folder = target().join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        let release = fs::read_to_string("/etc/os-release")?;
        let codename = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
        let codename = codename.context("/etc/os-release has no VERSION_CODENAME")?;
        let mut debootstrap = program("debootstrap");
        debootstrap.args(["--variant=minbase", &format!("--include={packages}"), codename]);
        process::run(debootstrap.arg(&folder))?;
        Ok(Self { folder })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs a program in the system, in namespaces of its own: what it starts ends with it, and
    /// reaches only the loopback device.
    pub(crate) fn run(&self, command: &[&str]) -> anyhow::Result<()> {
        let mut unshare = program("unshare");
        unshare.args(["--net", "--pid", "--mount", "--fork", "--kill-child", "chroot"]);
        process::run(unshare.arg(&self.folder).args(command))
    }

    pub(crate) fn remove(self) -> anyhow::Result<()> {
        Ok(fs::remove_dir_all(self.folder)?)
    }
}
