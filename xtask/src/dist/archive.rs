//! The archive for distributions without packages of Debian: the same files, below one folder.

use std::path::Path;

use super::Release;
use crate::process::{self, program};

/// Builds `NAME.tar.gz`.
pub(super) fn build(release: &Release, tree: &Path, out: &Path) -> anyhow::Result<()> {
    let (name, archive) = (release.name(), out.join(format!("{}.tar.gz", release.name())));
    let mut tar = program("tar");
    tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    // gzip's own header must not have a time.
    tar.args(["--use-compress-program", "gzip -9 --no-name", "--file"]).arg(archive);
    tar.arg("--directory").arg(tree);
    process::run(tar.arg(format!("--transform=s,^\\.,{name},")).arg("."))
}
