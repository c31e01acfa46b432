//! `cargo xtask bpf`: compiles the programs for the kernel, which are embedded in gridhaul.
//!
//! The compiled files are in the repository, so that a build needs no clang and all builds load the
//! same programs. Beside them, `SHA256SUMS` has the hashes of sources and compiled files; tests
//! fail if one of them changes without the other.

use std::fs;
use std::path::Path;

use anyhow::{Context, ensure};

use crate::process::{self, output, program, root};

/// Crates with programs for the kernel, each a file with the ending `.bpf.c` in the folder `bpf`.
const CRATES: [&str; 2] = ["crates/gridhaul-cc", "crates/gridhaul-linux"];

/// Compiles all programs, and writes the hashes.
pub(crate) fn run() -> anyhow::Result<()> {
    let compiler = version()?;
    for folder in CRATES {
        let compiled = root().join(folder).join(COMPILED);
        fs::create_dir_all(&compiled)?;
        for source in programs(folder)? {
            let object = compiled.join(object_name(&source));
            compile(&format!("{folder}/{source}"), &object)?;
        }
        let hashes = hash(folder, &files(folder)?)?;
        let text = format!(
            "# Programs for the Linux kernel, made from these sources by `cargo xtask bpf`.\n\
             # Licence of sources and programs: Apache-2.0 OR GPL-2.0-only\n\
             {COMPILER}{compiler}\n{hashes}"
        );
        fs::write(root().join(folder).join(SUMS), text)?;
    }
    Ok(())
}

/// Folder of compiled files in a crate, and the file of hashes, whose format is that of sha256sum.
const COMPILED: &str = "bpf/compiled";
const SUMS: &str = "bpf/compiled/SHA256SUMS";

/// Begin of the line with the version of the compiler.
const COMPILER: &str = "# Compiler: ";

/// The first line of the compiler's version.
fn version() -> anyhow::Result<String> {
    let text = output(program("clang").arg("--version"))
        .context("clang compiles the programs for the kernel (Debian packages clang, llvm)")?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

/// Compiles a source, named from the root of the repository. The debug information for the kernel
/// (BTF) stays; the compiler's (DWARF), from which it is made, is removed.
fn compile(source: &str, object: &Path) -> anyhow::Result<()> {
    let target = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-fdebug-compilation-dir=."];
    let warnings = ["-Wall", "-Wextra", "-Werror"];
    let mut clang = program("clang");
    clang.args(target).args(warnings).args(["-c", source, "-o"]).arg(object);
    process::run(&mut clang)?;
    process::run(program("llvm-objcopy").arg("--strip-debug").arg(object))
}

/// The names of the programs' sources in a crate.
fn programs(folder: &str) -> anyhow::Result<Vec<String>> {
    let all = files(folder)?;
    Ok(all.into_iter().filter(|name| name.ends_with(".bpf.c")).collect())
}

/// The object has the name of its source, with the ending `.o`.
fn object_name(source: &str) -> String {
    source.trim_start_matches("bpf/").replace(".bpf.c", ".o")
}

/// Sources, headers and compiled files of a crate, in order.
fn files(folder: &str) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for part in ["bpf", COMPILED] {
        for entry in fs::read_dir(root().join(folder).join(part))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if [".c", ".h", ".o"].iter().any(|end| name.ends_with(end)) {
                names.push(format!("{part}/{name}"));
            }
        }
    }
    names.sort();
    Ok(names)
}

/// Lines of sha256sum for files of a crate.
fn hash(folder: &str, names: &[String]) -> anyhow::Result<String> {
    let folder = root().join(folder);
    let text = output(program("sha256sum").current_dir(folder).arg("--").args(names))?;
    ensure!(text.lines().count() == names.len(), "sha256sum has printed:\n{text}");
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::installed;

    /// Lines with hashes, and the version of the compiler.
    fn sums(folder: &str) -> (String, String) {
        let text = fs::read_to_string(root().join(folder).join(SUMS)).unwrap();
        let (comments, hashes): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with('#'));
        let compiler = comments.iter().find_map(|line| line.strip_prefix(COMPILER)).unwrap();
        (hashes.iter().map(|line| format!("{line}\n")).collect(), compiler.to_owned())
    }

    #[test]
    fn compiled_programs_belong_to_the_sources_beside_them() {
        for folder in CRATES {
            let now = hash(folder, &files(folder).unwrap()).unwrap();
            assert_eq!(
                now,
                sums(folder).0,
                "{folder}/bpf has changed: compile the programs with `cargo xtask bpf`"
            );
        }
    }

    #[test]
    fn the_same_compiler_makes_the_same_programs() {
        if !installed("clang") || !installed("llvm-objcopy") {
            println!("skipped: install the Debian packages clang and llvm");
            return;
        }
        let version = version().unwrap();
        let folder = std::env::temp_dir().join(format!("gridhaul-bpf-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        for crate_folder in CRATES.into_iter().filter(|name| sums(name).1 == version) {
            for source in programs(crate_folder).unwrap() {
                let name = object_name(&source);
                compile(&format!("{crate_folder}/{source}"), &folder.join(&name)).unwrap();
                let kept = root().join(crate_folder).join(COMPILED).join(&name);
                let same = fs::read(folder.join(&name)).unwrap() == fs::read(kept).unwrap();
                assert!(same, "{source}: `cargo xtask bpf` makes another {name}");
            }
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
