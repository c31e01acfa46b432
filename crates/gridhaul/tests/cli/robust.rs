//! Runs that are too large, interrupted runs, and concurrent runs into one folder.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Desk, SMALL};
use gridhaul_scenario::answer::Answer;

/// A scenario whose run takes longer than any test.
fn long_scenario() -> String {
    SMALL.replace("5 s", "300000 h")
}

#[expect(clippy::disallowed_methods, reason = "waits for a process of the test")]
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// CPU time of a process, which other load of the machine does not change.
pub(crate) fn cpu_seconds(child: &Child) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let fields: Vec<_> = fields.split_whitespace().collect();
    // utime and stime (proc(5), fields 14 and 15), in hundredths of a second.
    let ticks = |index: usize| fields[index].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

pub(crate) fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn runs_that_are_too_large_are_rejected_with_key_estimate_limit_and_remedy() {
    let shared = SMALL.replace("a = {}", "a = {}\nfar = {}");
    let far = "[link.far]\nfrom = \"far\"\nto = \"b\"\nboth.rate = \"1 Mbit/s\"\n[link.wire]";
    let desk =
        Desk::new().file("small.toml", SMALL).file("far.toml", shared.replace("[link.wire]", far));
    let cases = [
        ("run small.toml --set node.a.count=4e9", "count"),
        ("run small.toml --set node.a.count=4000000000", "the limit is 100000000"),
        ("run small.toml --set node.a.count=90000000", "flow.up: 90000000 connections"),
        ("run far.toml --set node.far.count=4000000000", "node.far.count = 4000000000"),
        ("run far.toml --on emu --set node.far.count=4000000000", "node.far.count = 4000000000"),
        ("emu up far.toml --set node.far.count=4000000000", "node.far.count = 4000000000"),
        ("run small.toml --replications 1000000000", "replications = 1000000000"),
        ("run small.toml --on emu --replications 1000000000", "replications = 1000000000"),
        ("run small.toml --replications 4294967296", "4294967296"),
        ("run small.toml --set 'duration=300000 h'", "duration = \"12500 d\""),
        ("run small.toml --set 'duration=8760000000 h'", "too large"),
        (
            "sweep small.toml --vary seed=lin:1:10000:10000 --replications 1000000",
            "replications = 1000000",
        ),
        ("sweep small.toml --vary 'duration=lin:1000 h:2000 h:9000'", "sweep: 9000 points"),
        (
            "run small.toml --series '1 us' --set 'duration=9 s' --replications 4000000000",
            "replications",
        ),
    ];
    for (line, key) in cases {
        let done = desk.run(line);
        assert_eq!((done.code, done.out.as_str()), (Some(2), ""), "{line}: {done:?}");
        assert!(done.err.contains(key), "{line}: {}", done.err);
        if done.err.contains("is estimated to") {
            let file = line.split(' ').find(|word| word.ends_with(".toml")).unwrap();
            assert!(done.err.contains(&format!("error: {file}: ")), "{line}: {}", done.err);
            let remedy = if line.starts_with("emu up") { "help: " } else { "--ignore-estimate" };
            assert!(done.err.contains(remedy), "{line}: {}", done.err);
        }
        assert_eq!(desk.names("."), ["far.toml", "small.toml"], "{line}");
    }
    // Equations have no packets, and all replications are equal.
    let done = desk.run("run small.toml --on model --replications 1000000000 -q");
    assert_eq!(done.code, Some(0), "{done:?}");
}

#[test]
fn an_interrupted_sweep_keeps_its_finished_points() {
    // The first two points take less than a second, the third does not end.
    let desk = Desk::new().file("long.toml", SMALL);
    let line =
        "sweep long.toml --vary 'duration=5 s,6 s,300000 h' --threads 1 --ignore-estimate --json";
    let mut command = desk.command(line);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The short runs take some hundredths of a second.
    wait_until("the third run has not begun", || cpu_seconds(&child) > 1.5);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("2 of 3 points complete"), "{err}");
    assert!(err.contains("results/long-sweep contains the finished results"), "{err}");
    let answer: Answer = serde_json::from_slice(&output.stdout).unwrap();
    let stored: Answer =
        serde_json::from_str(&desk.text("results/long-sweep/answer.json")).unwrap();
    assert_eq!(answer, stored);
    assert!(answer.incomplete && answer.points.len() == 2);
    assert_eq!(answer.warnings[0].about, "run");
    // The results of the finished runs, from which the same command resumes.
    assert_eq!(desk.names("results"), ["long-sweep", "long-sweep.units"]);
    // The finished points equal those of a run without the third point.
    let alone = desk.run("sweep long.toml --vary 'duration=5 s,6 s' --json --out alone");
    let alone: Answer = serde_json::from_str(&alone.out).unwrap();
    assert_eq!((alone.incomplete, &alone.points), (false, &answer.points));
}

#[test]
fn an_interrupted_run_keeps_its_finished_replications() {
    let desk = Desk::new().file("small.toml", SMALL);
    let line = "run small.toml --replications 100000000 --threads 2 --ignore-estimate -q";
    let mut command = desk.command(line);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("no run is finished", || cpu_seconds(&child) > 1.5);
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let answer: Answer = serde_json::from_str(&desk.text("results/small/answer.json")).unwrap();
    let goodput = answer.points[0].flows[0].metrics.values().next().unwrap();
    assert!(answer.incomplete && goodput.n > 0, "{answer:?}");
}

#[test]
fn an_interrupted_run_without_a_finished_replication_leaves_no_files() {
    let desk = Desk::new().file("endless.toml", long_scenario());
    let mut command = desk.command("run endless.toml --ignore-estimate");
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the run has not begun", || cpu_seconds(&child) > 0.5);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(desk.names("."), ["endless.toml"]);
}

#[test]
fn a_second_run_into_a_folder_is_rejected() {
    let desk = Desk::new().file("endless.toml", long_scenario()).file("small.toml", SMALL);
    let mut command = desk.command("run endless.toml --out here --ignore-estimate");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lock = desk.dir.path().join(".here.lock");
    wait_until("the run has not begun", || {
        std::fs::read_to_string(&lock).is_ok_and(|text| text.ends_with('\n'))
    });
    let done = desk.run("run small.toml --out here");
    assert_eq!(done.code, Some(2), "{done:?}");
    for part in
        ["here: process ", &format!("process {} ", child.id()), "run endless.toml", "help: "]
    {
        assert!(done.err.contains(part), "{part}: {}", done.err);
    }
    // Another results folder can be used at the same time.
    assert_eq!(desk.run("run small.toml --out there").code, Some(0));
    // A killed run removes nothing; the remaining lock file does not block the next run.
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(lock.exists());
    assert_eq!(desk.run("run small.toml --out here").code, Some(0));
    assert_eq!(desk.names("."), ["endless.toml", "here", "small.toml", "there"]);
}
