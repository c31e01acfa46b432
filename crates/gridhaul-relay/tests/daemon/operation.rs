//! Service manager, reload, and faults of disk and network.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use rustix::process::Signal;

use crate::cases::connect;
use crate::ledger;
use crate::relays::{Relays, Role, impatient_resolver};

#[test]
fn the_service_manager_is_notified() {
    let mut relays = Relays::new("local", "");
    let path = relays.path("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let next = || {
        let mut bytes = [0; 100];
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    relays.environment = vec![
        ("NOTIFY_SOCKET".to_owned(), path.display().to_string()),
        ("WATCHDOG_USEC".to_owned(), "200000".to_owned()),
    ];
    relays.start(Role::Collector);
    assert_eq!(next(), "READY=1");
    // The watchdog is notified although nothing happens.
    assert_eq!((next(), next()), ("WATCHDOG=1".to_owned(), "WATCHDOG=1".to_owned()));
    relays.signal(Role::Collector, Signal::HUP);
    let after_watchdog = || loop {
        let text = next();
        if text != "WATCHDOG=1" {
            return text;
        }
    };
    assert!(after_watchdog().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(after_watchdog(), "READY=1");
    relays.signal(Role::Collector, Signal::TERM);
    assert_eq!(after_watchdog(), "STOPPING=1");
}

#[test]
fn a_reload_changes_limits_and_refuses_a_damaged_file() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"one\n").unwrap();
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("shards = 2", "shards = 2\nmeterz = 5")).unwrap();
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_for_report(Role::Collector, "the present configuration stays in use");
    relays.wait_for_report(Role::Collector, "did you mean `meters`?");
    fs::write(&path, text.replace("shards = 2", "shards = 3\nmeters = 5")).unwrap();
    relays.signal(Role::Collector, Signal::HUP);
    relays.wait_for_report(Role::Collector, "was read again");
    // The second line of the report, about the shards.
    relays.wait_for_report(Role::Collector, "an upgrade (SIGUSR2) or a restart applies them");
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert_eq!(status["meters_max_count"], 5);
    assert_eq!(status["upstreams_count"], 2);
    socket.write_all(b"two\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "the connection has survived");
}

#[test]
fn an_unknown_host_is_reported_once() {
    let mut relays = Relays::new("local", "");
    relays.environment = impatient_resolver();
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let upstream = text.lines().find(|line| line.starts_with("upstream")).unwrap();
    let changed = text.replace(upstream, "upstream = \"head.invalid:7070\"\ninsecure = true");
    // `insecure` belongs to the top of the file.
    let changed = format!("insecure = true\n{}", changed.replace("\ninsecure = true", ""));
    fs::write(&path, changed).unwrap();
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "cannot resolve head.invalid:7070");
    let mut socket = connect(&relays);
    socket.write_all(b"data\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored, although there is no head");
    relays.wait_until("a few attempts", |relays| {
        let status = relays.ask(Role::Collector, "/status").unwrap();
        status["upstream_failures_count"].as_u64().unwrap() > 6
    });
    let log = relays.log(Role::Collector);
    assert!(log.matches("cannot resolve").count() <= 2, "once for each shard: {log}");
}

#[test]
fn a_head_that_was_away_receives_everything_in_order() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    for round in 0..3 {
        relays.kill(Role::Head);
        for number in 0..20 {
            socket.write_all(format!("{round} {number}\n").as_bytes()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(300));
        relays.start(Role::Head);
    }
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "the meter was not reset");
    relays.wait_until_delivered();
    let mut text = String::new();
    ledger::read(&relays.messages(), |_, _, piece| text += piece);
    let expected: Vec<String> =
        (0..60).map(|number| format!("{} {}", number / 20, number % 20)).collect();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_status_is_not_read_under_a_foreign_name() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let ask = |host: &str| {
        let mut socket = TcpStream::connect(relays.management(Role::Collector)).unwrap();
        write!(socket, "GET /details HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    };
    assert!(ask("attacker.example:9180").starts_with("HTTP/1.0 421"));
    assert!(ask("localhost:9180").starts_with("HTTP/1.0 200"));
}

#[test]
fn alert_rules_and_dashboard_name_metrics_that_exist() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    relays.wait_until("both shards are connected", |relays| {
        relays.ask(Role::Collector, "/status").unwrap()["upstreams_connected_count"] == 2
    });
    let metrics = relays.metrics(Role::Collector) + &relays.metrics(Role::Head);
    for file in ["alerts.yml", "dashboard.json"] {
        let path = format!("{}/monitoring/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let names = text.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        let names: Vec<&str> = names.filter(|name| name.starts_with("gridhaul_relay_")).collect();
        assert!(names.len() > 5, "{file}");
        for name in names {
            let exists = metrics.lines().any(|line| {
                line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
            });
            assert!(exists, "{file}: {name} is not in\n{metrics}");
        }
    }
}

#[test]
fn compressed_records_arrive_and_need_fewer_bytes() {
    let mut relays = Relays::new("local", "compression = \"lz4\"");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let reading = |number: u64| {
        // Readings of 15 minutes, of which the energy and the voltage change.
        let (hour, minute) = (number / 4 % 24, number % 4 * 15);
        let (energy, voltage) = (number * 2_654_435 % 9_999_991, 2_250 + number * 7_919 % 100);
        format!(
            "{{\"meter\":\"1EMH00{:06}\",\"time\":\"2026-01-01T{hour:02}:{minute:02}:00Z\",\
             \"1-0:1.8.0\":{}.{:03},\"1-0:32.7.0\":{}.{}}}\n",
            number * 7_919 % 999_983,
            energy / 1_000,
            energy % 1_000,
            voltage / 10,
            voltage % 10
        )
    };
    let sent: String = (0..2_000).map(reading).collect();
    let mut socket = connect(&relays);
    for piece in sent.as_bytes().chunks(1_000) {
        socket.write_all(piece).unwrap();
    }
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    let mut text = String::new();
    ledger::read(&relays.messages(), |_, _, piece| text += piece);
    assert!(text == sent);
    let status = relays.ask(Role::Collector, "/status").unwrap();
    let bytes = |key: &str| status[key].as_u64().unwrap() as f64;
    let share = bytes("upstream_compressed_byte") / bytes("upstream_batches_byte");
    println!("compressed batches have {:.0} % of their bytes", 100.0 * share);
    assert!(share < 0.7, "{status}");
}
