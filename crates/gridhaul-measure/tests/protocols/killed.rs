//! A broker ends with the program that started it, however that ends.

use std::fs;
use std::process::{Command, Stdio};
use std::{thread, time};

use gridhaul_testing::has_program;

use crate::turn;

/// Processes whose parent is this one.
fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).unwrap();
    let lists =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}

/// Waits until `is_true`, at most 20 s.
#[expect(clippy::disallowed_methods, reason = "waits for other processes in real time")]
fn eventually(mut is_true: impl FnMut() -> bool) -> bool {
    (0..2_000).any(|_| {
        thread::sleep(time::Duration::from_millis(10));
        is_true()
    })
}

#[test]
fn mosquitto_ends_when_the_program_is_killed() {
    let _turn = turn();
    if !has_program("mosquitto") {
        return;
    }
    // A killed program leaves the folder of its broker.
    let folder = tempfile::tempdir().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_gridhaul-measure"))
        .args(["latency", "mqtt", "--messages", "100000", "--no-floor", "-q"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut brokers = Vec::new();
    let name = |pid: u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    assert!(eventually(|| {
        brokers = children(program.id());
        brokers.iter().any(|&pid| name(pid) == "mosquitto\n")
    }));
    program.kill().unwrap();
    program.wait().unwrap();
    // Where no process reaps orphans, a zombie stays, which holds no socket.
    let status = |pid: u32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let is_gone = |&pid: &u32| name(pid) != "mosquitto\n" || status(pid).contains("State:\tZ");
    assert!(eventually(|| brokers.iter().all(is_gone)), "{brokers:?} outlive the program");
}
