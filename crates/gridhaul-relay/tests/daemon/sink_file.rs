//! The file of a head that other programs rename and remove: each record is delivered once, with
//! the time of its reception.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use serde_json::Value;

use crate::cases::connect;
use crate::relays::{Relays, Role};

/// Stores a line of each number.
fn store(relays: &Relays, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut meter = connect(relays);
        meter.write_all(format!("line {number:0>3}\n").as_bytes()).unwrap();
        meter.shutdown(Shutdown::Write).unwrap();
        assert_eq!(meter.read(&mut [0]).unwrap(), 0);
    }
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The numbers that were delivered to a file, in order.
fn numbers(path: &Path) -> Vec<u32> {
    let data = lines(path).into_iter().filter(|line| line["event"] == "data");
    let mut numbers: Vec<u32> = data
        .map(|line| line["text"].as_str().unwrap().trim()["line ".len()..].parse().unwrap())
        .collect();
    numbers.sort_unstable();
    numbers
}

/// Waits until the head has saved that everything is delivered.
fn wait_until_saved(relays: &Relays) {
    relays.wait_until_delivered();
    relays.wait_until("the position is saved", |relays| {
        let saved = fs::read_to_string(relays.path("head-log/delivered")).unwrap_or_default();
        let status = relays.ask(Role::Head, "/status");
        status.is_some_and(|status| saved.trim().ends_with(&format!(" {}", status["log_end_byte"])))
    });
}

fn both() -> Relays {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    relays
}

#[test]
fn a_file_that_is_renamed_is_followed_by_a_new_one_after_a_signal() {
    let relays = both();
    store(&relays, 0..5);
    relays.wait_until_delivered();
    let old = relays.path("messages.jsonl.1");
    fs::rename(relays.messages(), &old).unwrap();
    relays.signal(Role::Head, Signal::HUP);
    relays.wait_for_report(Role::Head, "another one is begun");
    store(&relays, 5..10);
    relays.wait_until_delivered();
    assert_eq!(numbers(&old), (0..5).collect::<Vec<_>>());
    assert_eq!(numbers(&relays.messages()), (5..10).collect::<Vec<_>>());
}

#[test]
fn a_restart_after_the_file_was_renamed_or_changed_delivers_nothing_again() {
    let mut relays = both();
    store(&relays, 0..5);
    wait_until_saved(&relays);
    relays.kill(Role::Head);
    fs::rename(relays.messages(), relays.path("elsewhere")).unwrap();
    relays.start(Role::Head);
    store(&relays, 5..10);
    wait_until_saved(&relays);
    assert_eq!(numbers(&relays.messages()), (5..10).collect::<Vec<_>>());
    relays.kill(Role::Head);
    // Another program replaces the content by a line of its own.
    fs::write(relays.messages(), "{\"event\":\"checked\"}\n").unwrap();
    relays.start(Role::Head);
    store(&relays, 10..12);
    relays.wait_until_delivered();
    assert_eq!(numbers(&relays.messages()), [10, 11]);
}

#[test]
fn records_are_not_written_to_a_file_that_was_removed() {
    let relays = both();
    store(&relays, 0..2);
    relays.wait_until_delivered();
    fs::remove_file(relays.messages()).unwrap();
    store(&relays, 2..4);
    relays.wait_for_report(Role::Head, "was removed: another one is begun");
    relays.wait_until_delivered();
    assert_eq!(numbers(&relays.messages()), [2, 3]);
}

#[test]
fn the_relay_rotates_the_file() {
    let mut relays = Relays::new("local", "");
    relays.configure(Role::Head, "rotate = { size = \"1 MB\", keep = 4 }");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    for _ in 0..2 {
        let mut meter = connect(&relays);
        meter.write_all(&[&[b'x'; 999][..], b"\n"].concat().repeat(1_500)).unwrap();
        meter.shutdown(Shutdown::Write).unwrap();
        assert_eq!(meter.read(&mut [0]).unwrap(), 0);
        relays.wait_until_delivered();
    }
    relays.wait_until("the file is rotated", |relays| relays.path("messages.jsonl.1").exists());
    // How often the file is rotated depends on the speed of the disk: 3.5 MB of lines are at most
    // four files.
    let rotated = (1..=4).map(|number| format!("messages.jsonl.{number}"));
    let names = std::iter::once("messages.jsonl".to_owned()).chain(rotated);
    let files: Vec<_> = names.map(|name| relays.path(&name)).collect();
    let all = files.iter().filter(|path| path.exists()).flat_map(|path| lines(path));
    let data = all.filter(|line| line["event"] == "data");
    let bytes: usize = data.map(|line| line["text"].as_str().unwrap().len()).sum();
    assert_eq!(bytes, 2 * 1_500_000, "each record once");
}

#[test]
fn lines_state_when_the_collector_has_received_the_records() {
    #[expect(clippy::disallowed_methods, reason = "compared with the clock of the relay")]
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let before = now();
    store(&relays, 0..1);
    let after = now();
    // The head is down for a while.
    relays.wait_until("time has passed", |_| now() > after + 1);
    relays.start(Role::Head);
    relays.wait_until_delivered();
    for line in lines(&relays.messages()) {
        let text = line["received_at"].as_str().unwrap_or_else(|| panic!("{line}"));
        // 2026-11-25T20:53:37.123456Z, compared within the day.
        let number = |from: usize| text[from..from + 2].parse::<u64>().unwrap();
        let of_day = number(11) * 3_600 + number(14) * 60 + number(17);
        let allowed: Vec<u64> = (before..=after).map(|seconds| seconds % 86_400).collect();
        assert!(allowed.contains(&of_day), "{text} is not within {allowed:?}");
        assert!(line.get("clock_synchronised").is_some(), "{line}");
    }
}
