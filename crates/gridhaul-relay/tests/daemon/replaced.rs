//! Logs and names that were replaced: an older log, an empty one, two collectors with one name.
//! Nothing is lost or reset without a report.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::path::Path;

use crate::cases::connect;
use crate::ledger;
use crate::relays::{Relays, Role};

/// A meter sends a line, and waits until FIN is answered.
fn send(relays: &Relays, line: &str) {
    let mut socket = connect(relays);
    socket.write_all(line.as_bytes()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored");
}

fn copy_files(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn delivered(relays: &Relays) -> String {
    let mut text = String::new();
    ledger::read(&relays.messages(), |_, _, piece| text += piece);
    text
}

fn upstream_error(relays: &Relays) -> String {
    let status = relays.ask(Role::Collector, "/status").unwrap();
    status["upstream_error"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_log_from_a_backup_confirms_nothing_that_is_not_delivered() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    send(&relays, "before the backup\n");
    relays.wait_until_delivered();
    relays.kill(Role::Collector);
    copy_files(&relays.path("collector-log"), &relays.path("backup"));
    for line in ["after it\n", "and later\n"] {
        relays.start(Role::Collector);
        send(&relays, line);
        relays.wait_until_delivered();
        relays.kill(Role::Collector);
    }
    fs::remove_dir_all(relays.path("collector-log")).unwrap();
    copy_files(&relays.path("backup"), &relays.path("collector-log"));
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "the log is older than the head's records");
    relays.wait_for_report(
        Role::Collector,
        "help: stop this collector, move the folder of `log.folder`",
    );
    send(&relays, "stored, and not delivered\n");
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert!(status["backlog_byte"].as_u64().unwrap() > 0, "{status}");
    assert!(upstream_error(&relays).contains("restored from a backup?"), "{status}");
    // The remedy.
    relays.kill(Role::Collector);
    fs::rename(relays.path("collector-log"), relays.path("moved-log")).unwrap();
    relays.start(Role::Collector);
    send(&relays, "with a new log\n");
    relays.wait_until_delivered();
    assert_eq!(delivered(&relays), "before the backup\nafter it\nand later\nwith a new log\n");
}

#[test]
fn a_head_that_has_lost_its_log_is_reported() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    (0..10).for_each(|number| send(&relays, &format!("line {number}\n")));
    relays.wait_until_delivered();
    relays.kill(Role::Head);
    fs::remove_dir_all(relays.path("head-log")).unwrap();
    fs::rename(relays.messages(), relays.path("earlier.jsonl")).unwrap();
    relays.start(Role::Head);
    relays.wait_for_report(Role::Collector, "the head has lost records that it had confirmed");
    send(&relays, "later\n");
    relays.wait_until_delivered();
    assert!(delivered(&relays).ends_with("later\n"));
}

#[test]
fn a_second_collector_of_the_same_name_is_refused_while_the_first_is_connected() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    meter.write_all(b"begun, ").unwrap();
    let mut second = Relays::new("local", "");
    let upstream = |relays: &Relays| {
        let text = fs::read_to_string(relays.path("collector.toml")).unwrap();
        let line = text.lines().find(|line| line.starts_with("upstream")).unwrap().to_owned();
        (text, line)
    };
    let (text, own) = upstream(&second);
    fs::write(second.path("collector.toml"), text.replace(&own, &upstream(&relays).1)).unwrap();
    second.start(Role::Collector);
    second.wait_for_report(
        Role::Collector,
        "a collector with this name and another log is connected",
    );
    send(&second, "of the second\n");
    meter.write_all(b"continued\n").unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0; 1]).unwrap(), 0, "the first is not disturbed");
    relays.wait_until_delivered();
    assert_eq!(delivered(&relays), "begun, continued\n");
    // A replacement of the first.
    relays.kill(Role::Collector);
    second.wait_for_report(Role::Collector, "connected again");
    second.wait_until("the line is delivered", |_| delivered(&relays).ends_with("of the second\n"));
}
