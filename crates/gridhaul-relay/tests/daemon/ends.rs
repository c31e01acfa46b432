//! Ends of the connections of meters: how a collector and a head forward FIN and RST, with data
//! that is pending.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::cases::connect;
use crate::ledger;
use crate::relays::{Relays, Role};

const TIERS: [&str; 3] = ["memory", "local", "server"];

/// Lines that identify their position.
fn data(size: usize) -> String {
    let lines = (0..size / 100).map(|number| format!("{number:0>99}\n"));
    lines.collect()
}

/// Text and end of the only stream that was delivered.
fn delivered(relays: &Relays) -> (String, bool) {
    let mut text = String::new();
    let meters = ledger::read(&relays.messages(), |_, _, piece| text += piece);
    (text, meters.values().next().is_some_and(|meter| meter.is_ended))
}

/// A meter sends and closes; the head starts late or at once.
fn close_first(tier: &str, size: usize, is_head_late: bool) {
    let mut relays = Relays::new(tier, "");
    if !is_head_late {
        relays.start(Role::Head);
    }
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    let writer = thread::spawn(move || {
        socket.write_all(data(size).as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        socket
    });
    if is_head_late {
        thread::sleep(Duration::from_millis(300));
        relays.start(Role::Head);
    }
    let mut socket = writer.join().unwrap();
    assert_eq!(socket.read(&mut [0]).unwrap(), 0, "{tier}: FIN is answered");
    relays.wait_until_delivered();
    assert!(delivered(&relays) == (data(size), true), "{tier}, {size} bytes");
}

#[test]
fn a_meter_that_closes_loses_nothing() {
    let cases = [(0, false), (80_000, false), (1_000_000, false), (1_000_000, true)];
    let threads: Vec<_> = TIERS
        .into_iter()
        .flat_map(|tier| cases.map(|(size, is_late)| (tier, size, is_late)))
        .map(|(tier, size, is_late)| thread::spawn(move || close_first(tier, size, is_late)))
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn a_meter_that_resets_has_no_end_of_stream() {
    for tier in TIERS {
        let mut relays = Relays::new(tier, "");
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let mut socket = connect(&relays);
        socket.write_all(b"line\n").unwrap();
        relays.wait_until_received(5);
        socket2::SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
        drop(socket);
        relays.wait_until("the reset was recorded", |relays| {
            let text = std::fs::read_to_string(relays.messages()).unwrap_or_default();
            text.contains("\"event\":\"reset\"")
        });
        assert_eq!(delivered(&relays), ("line\n".to_owned(), false), "{tier}");
    }
}

#[test]
fn a_meter_gets_a_reset_instead_of_fin_if_its_data_is_not_stored() {
    let mut relays = Relays::new("server", "");
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"line\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    relays.wait_until_received(5);
    relays.kill(Role::Collector);
    assert_eq!(socket.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
