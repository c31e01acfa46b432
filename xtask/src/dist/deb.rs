//! The package for Debian and its derivatives.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Release, set_dates};
use crate::process::{self, program, root};

/// Debian's name of the processor.
pub(super) const ARCHITECTURE: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

/// Builds the package of a tree of files, and returns its path.
pub(super) fn build(release: &Release, tree: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    let control = tree.join("DEBIAN");
    fs::create_dir_all(&control)?;
    fs::write(control.join("control"), control_file(release, installed_kib(tree)?))?;
    for name in ["postinst", "prerm", "postrm"] {
        let to = control.join(name);
        fs::copy(root().join("packaging/debian").join(name), &to)?;
        fs::set_permissions(&to, fs::Permissions::from_mode(0o755))?;
    }
    set_dates(release, &control)?;
    let package = out.join(format!("gridhaul_{}_{ARCHITECTURE}.deb", release.version));
    let mut build = program("dpkg-deb");
    build.args(["--build", "--root-owner-group", "-Zxz"]).arg(tree).arg(&package);
    process::run(build.env("SOURCE_DATE_EPOCH", release.time.to_string()))?;
    fs::remove_dir_all(&control)?;
    Ok(package)
}

/// The fields of the package. It depends on no other package: the programs are static.
/// `Recommends` are those that most uses of a network need, `Suggests` those of single commands, as
/// `gridhaul doctor` lists them.
fn control_file(release: &Release, installed_kib: u64) -> String {
    let Release { version, .. } = release;
    format!(
        "Package: gridhaul\n\
         Version: {version}\n\
         Architecture: {ARCHITECTURE}\n\
         Maintainer: The gridhaul developers <gridhaul@localhost>\n\
         Installed-Size: {installed_kib}\n\
         Recommends: iproute2, nftables\n\
         Suggests: mosquitto, rabbitmq-server, prosody, tshark\n\
         Section: net\n\
         Priority: optional\n\
         Description: network transport for power grids: predict, deploy, measure\n \
         gridhaul predicts how TCP performs on the narrow, lossy, asymmetric links of\n \
         power grids, by equations, packet simulation and the kernel's own TCP, and\n \
         finds configurations that meet given limits.\n \
         .\n \
         gridhaul-relay collects data of meters durably over few connections, and runs\n \
         TCP proxies between two interfaces. gridhaul-measure measures power-grid\n \
         protocols message by message.\n"
    )
}

/// Size of the installed files in KiB (Debian policy, section 5.6.20).
fn installed_kib(tree: &Path) -> anyhow::Result<u64> {
    let mut kib = 0;
    for entry in fs::read_dir(tree)? {
        let path = entry?.path();
        let metadata = fs::symlink_metadata(&path)?;
        kib += if metadata.is_dir() {
            1 + installed_kib(&path)?
        } else {
            metadata.len().div_ceil(1024)
        };
    }
    Ok(kib)
}
