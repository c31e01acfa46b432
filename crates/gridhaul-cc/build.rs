//! Compiles the programs of `bpf/` if a suitable clang is found, and records the reason otherwise:
//! the build continues without them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [&str; 2] = ["vegas", "medx"];

fn main() {
    println!("cargo:rerun-if-changed=bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-env-changed=PATH");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compiled = compile(&out);
    let mut text = String::new();
    for name in PROGRAMS {
        let constant = name.to_uppercase();
        let value = match &compiled {
            Ok(()) => format!("Ok(include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.o\")))"),
            Err(why) => format!("Err({why:?})"),
        };
        text += &format!("pub(crate) const {constant}: Result<&[u8], &str> = {value};\n");
    }
    fs::write(out.join("programs.rs"), text).expect("the folder of the build can be written");
}

fn compile(out: &Path) -> Result<(), String> {
    let clang = find().ok_or("clang was not found when gridhaul was built")?;
    println!("cargo:rerun-if-changed={}", clang.display());
    for name in PROGRAMS {
        let output = Command::new(&clang)
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-c"])
            .arg(format!("bpf/{name}.bpf.c"))
            .arg("-o")
            .arg(out.join(format!("{name}.o")))
            .output()
            .map_err(|error| format!("{} does not run: {error}", clang.display()))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            println!(
                "cargo:warning=kernel congestion control is not built in: {}",
                clang.display()
            );
            errors.lines().for_each(|line| println!("cargo:warning={line}"));
            let first = errors.lines().next().unwrap_or("no error message");
            return Err(format!("{} could not compile bpf/{name}.bpf.c: {first}", clang.display()));
        }
    }
    Ok(())
}

/// `$CLANG`, or the first clang in the path, with or without a version. If there is none, the
/// folders of the path are watched, so that a later installation triggers a build.
fn find() -> Option<PathBuf> {
    if let Some(chosen) = env::var_os("CLANG") {
        return Some(chosen.into());
    }
    let folders: Vec<_> =
        env::split_paths(&env::var_os("PATH")?).filter(|folder| folder.is_dir()).collect();
    let names = std::iter::once(String::from("clang"))
        .chain((12..40).rev().map(|version| format!("clang-{version}")));
    let found = names
        .flat_map(|name| folders.iter().map(move |folder| folder.join(&name)))
        .find(|path| path.is_file());
    if found.is_none() {
        for folder in folders.iter().filter(|folder| folder.ends_with("bin")) {
            println!("cargo:rerun-if-changed={}", folder.display());
        }
    }
    found
}
