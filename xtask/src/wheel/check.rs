//! Runs a wheel on the oldest machines that it declares.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};

use crate::empty_system::EmptySystem;
use crate::process::{self, installed, output, program, root, target};

/// The oldest Python of `requires-python` in python/pyproject.toml.
const PYTHON: &str = "python3.11";

/// A processor with the instructions of x86-64-v1 and SSSE3, of 2006: wheels for `x86_64` may
/// contain no newer ones.
const PROCESSOR: [&str; 3] = ["qemu-x86_64", "-cpu", "core2duo"];

/// The program that uses the package.
const PROGRAM: &str = "packaging/check_wheel.py";

/// Checks the symbols of the C library, and runs the program on an old processor and in an empty
/// system.
pub(super) fn run(wheel: &Path) -> anyhow::Result<()> {
    let needed = [
        ("qemu-x86_64", "emulates the processor: apt install qemu-user"),
        (PYTHON, "is the oldest Python of the wheel: apt install python3.11"),
        ("readelf", "reads the symbols: apt install binutils"),
    ];
    for (name, purpose) in needed {
        ensure!(installed(name), "{name} {purpose}");
    }
    let folder = target().join("wheel-check");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // The wheel is an archive of the packages folder: the empty system needs no pip.
    process::run(program(PYTHON).args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder))?;
    check_symbols(wheel, &folder)?;
    let version = output(program(PYTHON).arg("--version"))?;
    let [emulator, option, processor] = PROCESSOR;
    // The name in the search path may be a script, which no emulated processor runs.
    let python = output(program(PYTHON).args(["-c", "import sys; print(sys.executable)"]))?;
    let mut emulated = program(emulator);
    emulated.args([option, processor, python.trim(), PROGRAM]).env("PYTHONPATH", &folder);
    process::run(&mut emulated)?;
    println!("{} on {processor}: passed", version.trim());
    let system = EmptySystem::new("wheel-system", "python3")?;
    let inside = system.folder().join("packages");
    process::run(program("cp").arg("-r").arg(&folder).arg(&inside))?;
    fs::copy(root().join(PROGRAM), system.folder().join("check_wheel.py"))?;
    system.run(&["env", "PYTHONPATH=/packages", "python3", "/check_wheel.py"])?;
    system.remove()
}

/// Checks that the module needs no newer C library than the name of the wheel declares.
fn check_symbols(wheel: &Path, folder: &Path) -> anyhow::Result<()> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy();
    let declared = declared_version(&name)
        .with_context(|| format!("{name} declares no version of the C library"))?;
    let module = folder.join("gridhaul/_native.abi3.so");
    let text = output(program("readelf").args(["--wide", "--version-info"]).arg(&module))?;
    let needed = text.split("GLIBC_").skip(1).filter_map(version).max();
    let needed = needed.context("the module needs no symbol of the C library")?;
    if needed > declared {
        bail!("the module needs glibc {}.{}, and {name} declares less", needed.0, needed.1);
    }
    println!(
        "{name}: needs glibc {}.{}, declares {}.{}",
        needed.0, needed.1, declared.0, declared.1
    );
    Ok(())
}

/// The oldest C library that the name of a wheel declares: the first of several tags that has one.
fn declared_version(name: &str) -> Option<(u32, u32)> {
    let (_, rest) = name.split_once("manylinux_")?;
    let mut numbers = rest.split('_').map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// The version at the start of a text, such as `2.17`.
fn version(text: &str) -> Option<(u32, u32)> {
    let text = text.split(|character: char| !(character.is_ascii_digit() || character == '.'));
    let (major, minor) = text.into_iter().next()?.split_once('.')?;
    // A symbol of `GLIBC_2.2.5` has a third number.
    let minor = minor.split('.').next()?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_the_c_library() {
        let name = "gridhaul-0.1.0-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl";
        assert_eq!(declared_version(name), Some((2, 17)));
        assert_eq!(declared_version("gridhaul-0.1.0-cp311-abi3-linux_x86_64.whl"), None);
        let found = ["2.17 (3)", "2.2.5  Flags", "2.34", "PRIVATE"].map(version);
        assert_eq!(found, [Some((2, 17)), Some((2, 2)), Some((2, 34)), None]);
        assert!(version("2.4") < version("2.17"));
    }
}
