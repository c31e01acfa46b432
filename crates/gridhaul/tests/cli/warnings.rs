//! Warnings about scenarios that run but probably contain a mistake.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gridhaul_scenario::answer::Answer;

use crate::support::{Desk, SMALL, has_all, repository};

#[test]
fn unused_parts_are_named_by_check_and_in_the_answer() {
    let unused = "[stack.spare]\n[node.alone]\n[node.c.aggregator]\n[node.p.proxy]\nmode \
                  = \"split\"\n\
                  [link.further]\nfrom = \"b\"\nto = \"c\"\nboth = { rate = \"1 Mbit/s\" }\n\
                  [link.last]\nfrom = \"c\"\nto = \"p\"\nboth = { rate = \"1 Mbit/s\" }\n";
    let desk = Desk::new().file("small.toml", SMALL).file("more.toml", SMALL.to_owned() + unused);
    let keys = ["node.p.proxy", "node.c.aggregator", "node.alone", "stack.spare"];
    let done = desk.run("check small.toml more.toml");
    assert_eq!(done.code, Some(0), "{}", done.err);
    assert!(!done.err.contains("small.toml"), "{}", done.err);
    let lines: Vec<_> = done.err.lines().collect();
    let expected = keys.map(|key| format!("warning: more.toml: {key}: "));
    assert_eq!(lines.len(), keys.len(), "{}", done.err);
    for (line, begin) in lines.iter().zip(&expected) {
        assert!(line.starts_with(begin) && line.contains("has no effect: "), "{line}");
    }
    for on in ["sim", "model"] {
        let done = desk.run(&format!("run more.toml --json --on {on} --out {on}"));
        assert_eq!(done.code, Some(0), "{}", done.err);
        let answer: Answer = serde_json::from_str(&done.out).unwrap();
        let about: Vec<_> = answer.warnings.iter().map(|warning| warning.about.as_str()).collect();
        assert!(keys.iter().all(|key| about.contains(key)), "{on}: {about:?}");
    }
}

#[test]
fn scenarios_of_the_repository_have_no_unused_parts() {
    let folders = ["scenarios", "papers/hybrid", "papers/medx", "papers/plc", "papers/sa-tcp"];
    let files = folders.into_iter().flat_map(|folder| {
        let entries = fs::read_dir(repository().join(folder)).unwrap();
        entries.map(|entry| entry.unwrap().path())
    });
    let scenario = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.ends_with(".toml") && !["paper.toml", "claims.toml"].contains(&name.as_str())
    };
    let files: Vec<_> = files.filter(scenario).collect();
    assert!(files.len() > 30, "{} files", files.len());
    let desk = Desk::new();
    let output = desk.command("check").args(files).output().unwrap();
    assert!(output.status.success());
    // Scenarios of the emulator have warnings about what the simulator refuses.
    let warnings = String::from_utf8_lossy(&output.stderr);
    assert!(!warnings.contains("has no effect"), "{warnings}");
    let refused: Vec<_> = warnings.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert!(refused.iter().all(|line| line.contains("router.toml")), "{warnings}");
}

/// Root in a user namespace may create networks, but may not load programs into the kernel.
#[test]
fn a_paper_skips_emulations_that_the_machine_cannot_run() {
    let own = ["--user", "--map-root-user"];
    let may = Command::new("unshare").args(own).arg("true").output();
    if !has_all(if may.is_ok_and(|output| output.status.success()) {
        &[]
    } else {
        &["user namespaces"]
    }) {
        return;
    }
    let desk = Desk::new();
    let mut command = Command::new("unshare");
    command.args(own).arg(env!("CARGO_BIN_EXE_gridhaul")).args(["paper", "medx", "--quick", "-q"]);
    let output = command.current_dir(desk.dir.path()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    let note = err.lines().find(|line| line.starts_with("note: ")).expect("a note");
    assert!(note.contains("is not run on backend emu: "), "{note}");
    assert!(err.contains("Not run on backend emu on this machine: "), "{err}");
    let kept = desk.names("results/paper-medx");
    assert!(kept.contains(&"answer-channel.json".to_owned()), "{kept:?}");
}
