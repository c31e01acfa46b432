//! Segments of a log that another program removes: nothing more is confirmed, and both relays state
//! what is lost.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::cases::connect;
use crate::relays::{Relays, Role};

/// Segment files of a log, oldest first.
fn segments(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    segments.sort();
    segments
}

/// Stores lines of 1,000 bytes from one meter.
fn store(relays: &Relays, lines: usize) {
    let mut meter = connect(relays);
    meter.write_all(&[&[b'x'; 999][..], b"\n"].concat().repeat(lines)).unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0]).unwrap(), 0, "FIN");
}

/// Result of `log verify`: exit code and output.
fn verify(relays: &Relays, configuration: &str) -> (Option<i32>, String) {
    let done = relays.command(&["log", "verify", configuration]).output().unwrap();
    (done.status.code(), String::from_utf8(done.stdout).unwrap())
}

fn number(relays: &Relays, role: Role, key: &str) -> u64 {
    let status = relays.ask(role, "/status").unwrap();
    status[key].as_u64().unwrap_or_else(|| panic!("{key}: {status}"))
}

/// The delivered gaps.
fn gaps(relays: &Relays) -> Vec<Value> {
    let text = fs::read_to_string(relays.messages()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["event"] == "gap").collect()
}

#[test]
fn a_segment_that_is_removed_while_the_collector_runs_is_a_loss_at_both_ends() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    for _ in 0..8 {
        store(&relays, 1_000);
    }
    let files = segments(&relays.path("collector-log"));
    assert!(files.len() > 3, "{files:?}");
    let name = files[1].file_name().unwrap().to_str().unwrap();
    let bytes = fs::metadata(&files[1]).unwrap().len();
    fs::remove_file(&files[1]).unwrap();
    relays.start(Role::Head);
    // The collector finds the gap, and the service manager starts it again.
    relays.wait_for_report(Role::Collector, &format!("{name} was removed or replaced"));
    relays.wait_for_end(Role::Collector);
    let (code, text) = verify(&relays, "collector.toml");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("missing: ") && text.contains(&format!("from {name} on")), "{text}");
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, &format!("from {name} on"));
    relays.wait_until_delivered();

    let lost = number(&relays, Role::Collector, "log_lost_byte");
    assert!((bytes - 1_000..=bytes).contains(&lost), "{lost} of {bytes}");
    assert_eq!(number(&relays, Role::Collector, "log_gaps_count"), 1);
    let records = number(&relays, Role::Head, "lost_records_count");
    assert!(records > 0);
    assert_eq!(number(&relays, Role::Collector, "lost_records_count"), records);
    assert_eq!(number(&relays, Role::Head, "collector_lost_byte"), lost);
    let metric = format!("gridhaul_relay_lost_records_total {records}\n");
    assert!(relays.metrics(Role::Head).contains(&metric));
    assert!(crate::alerts::fires(&relays, Role::Head, "RelayRecordsLost"));
    assert!(crate::alerts::fires(&relays, Role::Collector, "RelayRecordsLost"));
    relays.wait_for_report(Role::Head, "are lost");
    let gaps = gaps(&relays);
    let counted: u64 = gaps.iter().filter_map(|gap| gap["lost_records_count"].as_u64()).sum();
    assert_eq!(counted, records, "{gaps:?}");
    assert!(gaps.iter().all(|gap| gap["collector"] == "collector"), "{gaps:?}");
    assert!(gaps.iter().any(|gap| gap["lost_byte"] == lost), "{gaps:?}");
    relays.kill(Role::Collector);
    assert_eq!(verify(&relays, "collector.toml").0, Some(0), "it was reported");
}

#[test]
fn no_fin_is_confirmed_after_the_folder_of_the_log_was_removed() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    store(&relays, 1);
    fs::remove_dir_all(relays.path("collector-log")).unwrap();
    let mut meter = connect(&relays);
    // On a busy machine, the connection may have been reset before each of these calls, of which
    // one reports it.
    let written = meter.write_all(b"reading\n");
    let _ = meter.shutdown(Shutdown::Write);
    assert!(written.is_err() || meter.read(&mut [0]).is_err(), "RST, and not FIN");
    relays.wait_for_report(Role::Collector, "was removed or replaced while the relay runs");
    relays.wait_for_end(Role::Collector);
}

#[test]
fn segments_of_the_head_that_are_missing_are_delivered_as_a_gap() {
    // Nothing is delivered: no broker listens there.
    let address = gridhaul_testing::free_address();
    let deliver = format!("deliver.mqtt.broker = \"{address}\"\ndeliver.mqtt.topic = \"t\"");
    let mut relays = Relays::with_delivery("local", "", &deliver);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    for _ in 0..6 {
        store(&relays, 1_000);
    }
    relays.wait_until("the head has all records", |relays| {
        relays.ask(Role::Collector, "/status").is_some_and(|status| status["backlog_byte"] == 0)
    });
    relays.kill(Role::Head);
    let files = segments(&relays.path("head-log"));
    assert!(files.len() > 2, "{files:?}");
    fs::remove_file(&files[0]).unwrap();
    let (code, text) = verify(&relays, "head.toml");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("missing: ") && text.contains("from 0000000000000000.segment"), "{text}");
    let configuration = fs::read_to_string(relays.path("head.toml")).unwrap();
    let to_file = configuration.replace(&deliver, "deliver.file = \"messages.jsonl\"");
    fs::write(relays.path("head.toml"), to_file).unwrap();
    // The broker has acknowledged nothing.
    let epoch = text_after(&fs::read_to_string(relays.path("head-log/segments")).unwrap());
    fs::write(relays.path("head-log/delivered"), format!("{epoch} 0\n")).unwrap();
    relays.start(Role::Head);
    relays.wait_for_report(Role::Head, "from 0000000000000000.segment on");
    let lost = number(&relays, Role::Head, "log_lost_byte");
    assert!(lost > 1_000_000, "{lost}");
    store(&relays, 1);
    relays.wait_until_delivered();
    let gaps = gaps(&relays);
    assert!(gaps.iter().any(|gap| gap["lost_byte"] == lost), "{gaps:?}");
}

/// The epoch at the start of the list of segments.
fn text_after(segments: &str) -> String {
    segments.split(' ').next().unwrap().to_owned()
}
