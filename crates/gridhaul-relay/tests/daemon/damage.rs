//! Damage in the middle of a log: it is reported and set aside, everything else is delivered, and
//! no relay waits for ever.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;

use serde_json::Value;

use crate::cases::connect;
use crate::ledger;
use crate::relays::{Relays, Role};

/// Stores a line of each number, with an entry of the log for each.
fn store(relays: &Relays, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let mut meter = connect(relays);
        meter.write_all(format!("line {number:0>9}\n").as_bytes()).unwrap();
        meter.shutdown(Shutdown::Write).unwrap();
        assert_eq!(meter.read(&mut [0]).unwrap(), 0);
    }
}

/// Stores a line in two entries of the log, and the end of the stream in a third one.
fn store_in_parts(relays: &Relays, number: u32) {
    let mut meter = connect(relays);
    let peer = meter.local_addr().unwrap().to_string();
    let line = format!("line {number:0>9}\n");
    for end in [8, line.len()] {
        let start = if end == 8 { 0 } else { 8 };
        meter.write_all(&line.as_bytes()[start..end]).unwrap();
        relays.wait_until_durable(&peer, end as u64);
    }
    meter.shutdown(Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0]).unwrap(), 0);
}

/// Inverts the byte of the only segment of a log that follows a text.
fn damage(relays: &Relays, folder: &str, before: &str) {
    let mut files = fs::read_dir(relays.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let path = files
        .find(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(before.len()).position(|window| window == before.as_bytes()).unwrap();
    bytes[at + before.len()] ^= 0xff;
    fs::write(&path, bytes).unwrap();
}

/// The files with damaged regions.
fn set_aside(relays: &Relays, folder: &str) -> usize {
    let names = fs::read_dir(relays.path(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().starts_with("damaged-")).count()
}

/// The delivered lines, in order.
fn delivered(relays: &Relays) -> Vec<String> {
    relays.wait_until_delivered();
    let mut text = String::new();
    ledger::read(&relays.messages(), |_, _, piece| text += piece);
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn lines(numbers: impl Iterator<Item = u32>) -> Vec<String> {
    numbers.map(|number| format!("line {number:0>9}")).collect()
}

#[test]
fn damage_of_an_open_log_ends_the_collector_and_is_set_aside() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    store(&relays, 0..20);
    damage(&relays, "collector-log", "line 00000001");
    relays.start(Role::Head);
    // The service manager starts the relay again.
    relays.wait_for_report(Role::Collector, "no intact entry at position");
    relays.wait_for_end(Role::Collector);
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "; a copy is in damaged-");
    store(&relays, 20..25);
    let found = delivered(&relays);
    assert_eq!(set_aside(&relays, "collector-log"), 1);
    // The first line with this text is number 10.
    assert_eq!(found, lines((0..25).filter(|number| *number != 10)));
}

#[test]
fn a_stream_whose_start_is_damaged_does_not_end_with_fin() {
    // Parts of a message are recorded soon.
    let mut relays = Relays::new("local", "message_wait = \"10 ms\"");
    relays.start(Role::Collector);
    store_in_parts(&relays, 1);
    store_in_parts(&relays, 2);
    damage(&relays, "collector-log", "line 00");
    relays.kill(Role::Collector);
    relays.start(Role::Collector);
    relays.start(Role::Head);
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert_eq!(events(&lines, 0), ["data at 8", "reset: damage"], "the start is lost");
    assert_eq!(events(&lines, 1), ["data at 0", "data at 8", "eof at 15"]);
}

/// Delivered data of a meter, after the opening.
fn events(lines: &str, meter: u64) -> Vec<String> {
    let all = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let of_meter = all.filter(|line| line["meter"] == meter && line["event"] != "open");
    let text = |line: Value| {
        let event = line["event"].as_str().unwrap();
        line["cause"].as_str().map_or_else(
            || format!("{event} at {}", line["offset"]),
            |cause| format!("{event}: {cause}"),
        )
    };
    of_meter.map(text).collect()
}

#[test]
fn a_collector_continues_if_the_head_has_lost_its_name_by_damage() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    store(&relays, 0..20);
    assert_eq!(delivered(&relays), lines(0..20));
    relays.kill(Role::Head);
    // The first entry states the name.
    damage(&relays, "head-log", "collecto");
    relays.start(Role::Head);
    store(&relays, 20..25);
    assert_eq!(delivered(&relays), lines(0..25));
    assert_eq!(set_aside(&relays, "head-log"), 1);
}
