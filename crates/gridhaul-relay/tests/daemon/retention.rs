//! How long logs are kept, and logs of other versions of the relay.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::PathBuf;

use crate::ledger;
use crate::meters::connect_with_ethernet_mss;
use crate::relays::{Relays, Role, size};

/// Segment files of a log, oldest first.
fn segments(relays: &Relays, folder: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(relays.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    segments.sort();
    segments
}

fn store(relays: &Relays, bytes: &[u8]) {
    let mut socket = connect_with_ethernet_mss(relays.meters);
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn delivered_segments_are_removed() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let line = [&[b'x'; 999][..], b"\n"].concat();
    store(&relays, &line.repeat(9_000));
    assert!(segments(&relays, "collector-log").len() > 3, "nothing is removed before its delivery");
    relays.start(Role::Head);
    relays.wait_until_delivered();
    for folder in ["collector-log", "head-log"] {
        relays.wait_until("the segments are removed", |relays| {
            (1..=2).contains(&segments(relays, folder).len())
        });
    }
}

#[test]
fn a_log_of_another_version_is_refused_and_not_changed() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    store(&relays, b"reading 42\n");
    relays.kill(Role::Collector);
    let path = segments(&relays, "collector-log").remove(0);
    let original = fs::read(&path).unwrap();
    let mut newer = original.clone();
    // The version is after the magic of six bytes; the checksum covers the first 28 bytes and the
    // snapshot, whose length is before it.
    newer[6] += 1;
    let snapshot = u32::from_le_bytes(newer[24..28].try_into().unwrap()) as usize;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&newer[..28]), &newer[32..32 + snapshot]);
    newer[28..32].copy_from_slice(&crc.to_le_bytes());
    fs::write(&path, &newer).unwrap();
    for arguments in [
        &["run", "collector.toml"][..],
        &["log", "list", "collector.toml"],
        &["log", "verify", "collector.toml"],
        &["log", "repair", "collector.toml"],
    ] {
        let done = relays.command(arguments).output().unwrap();
        let error = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.contains("has format version 3; this relay reads version 2"), "{error}");
        assert!(error.contains("start the newer relay that wrote the log"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), newer, "{arguments:?}: the log is not changed");
    }
    fs::write(&path, original).unwrap();
    relays.start(Role::Head);
    relays.start(Role::Collector);
    relays.wait_until_delivered();
    let mut text = String::new();
    ledger::read(&relays.messages(), |_, _, piece| text += piece);
    assert_eq!(text, "reading 42\n");
}

/// Largest memory that a process has used, in kB.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_start_with_a_long_log_needs_memory_for_one_segment() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let empty = peak_memory(relays.process(Role::Collector));
    store(&relays, &[&[b'x'; 999][..], b"\n"].concat().repeat(40_000));
    relays.kill(Role::Collector);
    let length: u64 = segments(&relays, "collector-log").iter().map(|path| size(path)).sum();
    assert!(length > 40_000_000, "{length}");
    relays.start(Role::Collector);
    let used = peak_memory(relays.process(Role::Collector)) - empty;
    // Segments have 2 MB and the records of one group.
    assert!(used < 20_000, "{used} kB for a log of {length} bytes");
}
