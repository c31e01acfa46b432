//! The commands and the file of the guide work as they are printed.

use std::fs;
use std::process::{Command, Stdio};

use gridhaul_testing::{has_program, has_tool};
use serde_json::Value;

use crate::network::{is_possible, relay};

/// Before the commands of the guide: namespaces of their own, and their names.
const BEFORE: &str = "set -e\nmkdir -p /run/netns\nmount -t tmpfs none /run/netns\n\
    ip link set lo up\n";

/// After them: whatever they have started ends, except for the last status.
const AFTER: &str = "\nkill $(jobs -p)\nwait\n";

fn block(text: &str, language: &str) -> String {
    let (_, rest) = text.split_once(&format!("```{language}\n")).unwrap();
    rest.split("```").next().unwrap().to_owned()
}

#[test]
fn the_commands_of_the_guide_work() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guides/bridge.md");
    let guide = fs::read_to_string(root).unwrap();
    let example = format!("{}/examples/bridge.toml", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(fs::read_to_string(example).unwrap(), block(&guide, "toml"));
    let programs = ["unshare", "curl", "python3", "bash"];
    if !is_possible() || !programs.iter().all(|program| has_program(program)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bridge.toml"), block(&guide, "toml")).unwrap();
    let script = format!("{BEFORE}{}{AFTER}", block(&guide, "sh"));
    let path = format!("{}:{}", relay().parent().unwrap().display(), env!("PATH"));
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "bash", "-c", &script]).current_dir(folder.path());
    command.env("PATH", path).stdin(Stdio::null());
    let done = command.output().unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    if !has_tool(!errors.contains("bridge.fail_open"), "the right to attach programs to devices") {
        return;
    }
    let output = String::from_utf8_lossy(&done.stdout);
    let status = output.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let status: Value = serde_json::from_str(status).unwrap_or_default();
    // Attempts before the server listens are connections as well.
    let opened = status["opened_count"]["reflect"].as_u64();
    assert!(opened.is_some_and(|count| count >= 1), "{output}\n{errors}");
}
