//! Programs that a test makes and runs.
//!
//! A file that a process has open for writing cannot be executed (ETXTBSY of execve(2)). If a test
//! wrote the file itself, programs that other threads start at the same time would have it open
//! until they begin. Another process writes it instead.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Copies a program to a path where a test runs it.
///
/// # Panics
/// The program cannot be copied.
pub fn copy_program(program: &Path, copy: &Path) {
    let mut install = Command::new("install");
    let status = install.args(["-m", "755"]).args([program, copy]).status();
    let is_copied = status.is_ok_and(|status| status.success());
    assert!(is_copied, "cannot copy {} to {}", program.display(), copy.display());
}

/// Writes a script to a path where a test runs it.
///
/// # Panics
/// The script cannot be written.
pub fn write_script(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    fs::write(&draft, text).expect("a draft of the script");
    copy_program(&draft, path);
    fs::remove_file(&draft).expect("a draft of the script");
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn a_script_runs_although_other_threads_start_programs() {
        let path = env::temp_dir().join(format!("gridhaul-script-{}", std::process::id()));
        let start = || (0..200).for_each(|_| drop(Command::new("true").status()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(start);
            }
            for code in 0..20 {
                write_script(&path, &format!("#!/bin/sh\nexit {code}\n"));
                assert_eq!(Command::new(&path).status().unwrap().code(), Some(code));
            }
        });
        fs::remove_file(&path).unwrap();
    }
}
