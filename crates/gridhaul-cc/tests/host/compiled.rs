//! Compiles a test program around a header, and runs it with one test case per line.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The output lines of the program `name`.c of this folder, one for each line of `text`. `None`
/// without clang, which is an error in CI.
pub(crate) fn run_program(name: &'static str, text: String) -> Option<Vec<String>> {
    let mut child =
        Command::new(program(name)?).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "{:?}", output.status);
    Some(String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect())
}

/// The compiled program, built once.
fn program(name: &'static str) -> Option<PathBuf> {
    static PROGRAMS: Mutex<BTreeMap<&str, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
    let mut programs = PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner);
    programs.entry(name).or_insert_with(|| compile(name)).clone()
}

fn compile(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let compiler = std::env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/host/{name}.c"));
    let mut command = Command::new(&compiler);
    command.args(["-O1", "-Wall", "-Wno-pass-failed"]);
    command.args(["-fsanitize=undefined", "-fsanitize-trap=all"]);
    let Ok(output) = command.arg(source).arg("-o").arg(&program).output() else {
        let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
        assert!(!ci, "CI needs clang");
        eprintln!("skipped: {compiler} is missing; apt-get install clang");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}
