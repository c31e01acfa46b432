//! Single cases: FIN and RST, an unreachable head, a second process, damage, the status.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use socket2::SockRef;

use crate::ledger;
use crate::meters::connect_with_ethernet_mss;
use crate::relays::{Relays, Role, size};

pub(crate) fn connect(relays: &Relays) -> TcpStream {
    let socket = TcpStream::connect(relays.meters).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

#[test]
fn data_arrives_and_fin_is_answered() {
    for tier in ["memory", "local", "server"] {
        let mut relays = Relays::new(tier, "");
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let mut socket = connect(&relays);
        socket.write_all(b"first\nsecond\nrest").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "{tier}: FIN");
        relays.wait_until_delivered();
        let mut text = String::new();
        let delivered = ledger::read(&relays.messages(), |_, _, piece| text += piece);
        let is_ended = delivered.values().next().unwrap().is_ended;
        assert_eq!((text.as_str(), is_ended), ("first\nsecond\nrest", true));
        let lines = fs::read_to_string(relays.messages()).unwrap();
        assert_eq!(lines.matches("\"ends_message\":true").count(), 2);
    }
}

#[test]
fn data_that_waits_behind_an_urgent_byte_is_stored() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"first\n").unwrap();
    relays.wait_until_received(6);
    relays.signal(Role::Collector, Signal::STOP);
    socket.write_all(b"second\n").unwrap();
    assert_eq!(SockRef::from(&socket).send_out_of_band(b"!").unwrap(), 1);
    socket.write_all(b"third\n").unwrap();
    relays.signal(Role::Collector, Signal::CONT);
    // The urgent byte is not part of the stream.
    relays.wait_until_received(6 + 7 + 6);
}

#[test]
fn a_kill_resets_the_meters() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"data").unwrap();
    relays.wait_until_received(4);
    relays.kill(Role::Collector);
    let error = socket.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "a FIN would state that all is stored");
}

#[test]
fn local_data_waits_for_a_head_that_is_unreachable() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    for number in 0..20 {
        let mut socket = connect(&relays);
        socket.write_all(format!("message {number}\n").as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored here, so FIN is answered");
    }
    assert_eq!(size(&relays.messages()), 0);
    relays.wait_until("the oldest record is half a second old", |relays| {
        let status = relays.ask(Role::Collector, "/status").unwrap();
        status["oldest_record_age_s"].as_f64().unwrap() > 0.5
    });
    relays.kill(Role::Collector);
    relays.start(Role::Collector);
    relays.start(Role::Head);
    relays.wait_until_delivered();
    assert_eq!(ledger::read(&relays.messages(), |_, _, _| {}).len(), 20);
}

