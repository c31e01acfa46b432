//! Which connections are accepted: PROXY header, allow list, limits per source, slow peers, many
//! meters.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;

use gridhaul_relay::protocol::ProxyHeader;
use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::cases::connect;
use crate::ledger;
use crate::meters::connect_with_ethernet_mss;
use crate::relays::{Relays, Role};

fn refused(relays: &Relays, cause: &str) -> u64 {
    relays.ask(Role::Collector, "/status").unwrap()["refused_count"][cause].as_u64().unwrap()
}

fn header(from: &str) -> Vec<u8> {
    let addresses = Some((from.parse().unwrap(), "192.0.2.100:4059".parse().unwrap()));
    let mut bytes = Vec::new();
    ProxyHeader { addresses, ..ProxyHeader::default() }.write(&mut bytes);
    bytes
}

#[test]
fn a_proxy_header_states_the_address_of_the_meter() {
    // Longer than a busy machine interrupts the meter between two pieces.
    let mut relays = Relays::new("local", "handshake_limit = \"3 s\"");
    relays.configure(Role::Collector, "proxy_protocol = true");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    // In pieces, the last of which has data as well.
    let header = header("192.0.2.7:5000");
    for piece in [&header[..5], &header[5..20]] {
        socket.write_all(piece).unwrap();
        thread::sleep(Duration::from_millis(30));
    }
    socket.write_all(&[&header[20..], b"data\n"].concat()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert!(lines.contains("192.0.2.7:5000"), "{lines}");
    let lengths = ledger::read(&relays.messages(), |_, _, text| assert_eq!(text, "data\n"));
    assert_eq!(lengths.len(), 1);
    let mut other = connect(&relays);
    other.write_all(b"data without a header\n").unwrap();
    assert!(other.read(&mut [0; 1]).is_err(), "RST");
    assert_eq!(refused(&relays, "proxy_header"), 1);
    // A peer that sends half of a header is reset in time.
    let mut slow = connect(&relays);
    slow.write_all(&header[..10]).unwrap();
    assert!(slow.read(&mut [0; 1]).is_err(), "RST");
    assert_eq!(refused(&relays, "handshake_limit"), 1);
}

/// A header with an extension of 60,000 bytes, as a client certificate, which is more than a
/// receive buffer holds.
pub(crate) fn long_header(from: &str) -> Vec<u8> {
    let mut bytes = header(from);
    bytes.extend_from_slice(&[0x20, 0xea, 0x60]);
    bytes.resize(bytes.len() + 60_000, b'c');
    let length = (bytes.len() - 16) as u16;
    bytes[14..16].copy_from_slice(&length.to_be_bytes());
    bytes
}

#[test]
fn a_proxy_header_longer_than_the_receive_buffer_is_accepted_and_a_wrong_checksum_refused() {
    let mut relays = Relays::new("local", "");
    relays.configure(Role::Collector, "proxy_protocol = true");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(&[&long_header("192.0.2.7:5000"), &b"data\n"[..]].concat()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    assert!(lines.contains("192.0.2.7:5000"), "{lines}");
    let lengths = ledger::read(&relays.messages(), |_, _, text| assert_eq!(text, "data\n"));
    assert_eq!(lengths.len(), 1);
    let mut changed = header("192.0.2.7:5000");
    changed.extend_from_slice(&[3, 0, 4, 1, 2, 3, 4]);
    changed[15] += 7;
    let mut socket = connect(&relays);
    socket.write_all(&changed).unwrap();
    assert!(socket.read(&mut [0; 1]).is_err(), "RST");
    relays.wait_for_report(Role::Collector, "wrong checksum");
    assert_eq!(refused(&relays, "proxy_header"), 1);
}

#[test]
fn a_listener_of_both_families_knows_ipv4_meters_by_their_ipv4_address() {
    let mut relays = Relays::new("local", "");
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let mapped = format!("\"[::ffff:{}]:{}\"", relays.meters.ip(), relays.meters.port());
    fs::write(&path, text.replace(&format!("\"{}\"", relays.meters), &mapped)).unwrap();
    relays.configure(Role::Collector, "allow = [\"127.0.0.0/8\"]");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"data\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    relays.wait_until_delivered();
    let lines = fs::read_to_string(relays.messages()).unwrap();
    let peer = format!("\"peer\":\"{}\"", socket.local_addr().unwrap());
    assert!(lines.contains(&peer), "{lines}");
}

#[test]
fn an_allow_list_and_a_limit_per_source_refuse_connections() {
    let mut relays = Relays::new("local", "connections_per_source = 3");
    relays.configure(Role::Collector, "allow = [\"127.0.0.0/8\"]");
    relays.start(Role::Collector);
    let mut open: Vec<TcpStream> = (0..3).map(|_| connect(&relays)).collect();
    relays.wait_until("three meters are connected", |relays| {
        relays.ask(Role::Collector, "/status").unwrap()["meters_count"] == 3
    });
    assert!(connect(&relays).read(&mut [0; 1]).is_err(), "RST");
    assert_eq!(refused(&relays, "source_limit"), 1);
    // A place becomes free.
    open[0].shutdown(Shutdown::Write).unwrap();
    assert_eq!(open[0].read(&mut [0; 1]).unwrap(), 0);
    let mut socket = connect(&relays);
    socket.write_all(b"data\n").unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);

    let mut relays = Relays::new("local", "");
    relays.configure(Role::Collector, "allow = [\"192.0.2.0/24\", \"2001:db8::/32\"]");
    relays.start(Role::Collector);
    assert!(connect(&relays).read(&mut [0; 1]).is_err(), "RST");
    assert_eq!(refused(&relays, "allow_list"), 1);
}

#[test]
fn a_meter_waits_while_files_are_exhausted() {
    let mut relays = Relays::new("local", "");
    relays.start(Role::Collector);
    let process = Pid::from_raw(relays.process(Role::Collector).cast_signed());
    let none = Rlimit { current: Some(0), maximum: Some(1_000) };
    let before = prlimit(process, Resource::Nofile, none).unwrap();
    let mut meter = connect(&relays);
    relays.wait_for_report(Role::Collector, "cannot accept a meter: Too many open files");
    meter.write_all(b"line\n").unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    let current = before.current.map(|limit| limit.min(1_000));
    prlimit(process, Resource::Nofile, Rlimit { current, maximum: Some(1_000) }).unwrap();
    // No further connection wakes the collector.
    assert_eq!(meter.read(&mut [0]).unwrap(), 0);
}

#[test]
fn an_idle_meter_is_reset_and_one_that_waits_for_its_answer_is_not() {
    let mut relays = Relays::new("server", "idle_timeout = \"2 s\"");
    relays.start(Role::Collector);
    let mut idle = connect(&relays);
    let mut ended = connect(&relays);
    // Without a head, FIN is not answered.
    ended.write_all(b"line\n").unwrap();
    ended.shutdown(Shutdown::Write).unwrap();
    // For longer than the timeout, with pauses that are shorter on a busy machine as well.
    for _ in 0..25 {
        idle.write_all(b"x").unwrap();
        thread::sleep(Duration::from_millis(100));
    }
    assert!(idle.read(&mut [0; 1]).is_err(), "RST");
    let status = relays.ask(Role::Collector, "/status").unwrap();
    assert_eq!(status["resets_count"]["timeout"], 1, "{status}");
    relays.start(Role::Head);
    assert_eq!(ended.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn a_full_log_refuses_new_meters() {
    let mut relays = Relays::new("memory", "memory = \"2 MB\"\nwhen_full = \"refuse_new\"");
    relays.start(Role::Collector);
    // Several meters, each of which has a share of the second half.
    let sockets: Vec<TcpStream> =
        (0..8).map(|_| connect_with_ethernet_mss(relays.meters)).collect();
    for socket in &sockets {
        socket.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut socket = socket;
        while socket.write(&[b'x'; 20_000]).is_ok() {}
    }
    relays.wait_until("a meter is refused", |relays| {
        drop(TcpStream::connect(relays.meters));
        refused(relays, "log_full") > 0
    });
    drop(sockets);
}
