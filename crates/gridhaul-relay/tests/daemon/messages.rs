//! One message of a meter is one record, however TCP has divided it.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cases::connect;
use crate::relays::{Relays, Role};
use crate::upgrade::upgrade;

/// Sends a piece, and waits until the collector has read it: the next one is another segment.
fn send(relays: &Relays, meter: &mut TcpStream, sent: &mut u64, piece: &str) {
    meter.write_all(piece.as_bytes()).unwrap();
    *sent += piece.len() as u64;
    relays.wait_until_received(*sent);
}

/// Text and end mark of the data records that were delivered.
fn records(relays: &Relays) -> Vec<(String, bool)> {
    let text = fs::read_to_string(relays.messages()).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let data = lines.filter(|line| line["event"] == "data");
    data.map(|line| (line["text"].as_str().unwrap().to_owned(), line["ends_message"] == true))
        .collect()
}

#[test]
fn messages_in_several_segments_are_one_record_each() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    let mut sent = 0;
    for piece in ["reading", " 42\nread", "ing 43", "\nhalf"] {
        send(&relays, &mut meter, &mut sent, piece);
    }
    // Longer than one read.
    let long = "x".repeat(50_000);
    meter.write_all(format!("{long}\nno end").as_bytes()).unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    let expected = [
        ("reading 42\n".to_owned(), true),
        ("reading 43\n".to_owned(), true),
        (format!("half{long}\n"), true),
        ("no end".to_owned(), false),
    ];
    assert_eq!(records(&relays), expected);
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert_eq!(status["message_parts_count"], 1, "{status}");
}

#[test]
fn a_message_that_is_not_completed_is_recorded_in_time() {
    let mut relays = Relays::new("local", "message_wait = \"300 ms\"");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    meter.write_all(b"login: ").unwrap();
    relays.wait_until("the part is delivered", |relays| {
        fs::metadata(relays.messages()).is_ok() && !records(relays).is_empty()
    });
    assert_eq!(records(&relays), [("login: ".to_owned(), false)]);
}

#[test]
fn a_message_that_waits_in_the_kernel_is_not_ended_by_a_pause() {
    let mut relays = Relays::new("server", "");
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let text = text.replace("framing.delimiter.byte = 10", "framing.idle_gap = \"20 ms\"");
    fs::write(&path, text).unwrap();
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    // Longer than what is accepted of a meter while the head is absent.
    meter.write_all("x".repeat(70_000).as_bytes()).unwrap();
    relays.wait_until("the collector stops reading", |relays| {
        let answer = relays.ask(Role::Collector, "/details");
        answer.is_some_and(|answer| answer["meters"][0]["unread_byte"].as_u64() > Some(0))
    });
    thread::sleep(Duration::from_millis(200));
    relays.start(Role::Head);
    relays.wait_until("the pause after the message is noticed", |relays| {
        fs::metadata(relays.messages()).is_ok()
            && records(relays).iter().any(|(_, ends_message)| *ends_message)
    });
    let found = records(&relays);
    let lengths: Vec<(usize, bool)> =
        found.iter().map(|(text, ends_message)| (text.len(), *ends_message)).collect();
    assert_eq!(lengths, [(64_000, false), (6_000, true)]);
}

#[test]
fn a_stop_records_the_parts_that_have_arrived() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    send(&relays, &mut meter, &mut 0, "one\nhalf");
    relays.signal(Role::Collector, Signal::TERM);
    relays.wait_for_end(Role::Collector);
    relays.start(Role::Collector);
    relays.wait_until("both parts are delivered", |relays| {
        fs::metadata(relays.messages()).is_ok() && records(relays).len() >= 2
    });
    assert_eq!(records(&relays), [("one\n".to_owned(), true), ("half".to_owned(), false)]);
}

#[test]
fn an_upgrade_keeps_the_part_of_a_message() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    send(&relays, &mut meter, &mut 0, "one\nhalf");
    upgrade(&relays);
    meter.write_all(b" and half\n").unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    let expected = [("one\n".to_owned(), true), ("half and half\n".to_owned(), true)];
    assert_eq!(records(&relays), expected);
}