#[test]
fn without_a_head_the_server_tier_does_not_answer() {
    let mut relays = Relays::new("server", "");
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"data\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::WouldBlock);
    relays.start(Role::Head);
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn the_log_is_bounded_and_senders_wait() {
    let mut relays = Relays::new("memory", "memory = \"2 MB\"");
    relays.start(Role::Collector);
    let backlog = |relays: &Relays| {
        relays.ask(Role::Collector, "/status").unwrap()["backlog_byte"].as_u64().unwrap()
    };
    let mut socket = connect_with_ethernet_mss(relays.meters);
    socket.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut line = [b'x'; 1_000];
    line[999] = b'\n';
    let mut sent = 0_u64;
    let begun = Instant::now();
    // A machine with other work may interrupt the relay for longer than the sender waits.
    while begun.elapsed() < Duration::from_secs(30) {
        match socket.write(&line) {
            Ok(length) => sent += length as u64,
            Err(_) if backlog(&relays) >= 1_000_000 => break,
            Err(_) => {}
        }
        assert!(sent < 50_000_000, "the sender is never stopped");
    }
    let size = backlog(&relays);
    assert!((1_000_000..2_200_000).contains(&size), "{size}");
    relays.start(Role::Head);
    relays.wait_until("the backlog is delivered", |relays| {
        relays.ask(Role::Collector, "/status").is_some_and(|status| status["backlog_byte"] == 0)
    });
}

#[test]
fn a_second_process_is_refused_and_the_log_is_verified() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let second = relays.command(&["run", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1));
    assert!(error.contains("in use by another relay"), "{error}");
    let mut socket = connect(&relays);
    socket.write_all(&[b'x'; 5_000]).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    relays.kill(Role::Collector);
    let verified = relays.command(&["log", "verify", "collector.toml"]).output().unwrap();
    assert_eq!(verified.status.code(), Some(0));
    let listed = relays.command(&["log", "list", "collector.toml"]).output().unwrap();
    let lines = String::from_utf8(listed.stdout).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!((events[0], *events.last().unwrap()), ("open", "eof"));
    assert_eq!(lines.last().unwrap()["offset"], 5_000);
    assert!(lines.iter().enumerate().all(|(number, line)| line["sequence"] == number));
    let segment = fs::read_dir(relays.path("collector-log"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|ending| ending == "segment"))
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[3] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let damaged = relays.command(&["log", "verify", "collector.toml"]).output().unwrap();
    let text = String::from_utf8_lossy(&damaged.stdout);
    assert_eq!(damaged.status.code(), Some(1), "{text}");
    let expected = "damaged: the header of 0000000000000000.segment; 2 entries are recovered";
    assert!(text.contains(expected), "{text}");
    let repaired = relays.command(&["log", "repair", "collector.toml"]).output().unwrap();
    assert_eq!(repaired.status.code(), Some(0));
    let listed = relays.command(&["log", "list", "collector.toml"]).output().unwrap();
    let text = String::from_utf8(listed.stdout).unwrap();
    assert_eq!(text.lines().count(), lines.len(), "a damaged header costs no record");
    relays.start(Role::Collector);
}

#[test]
fn a_wrong_configuration_is_refused_with_its_line() {
    let relays = Relays::new("local", "sharts = 3");
    let done = relays.command(&["check", "collector.toml"]).output().unwrap();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2));
    assert!(
        error.contains("collector.sharts") && error.contains("did you mean `shards`?"),
        "{error}"
    );
    assert!(relays.command(&["check", "head.toml"]).output().unwrap().status.success());
}

#[test]
fn the_status_is_a_page_json_and_metrics() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    relays.wait_until("both shards are connected", |relays| {
        relays
            .ask(Role::Collector, "/status")
            .is_some_and(|status| status["upstreams_connected_count"] == 2)
    });
    let done = relays.command(&["status", "collector.toml"]).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(status["tier"], "local");
}

#[test]
fn a_configuration_is_derived_from_a_scenario_and_runs() {
    let mut relays = Relays::new("local", "");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/aggregators.toml");
    let derived = relays
        .command(&["config", scenario, "--node", "collector", "--listen", "127.0.0.1:4059"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&derived.stdout);
    assert!(derived.status.success(), "{}", String::from_utf8_lossy(&derived.stderr));
    fs::write(relays.path("derived.toml"), &*text).unwrap();
    assert!(relays.command(&["check", "derived.toml"]).status().unwrap().success(), "{text}");
    let wrong = relays.command(&["config", scenario, "--node", "meter"]).output().unwrap();
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("the scenario has: collector"));
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"data\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    let undelivered = relays.command(&["drain", "collector.toml", "--limit", "200 ms"]).output();
    assert_eq!(undelivered.unwrap().status.code(), Some(1));
    let undelivered = relays.command(&["drain", "collector.toml", "--limit", "200 ms"]).output();
    let error = String::from_utf8_lossy(&undelivered.unwrap().stderr).into_owned();
    assert!(error.contains("are not delivered: ") && error.contains("refused"), "{error}");
    relays.start(Role::Head);
    for file in ["collector.toml", "head.toml"] {
        assert!(relays.command(&["drain", file]).status().unwrap().success(), "{file}");
    }
}
