//! Connections of meters continue when another version of the program replaces the relay.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::cases::connect;
use crate::ledger;
use crate::meters::{Meters, message};
use crate::relays::{Relays, Role};

/// Replaces the collector by the installed program, and waits until this is done.
pub(crate) fn upgrade(relays: &Relays) {
    // The report of the first start is not part of the log.
    let count = |relays: &Relays| relays.log(Role::Collector).matches("is ready").count();
    let before = count(relays);
    relays.signal(Role::Collector, Signal::USR2);
    relays.wait_until("the new program runs", |relays| count(relays) > before);
}

/// Adds a key to the top of the collector's configuration.
fn add_key(relays: &Relays, key: &str) {
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(path, format!("{key}\n{text}")).unwrap();
}

#[test]
fn a_stream_continues_within_a_message() {
    for tier in ["memory", "local", "server"] {
        let mut relays = Relays::new(tier, "");
        // Longer than the test waits: no connection has to end.
        add_key(&relays, "drain_limit = \"5 min\"");
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let mut socket = connect(&relays);
        let idle = connect(&relays);
        socket.write_all(b"first\nsec").unwrap();
        relays.wait_until("the data has arrived", |relays| {
            let status = relays.ask(Role::Collector, "/status").unwrap();
            (&status["received_byte"], &status["meters_count"]) == (&9.into(), &2.into())
        });
        upgrade(&relays);
        upgrade(&relays);
        let status = relays.ask(Role::Collector, "/status").unwrap();
        assert_eq!((&status["meters_count"], &status["accepted_count"]), (&2.into(), &0.into()));
        socket.write_all(b"ond\n").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "{tier}: FIN");
        drop(idle);
        relays.wait_until_delivered();
        let mut text = String::new();
        let delivered = ledger::read(&relays.messages(), |_, _, piece| text += piece);
        assert_eq!((text.as_str(), delivered.len()), ("first\nsecond\n", 2), "{tier}");
        assert!(delivered.values().all(|meter| meter.is_ended), "{tier}: {delivered:?}");
        let lines = fs::read_to_string(relays.messages()).unwrap();
        assert_eq!(lines.matches("\"ends_message\":true").count(), 2, "{tier}: {lines}");
    }
}

#[test]
fn a_meter_with_another_framing_is_reset_and_this_is_recorded() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"half").unwrap();
    relays.wait_until_received(4);
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("framing.delimiter.byte = 10", "framing = \"stream\"")).unwrap();
    upgrade(&relays);
    assert!(socket.read(&mut [0; 1]).is_err(), "RST");
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert!(lines.contains("\"event\":\"reset\"") && lines.contains("restart"), "{lines}");
    // Numbers of meters continue.
    let mut socket = connect(&relays);
    socket.write_all(b"next\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    assert_eq!(ledger::read(&relays.messages(), |_, _, _| {}).len(), 2);
}

/// Kills the collector some milliseconds after the signal for an upgrade, and starts it again.
fn kill_upgraded(relays: &mut Relays, milliseconds: u64) {
    relays.signal(Role::Collector, Signal::USR2);
    thread::sleep(Duration::from_millis(milliseconds));
    relays.kill(Role::Collector);
    relays.start(Role::Collector);
}

#[test]
fn a_kill_during_an_upgrade_loses_nothing_that_was_confirmed() {
    for tier in ["local", "server"] {
        let mut relays = Relays::new(tier, "");
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let meters = Meters::start(relays.meters, 8);
        let confirmed = || meters.notes.confirmed.lock().unwrap().len();
        // The new program starts after a few milliseconds, or after the group that is being
        // written.
        for delay in [0, 1, 2, 4, 6, 8, 10, 15, 20, 30] {
            thread::sleep(Duration::from_millis(100));
            kill_upgraded(&mut relays, delay);
        }
        // On a busy machine, few streams end between two kills. Of those that begin after a kill,
        // about a third is short.
        for _ in (0..20).take_while(|_| confirmed() <= 10) {
            let before = confirmed();
            kill_upgraded(&mut relays, 30);
            // At most ten seconds.
            let waits = (0..500).take_while(|_| confirmed() == before);
            waits.for_each(|_| thread::sleep(Duration::from_millis(20)));
        }
        let notes = meters.stop();
        relays.wait_until_delivered();
        let mut streams = std::collections::BTreeMap::<_, String>::new();
        ledger::read(&relays.messages(), |key, _, piece| {
            *streams.entry(key.clone()).or_default() += piece;
        });
        let confirmed = notes.confirmed.lock().unwrap();
        assert!(confirmed.len() > 10, "{tier}: {} streams were confirmed", confirmed.len());
        for (stream, length) in &*confirmed {
            let expected: String =
                (0..length / 200).map(|number| message(*stream, number)).collect();
            assert!(streams.values().any(|text| *text == expected), "{tier}: stream {stream}");
        }
    }
}
