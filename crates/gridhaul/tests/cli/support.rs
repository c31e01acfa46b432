//! Runs the program in an empty temporary folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A temporary folder in which a test runs the program.
pub(crate) struct Desk {
    /// The folder.
    pub(crate) dir: TempDir,
}

/// Result of a run of the program.
#[derive(Debug)]
pub(crate) struct Done {
    /// Exit code; none if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
}

impl Desk {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    /// Writes a file into the folder.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        fs::write(self.dir.path().join(name), content).unwrap();
        self
    }

    /// The program with these arguments, separated by blanks outside quotes.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gridhaul"));
        command.args(words(line)).current_dir(self.dir.path()).stdin(Stdio::null());
        command.env_remove("COLUMNS").env("RUST_BACKTRACE", "1");
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, line: &str) -> Done {
        let Output { status, stdout, stderr } = self.command(line).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
        Done { code: status.code(), out: text(stdout), err: text(stderr) }
    }

    /// Sorted names of the files and folders in a subfolder, including hidden ones.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.dir.path().join(folder)).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Text of a file in the folder.
    pub(crate) fn text(&self, file: &str) -> String {
        fs::read_to_string(self.dir.path().join(file)).unwrap()
    }
}

/// Whether a test has all prerequisites. Missing ones fail the test in CI; elsewhere the test
/// reports that it is skipped.
pub(crate) fn has_all(missing: &[impl std::fmt::Display]) -> bool {
    let missing: Vec<_> = missing.iter().map(ToString::to_string).collect();
    let ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(missing.is_empty() || !ci, "CI needs these: {missing:#?}");
    if !missing.is_empty() {
        eprintln!("skipped, missing: {missing:#?}");
    }
    missing.is_empty()
}

/// Splits a line as a shell does, with single and double quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut any) = (Vec::new(), String::new(), None, false);
    for character in line.chars() {
        match (character, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => (quote, any) = (Some(character), true),
            (c, None) if c.is_whitespace() => {
                if any || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                any = false;
            }
            (c, _) => word.push(c),
        }
    }
    if any || !word.is_empty() {
        words.push(word);
    }
    words
}

/// The folder of the repository.
pub(crate) fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A small scenario that takes less than a second.
pub(crate) const SMALL: &str = r#"
title = "small"
duration = "5 s"

[node]
a = {}
b = {}

[link.wire]
from = "a"
to = "b"
both = { rate = "1 Mbit/s", delay = "10 ms" }

[flow.up]
from = "a"
to = "b"
load = "bulk"
"#;
