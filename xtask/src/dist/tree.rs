//! The tree of files that a package installs, and its places by the Filesystem Hierarchy Standard.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use super::dependencies::{Dependency, licence_texts};
use super::{PROGRAMS, Release, names, set_dates};
use crate::process::{self, program, root};

const DOCUMENTS: &str = "usr/share/doc/gridhaul";

/// Makes the tree in the folder `tree`, and returns the folder.
pub(super) fn make(
    release: &Release,
    programs: &Path,
    dependencies: &[Dependency],
    tree: &Path,
) -> anyhow::Result<PathBuf> {
    install_programs(programs, tree)?;
    let generated = tree.join("generated");
    for name in PROGRAMS {
        let path = tree.join("usr/bin").join(name);
        process::run(program(path).arg("package-files").arg(&generated))?;
    }
    install_pages(&generated.join("man"), tree)?;
    install_completions(&generated.join("completions"), tree)?;
    fs::remove_dir_all(&generated)?;
    install_files(tree)?;
    install_documents(dependencies, tree)?;
    fs::create_dir_all(tree.join("etc/gridhaul"))?;
    set_dates(release, tree)?;
    Ok(tree.to_owned())
}

fn install_programs(programs: &Path, tree: &Path) -> anyhow::Result<()> {
    for name in PROGRAMS {
        let path = programs.join(name);
        ensure!(path.is_file(), "{}: no such program", path.display());
        install(&path, &tree.join("usr/bin").join(name), 0o755)?;
    }
    Ok(())
}

fn install_pages(pages: &Path, tree: &Path) -> anyhow::Result<()> {
    for name in names(pages)? {
        let to = tree.join("usr/share/man/man1").join(&name);
        install(&pages.join(&name), &to, 0o644)?;
        compress(&to)?;
    }
    Ok(())
}

/// Each shell has a folder of its own for the completions of packages.
fn install_completions(completions: &Path, tree: &Path) -> anyhow::Result<()> {
    for name in PROGRAMS {
        for (file, to) in [
            (format!("{name}.bash"), format!("usr/share/bash-completion/completions/{name}")),
            (format!("_{name}"), format!("usr/share/zsh/vendor-completions/_{name}")),
            (format!("{name}.fish"), format!("usr/share/fish/vendor_completions.d/{name}.fish")),
        ] {
            install(&completions.join(file), &tree.join(to), 0o644)?;
        }
    }
    Ok(())
}

/// Units of systemd, monitoring and example scenarios, as they are in the repository.
fn install_files(tree: &Path) -> anyhow::Result<()> {
    for (from, to) in [
        ("crates/gridhaul-relay/systemd", "usr/lib/systemd/system".to_owned()),
        ("crates/gridhaul-relay/monitoring", "usr/share/gridhaul/monitoring".to_owned()),
        ("crates/gridhaul-relay/examples", format!("{DOCUMENTS}/examples/relay")),
        ("scenarios", format!("{DOCUMENTS}/examples")),
    ] {
        for name in names(&root().join(from))? {
            let path = root().join(from).join(&name);
            if path.is_file() && !name.ends_with(".rs") {
                install(&path, &tree.join(&to).join(&name), 0o644)?;
            }
        }
    }
    Ok(())
}

fn install_documents(dependencies: &[Dependency], tree: &Path) -> anyhow::Result<()> {
    let documents = tree.join(DOCUMENTS);
    install(&root().join("packaging/copyright"), &documents.join("copyright"), 0o644)?;
    install(&root().join("CHANGELOG.md"), &documents.join("changelog"), 0o644)?;
    compress(&documents.join("changelog"))?;
    let licences = documents.join("third-party-licences");
    fs::write(&licences, licence_texts(dependencies)?)?;
    compress(&licences)
}

/// Copies a file with the permissions `mode`, whatever those of the checkout are.
fn install(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("{} to {}", from.display(), to.display()))?;
    Ok(fs::set_permissions(to, fs::Permissions::from_mode(mode))?)
}

/// Compresses a file without its name and time (Debian policy, sections 12.1 and 12.3).
fn compress(path: &Path) -> anyhow::Result<()> {
    process::run_quietly(program("gzip").args(["-9", "--no-name", "--force"]).arg(path), &[])
}
