//! Commands that are programs of their own.

use std::path::PathBuf;
use std::process::Command;

use gridhaul_testing::{copy_program, write_script};

/// A copy of this program in an empty folder: no other program is in that folder.
fn alone(folder: &std::path::Path) -> PathBuf {
    let copy = folder.join("gridhaul");
    copy_program(env!("CARGO_BIN_EXE_gridhaul").as_ref(), &copy);
    copy
}

#[test]
fn a_missing_program_yields_the_build_command() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(alone(folder.path()));
    let done = command.args(["measure", "latency"]).env("PATH", folder.path()).output().unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(2), "{error}");
    assert!(error.contains("the program gridhaul-measure is not installed"), "{error}");
    assert!(error.contains("cargo install --path crates/gridhaul-measure"), "{error}");
}

#[test]
fn a_program_receives_all_arguments_and_determines_the_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("gridhaul-measure");
    write_script(&program, "#!/bin/sh\necho \"$@\"\nexit 7\n");
    let mut command = Command::new(alone(folder.path()));
    let done = command.args(["measure", "latency", "--help", "-x", "--", "y"]).output().unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "latency --help -x -- y\n");
    assert_eq!(done.status.code(), Some(7));
}
