//! Damage in the middle of a log: it is reported and set aside, everything else is delivered, and no relay waits for ever.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;

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

/// Inverts the byte of the only segment of a log that follows a text.
fn damage(relays: &Relays, folder: &str, before: &str) {
    let mut files = fs::read_dir(relays.path(folder)).unwrap().map(|entry| entry.unwrap().path());
    let path = files.find(|path| path.extension().is_some_and(|it| it == "segment")).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(before.len()).position(|it| it == before.as_bytes()).unwrap();
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
    relays.wait_for_report(Role::Collector, "are damaged; a copy is in damaged-");
    store(&relays, 20..25);
    let found = delivered(&relays);
    assert_eq!(set_aside(&relays, "collector-log"), 1);
    // The first line with this text is number 10.
    assert_eq!(found, lines((0..25).filter(|number| *number != 10)));
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
