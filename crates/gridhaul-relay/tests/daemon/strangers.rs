//! Peers of a head that are not collectors: they occupy neither connections nor memory, and do not
//! fill the journal.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use gridhaul_relay::protocol::Frame;
use socket2::SockRef;

use crate::relays::{Relays, Role};

/// A head with some keys, and its address.
fn head(keys: &str) -> (Relays, SocketAddr) {
    let mut relays = Relays::new("local", "");
    relays.configure(Role::Head, keys);
    let text = fs::read_to_string(relays.path("head.toml")).unwrap();
    let address = text.lines().find_map(|line| line.strip_prefix("address = ")).unwrap();
    let address = address.trim_matches('"').parse().unwrap();
    relays.start(Role::Head);
    (relays, address)
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

#[test]
fn a_peer_must_state_its_name_in_time() {
    let (relays, address) = head("handshake_limit = \"2 s\"");
    let mut silent = connect(address);
    assert_eq!(silent.read(&mut [0; 1]).unwrap(), 0, "closed");
    // Probes do not state a name.
    let mut probing = connect(address);
    let mut probe = Vec::new();
    Frame::Ping.write(&mut probe);
    let mut answers = Vec::new();
    probing.write_all(&probe).unwrap();
    let _ = probing.read_to_end(&mut answers);
    assert!(!answers.is_empty(), "the probe was answered before the connection was closed");
    relays.wait_for_report(Role::Head, "has not stated its name in time");
}

#[test]
fn probes_whose_answers_are_not_read_end_the_connection() {
    let (relays, address) = head("");
    let mut socket = connect(address);
    let mut probe = Vec::new();
    Frame::Ping.write(&mut probe);
    let probes = probe.repeat(1_000);
    socket.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    while socket.write_all(&probes).is_ok() {}
    relays.wait_for_report(Role::Head, "probes are too frequent");
}

#[test]
fn messages_about_strangers_are_limited() {
    let (relays, address) = head("");
    for _ in 0..100 {
        let mut socket = connect(address);
        let _ = socket.write_all(&[0xff; 64]);
        let _ = socket.read(&mut [0; 1]);
        // RST.
        SockRef::from(&socket).set_linger(Some(Duration::ZERO)).unwrap();
    }
    relays.wait_for_report(Role::Head, "frame is too long");
    let log = relays.log(Role::Head);
    assert!(log.lines().count() < 50, "{log}");
    assert!(log.contains("collector: 127."), "the address is stated: {log}");
}
