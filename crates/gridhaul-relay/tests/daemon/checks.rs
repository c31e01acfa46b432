//! `check` finds whatever `run` would refuse, with the same message, and connections of a relay to
//! itself are stopped.

use std::fs;
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::symlink;
use std::process::{Output, Stdio};

use crate::certificates::Authority;
use crate::relays::{Relays, Role};

const METER_TLS: &str = "tls.certificate = \"collector.pem\"\ntls.key = \"collector.key\"";
const HEAD_TLS: &str =
    "tls.certificate = \"head.pem\"\ntls.key = \"head.key\"\ntls.authorities = \"authority.pem\"";

/// Output of a command with the configuration of a relay.
fn done(relays: &Relays, command: &str, role: Role) -> Output {
    let file = if role == Role::Collector { "collector.toml" } else { "head.toml" };
    let mut command = relays.command(&[command, file]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // A relay that starts although it should not must not run for ever.
    for _ in 0..600 {
        if child.try_wait().unwrap().is_some() {
            return child.wait_with_output().unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    child.kill().unwrap();
    child.wait_with_output().unwrap()
}

fn with_certificates(deliver: &str) -> (Relays, Authority) {
    let relays = Relays::with_delivery("local", "", deliver);
    let authority = Authority::new(relays.folder.path(), "authority");
    for name in ["collector", "head", "other"] {
        authority.issue(name, name);
    }
    fs::write(relays.path("empty.pem"), "").unwrap();
    fs::write(relays.path("long"), "x".repeat(70_000)).unwrap();
    (relays, authority)
}

const FILE: &str = "deliver.file = \"messages.jsonl\"";
const MQTT: &str = "deliver.mqtt.broker = \"127.0.0.1:1883\"";

#[test]
fn check_finds_what_run_refuses() {
    let listener = |text: &str| METER_TLS.replace("collector.", text);
    let cases = [
        (Role::Collector, FILE, listener("absent."), "tls.certificate: absent.pem: No such file"),
        (Role::Collector, FILE, METER_TLS.replace("r.key", "r.pem"), "tls.key: collector.pem"),
        (
            Role::Collector,
            FILE,
            METER_TLS.replace("collector.key", "other.key"),
            "tls.key: other.key",
        ),
        (Role::Collector, FILE, listener("empty."), "empty.pem: the file has no certificate"),
        (
            Role::Collector,
            FILE,
            format!("{METER_TLS}\ntls.client_authorities = \"absent.pem\""),
            "tls.client_authorities: absent.pem",
        ),
        (
            Role::Head,
            FILE,
            HEAD_TLS.replace("authority", "absent"),
            "head.tls.authorities: absent.pem",
        ),
        (
            Role::Head,
            MQTT,
            "deliver.mqtt.tls.authorities = \"absent.pem\"".to_owned(),
            "head.deliver.mqtt.tls.authorities: absent.pem",
        ),
        (
            Role::Head,
            MQTT,
            "deliver.mqtt.user_name = \"a\"\ndeliver.mqtt.password_file = \"absent\"".to_owned(),
            "head.deliver.mqtt.password_file: absent",
        ),
        (
            Role::Head,
            MQTT,
            "deliver.mqtt.user_name = \"a\"\ndeliver.mqtt.password_file = \"long\"".to_owned(),
            "head.deliver.mqtt.password_file: the password is longer than",
        ),
    ];
    for (role, deliver, keys, expected) in cases {
        both_refuse(role, deliver, &keys, expected);
    }
}

#[test]
fn check_and_run_refuse_destinations_that_are_no_files_of_lines() {
    for (file, expected) in [
        ("absent/out", "head.deliver.file: absent/out"),
        (".", "head.deliver.file"),
        ("/dev/full", "head.deliver.file: /dev/full: this is not a regular file"),
        ("head.toml", "head.deliver.file: head.toml: the file has other content"),
        ("./head-log/lines", "this is in the folder of the record log"),
    ] {
        both_refuse(Role::Head, &format!("deliver.file = \"{file}\""), "", expected);
    }
}

/// `check` and `run` refuse a configuration with the same message.
fn both_refuse(role: Role, deliver: &str, keys: &str, expected: &str) {
    let (relays, _authority) = with_certificates(deliver);
    relays.configure(role, keys);
    let check = done(&relays, "check", role);
    let run = done(&relays, "run", role);
    let [checked, ran] =
        [&check, &run].map(|output| String::from_utf8_lossy(&output.stderr).into_owned());
    assert_eq!(check.status.code(), Some(2), "{expected}: {checked}");
    assert_eq!(run.status.code(), Some(1), "{expected}: {ran}");
    for text in [&checked, &ran] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
    assert!(checked.contains(".toml: ") && checked.contains("help: "), "{checked}");
}

/// Replaces a text in the configuration of a relay.
fn replace(relays: &Relays, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(relays.path(file)).unwrap();
    assert!(text.contains(from), "{from}\n{text}");
    fs::write(relays.path(file), text.replacen(from, to, 1)).unwrap();
}

#[test]
fn check_finds_users_folders_and_algorithms_that_this_machine_lacks() {
    let cases = [
        ("name =", "user = \"nobody-like-this\"\nname =", "there is no user"),
        (
            "\"collector-log\"",
            "\"collector.toml/log\"",
            "log.folder: collector.toml: not a directory",
        ),
        (
            "[collector]",
            "[collector]\ncongestion_control = \"none-such\"",
            "collector.congestion_control",
        ),
    ];
    for (from, to, expected) in cases {
        let relays = Relays::new("local", "");
        replace(&relays, "collector.toml", from, to);
        for (command, code) in [("check", 2), ("run", 1)] {
            let done = done(&relays, command, Role::Collector);
            let text = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(code), "{expected}: {text}");
            assert!(text.contains(expected), "{expected}: {text}");
        }
    }
}

#[test]
fn a_relay_starts_with_faults_that_check_refuses() {
    let (mut relays, authority) = with_certificates(FILE);
    authority.issue_until("collector", "collector", 2_001);
    relays.configure(Role::Collector, METER_TLS);
    let done = done(&relays, "check", Role::Collector);
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{text}");
    let expected = "tls.certificate: collector.pem: the certificate has expired: it was valid \
        until 2001-01-01 00:00:00 UTC";
    assert!(text.contains(expected), "{text}");
    // The data of other meters is stored meanwhile.
    relays.start(Role::Collector);
    assert!(relays.log(Role::Collector).contains(expected), "{}", relays.log(Role::Collector));
}

#[test]
fn a_collector_whose_certificate_has_another_name_is_reported() {
    let (relays, _authority) = with_certificates(FILE);
    let tls = "[collector]\ntls.certificate = \"other.pem\"\ntls.key = \"other.key\"\n\
               tls.authorities = \"authority.pem\"";
    replace(&relays, "collector.toml", "[collector]", tls);
    let done = done(&relays, "check", Role::Collector);
    let text = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(text.contains("the head will refuse this collector"), "{text}");
}

#[test]
fn check_needs_neither_addresses_nor_the_lock_of_the_log() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let done = done(&relays, "check", Role::Collector);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // A folder behind a symbolic link.
    symlink(relays.path("collector-log"), relays.path("link")).unwrap();
    replace(&relays, "collector.toml", "\"collector-log\"", "\"link\"");
    assert!(self::done(&relays, "check", Role::Collector).status.success());
}

#[test]
fn a_collector_whose_upstream_is_itself_takes_no_data_of_its_own() {
    let mut relays = Relays::new("local", "");
    // The name service reads a number as the address (inet_aton(3)), which no check of the text can
    // know.
    let IpAddr::V4(ip) = relays.meters.ip() else { panic!("IPv4") };
    let own = format!("upstream = \"{}:{}\"", ip.to_bits(), relays.meters.port());
    let text = fs::read_to_string(relays.path("collector.toml")).unwrap();
    let upstream = text.lines().find(|line| line.starts_with("upstream")).unwrap().to_owned();
    replace(&relays, "collector.toml", &upstream, &own);
    replace(&relays, "collector.toml", "name =", "insecure = true\nname =");
    relays.start(Role::Collector);
    relays.wait_for_report(Role::Collector, "has arrived at its own listener");
    let mut meter = crate::cases::connect(&relays);
    meter.write_all(b"line\n").unwrap();
    meter.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0; 1]).unwrap(), 0);
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert_eq!(status["received_byte"], 5, "{status}");
    assert!(status["refused_count"]["loop"].as_u64() > Some(0), "{status}");
}
