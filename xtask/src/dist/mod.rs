//! `cargo xtask dist`: programs that run on any Linux of their processor, and a package for Debian.

mod archive;
mod bill;
mod check;
mod deb;
pub(crate) mod dependencies;
mod programs;
mod tree;

use std::path::{Path, PathBuf};
use std::{env, fs};

use anyhow::Context;
use clap::Args;

use crate::process::{self, output, program, root, target};

/// Arguments of `dist`.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Folder of the results [default: dist in the build folder]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Package the programs of this folder, and compile nothing
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Compile without counts of a training run: the build takes half the time, and simulations a
    /// tenth more
    #[arg(long, conflicts_with = "programs")]
    untrained: bool,
    /// Afterwards, install the package in an empty Debian system (needs root and debootstrap), run
    /// its programs and verify the units of systemd
    #[arg(long)]
    check: bool,
}

/// The programs of the package.
const PROGRAMS: [&str; 3] = ["gridhaul", "gridhaul-relay", "gridhaul-measure"];

/// Makes programs, package, archive, bill of materials and checksums, and lists them.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let out = options.out.clone().unwrap_or_else(|| target().join("dist"));
    let release = Release::of_checkout()?;
    let programs = match &options.programs {
        Some(folder) => folder.clone(),
        None => programs::build(!options.untrained)?,
    };
    let package = package(&release, &programs, &out)?;
    print_sizes(&out)?;
    if options.check { check::in_empty_system(&package) } else { Ok(()) }
}

/// Version and time of a release: nothing in a package depends on the time or place of its making.
struct Release {
    version: String,
    /// Time of the commit, in seconds since 1970, for the dates of files.
    time: u64,
}

impl Release {
    fn of_checkout() -> anyhow::Result<Self> {
        let time = match env::var("SOURCE_DATE_EPOCH") {
            Ok(text) => text,
            Err(_) => output(program("git").args(["log", "-1", "--format=%ct"]))?,
        };
        let time = time.trim().parse();
        let time = time.context("SOURCE_DATE_EPOCH, or the time of the commit, is no number")?;
        let manifest: toml::Table = fs::read_to_string(root().join("Cargo.toml"))?.parse()?;
        let version = manifest["workspace"]["package"]["version"].as_str();
        let version = version.context("Cargo.toml has no workspace.package.version")?.to_owned();
        Ok(Self { version, time })
    }

    /// Name of the files of this release for this processor.
    fn name(&self) -> String {
        format!("gridhaul-{}-{}-linux", self.version, env::consts::ARCH)
    }
}

/// Writes all files of a release for these programs to a folder, and returns the Debian package.
fn package(release: &Release, programs: &Path, out: &Path) -> anyhow::Result<PathBuf> {
    if out.exists() {
        fs::remove_dir_all(out).with_context(|| format!("{}", out.display()))?;
    }
    fs::create_dir_all(out).with_context(|| format!("{}", out.display()))?;
    let dependencies = dependencies::linked()?;
    let bill = out.join(format!("{}.cdx.json", release.name()));
    fs::write(&bill, bill::of(release, &dependencies)?)?;
    let tree = tree::make(release, programs, &dependencies, &out.join("root"))?;
    let package = deb::build(release, &tree, out)?;
    archive::build(release, &tree, out)?;
    fs::remove_dir_all(out.join("root"))?;
    write_checksums(out)?;
    Ok(package)
}

/// Writes SHA-256 sums of all files.
fn write_checksums(out: &Path) -> anyhow::Result<()> {
    let names = names(out)?;
    let sums = output(program("sha256sum").current_dir(out).arg("--").args(&names))?;
    Ok(fs::write(out.join("SHA256SUMS"), sums)?)
}

fn print_sizes(out: &Path) -> anyhow::Result<()> {
    println!("{}", out.display());
    for name in names(out)? {
        let bytes = fs::metadata(out.join(&name))?.len();
        println!("  {:>6.1} MB  {name}", bytes as f64 / 1e6);
    }
    Ok(())
}

/// Names of the files in a folder, in order.
fn names(folder: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Gives a tree of files the date of the release.
fn set_dates(release: &Release, folder: &Path) -> anyhow::Result<()> {
    let mut find = program("find");
    find.arg(folder).args(["-exec", "touch", "--no-dereference"]);
    process::run(find.arg(format!("--date=@{}", release.time)).args(["{}", "+"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stand-ins for the programs, which write the files that the real ones would write.
    fn stand_ins(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        for name in PROGRAMS {
            let script = format!(
                "#!/bin/sh\nset -e\n[ \"$1\" = package-files ]\nmkdir -p \"$2/man\" \
                 \"$2/completions\"\necho .TH {name} 1 > \"$2/man/{name}.1\"\n\
                 for file in {name}.bash _{name} {name}.fish; do echo > \
                 \"$2/completions/$file\"; done\n"
            );
            let path = folder.join(name);
            // Another process writes the file: programs that other tests start would have it open
            // for writing until they begin, and it could not be executed (ETXTBSY of execve(2)).
            let draft = folder.join("draft");
            fs::write(&draft, script).unwrap();
            output(program("install").args(["-m", "755"]).args([&draft, &path])).unwrap();
            fs::remove_file(&draft).unwrap();
        }
    }

    #[test]
    fn a_package_has_programs_pages_units_and_licences_and_is_the_same_each_time() {
        let folder = target().join("dist-test");
        let programs = folder.join("programs");
        stand_ins(&programs);
        let release = Release::of_checkout().unwrap();
        let made = |out: &str| fs::read(package(&release, &programs, &folder.join(out)).unwrap());
        let first = made("out").unwrap();
        assert!(first == made("again").unwrap(), "the bytes depend on the time or the folder");
        let name = format!("gridhaul_{}_{}.deb", release.version, deb::ARCHITECTURE);
        let package = folder.join("out").join(name);
        let contents = output(program("dpkg-deb").arg("--contents").arg(package)).unwrap();
        for path in [
            "usr/bin/gridhaul-relay",
            "usr/share/man/man1/gridhaul-measure.1.gz",
            "usr/share/bash-completion/completions/gridhaul",
            "usr/lib/systemd/system/gridhaul-relay@.service",
            "usr/share/gridhaul/monitoring/alerts.yml",
            "usr/share/doc/gridhaul/copyright",
            "usr/share/doc/gridhaul/third-party-licences.gz",
            "usr/share/doc/gridhaul/examples/hybrid.toml",
        ] {
            assert!(contents.contains(&format!(" ./{path}\n")), "{path} is missing:\n{contents}");
        }
        assert!(!contents.contains(root().to_str().unwrap()), "{contents}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
