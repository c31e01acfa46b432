//! Delivery to a TCP server: restored connections, replies, and failures of the server.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use gridhaul_relay::protocol::ProxyHeader;

use gridhaul_testing::{close, free_address};

use crate::cases::connect;
use crate::relays::{Relays, Role};
use crate::upgrade::upgrade;

/// Data received by a server on one connection.
#[derive(Debug, Clone, Default)]
struct Received {
    peer: Option<SocketAddr>,
    offset: u64,
    data: Vec<u8>,
    /// FIN has arrived.
    is_complete: bool,
    /// RST has arrived.
    is_reset: bool,
}

type Connections = Arc<Mutex<Vec<Received>>>;

/// Accepts connections that begin with a PROXY header, and answers each line with the same line in
/// capitals.
fn serve(address: SocketAddr) -> Connections {
    let connections: Connections = Arc::default();
    let listener = TcpListener::bind(address).unwrap();
    let all = Arc::clone(&connections);
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let all = Arc::clone(&all);
            thread::spawn(move || answer(socket, &all));
        }
    });
    connections
}

fn answer(mut socket: TcpStream, all: &Connections) {
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let mut bytes = Vec::new();
    let mut buffer = [0; 4_096];
    let mut index = None;
    loop {
        let length = match socket.read(&mut buffer) {
            Ok(length) => length,
            Err(error) => {
                let is_reset = error.kind() == ErrorKind::ConnectionReset;
                if let Some(index) = index {
                    let known: &mut Received = &mut all.lock().unwrap()[index];
                    known.is_reset = is_reset;
                }
                return;
            }
        };
        bytes.extend_from_slice(&buffer[..length]);
        if index.is_none()
            && let Some((header, consumed)) = ProxyHeader::read(&bytes).unwrap()
        {
            bytes.drain(..consumed);
            let mut all = all.lock().unwrap();
            index = Some(all.len());
            all.push(Received {
                peer: header.addresses.map(|(from, _)| from),
                offset: header.stream_offset.unwrap(),
                ..Received::default()
            });
        }
        let Some(index) = index else { continue };
        let reply = bytes.to_ascii_uppercase();
        {
            let known = &mut all.lock().unwrap()[index];
            known.data.append(&mut bytes);
            known.is_complete |= length == 0;
        }
        // A meter that was reset accepts nothing.
        let _ = socket.write_all(&reply);
        if length == 0 {
            let _ = socket.shutdown(Shutdown::Write);
            return;
        }
    }
}

fn relays(tier: &str, replies: bool, server: SocketAddr) -> Relays {
    let deliver = format!("deliver.tcp.server = \"{server}\"");
    Relays::with_delivery(tier, &format!("replies = {replies}"), &deliver)
}

#[test]
fn requests_and_replies_pass_both_relays() {
    for tier in ["memory", "local", "server"] {
        let server = free_address();
        let received = serve(server);
        let mut relays = relays(tier, true, server);
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let mut socket = connect(&relays);
        let peer = socket.local_addr().unwrap();
        let mut reply = [0; 6];
        for _ in 0..3 {
            socket.write_all(b"hello\n").unwrap();
            socket.read_exact(&mut reply).unwrap();
            assert_eq!(&reply, b"HELLO\n", "{tier}");
            // Requests and replies of a connection continue with the next program.
            upgrade(&relays);
        }
        // Without progress, the relays wake only to probe each other, every 10 s.
        socket.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
        // More than the window of a meter, which does not read meanwhile.
        let long = vec![b'x'; 100_000];
        socket.write_all(&long).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        socket.read_to_end(&mut rest).unwrap();
        assert!(rest.iter().all(|&byte| byte == b'X'), "{tier}");
        assert_eq!(rest.len(), 100_000, "{tier}: FIN follows the last byte of the server");
        let all = received.lock().unwrap();
        assert_eq!((all.len(), all[0].peer, all[0].offset), (1, Some(peer), 0), "{tier}");
        assert!(all[0].is_complete, "{tier}");
    }
}

#[test]
fn records_wait_for_a_server_that_is_down() {
    let server = free_address();
    let mut relays = relays("local", false, server);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut peers = BTreeMap::new();
    for number in 0..20 {
        let mut socket = connect(&relays);
        let text = format!("message {number}\n");
        socket.write_all(text.as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored, so FIN is answered");
        peers.insert(socket.local_addr().unwrap(), text);
    }
    relays.wait_until("the head has everything", |relays| {
        relays.ask(Role::Collector, "/status").is_some_and(|status| status["backlog_byte"] == 0)
    });
    let backlog = relays.ask(Role::Head, "/status").unwrap()["backlog_byte"].as_u64().unwrap();
    assert!(backlog > 0, "the server has confirmed nothing");
    let received = serve(server);
    relays.wait_until_delivered();
    let all = received.lock().unwrap();
    let found: BTreeMap<SocketAddr, String> = all
        .iter()
        .map(|received| (received.peer.unwrap(), String::from_utf8(received.data.clone()).unwrap()))
        .collect();
    assert_eq!((all.len(), found), (20, peers), "each stream once");
    assert!(all.iter().all(|received| received.is_complete));
}

#[test]
fn data_that_a_server_has_not_read_is_sent_to_the_next_one() {
    let server = free_address();
    let listener = TcpListener::bind(server).unwrap();
    let mut relays = relays("local", false, server);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let lines: BTreeSet<Vec<u8>> =
        (0..5).map(|number| format!("reading {number}\n").into_bytes()).collect();
    for line in &lines {
        let mut socket = connect(&relays);
        socket.write_all(line).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored, so FIN is answered");
    }
    let unread: Vec<TcpStream> = lines.iter().map(|_| listener.accept().unwrap().0).collect();
    let bytes: usize = lines.iter().map(Vec::len).sum();
    relays.wait_until("the server's TCP has everything", |relays| {
        let status = relays.ask(Role::Head, "/status");
        status.is_some_and(|status| {
            status["server_unconfirmed_byte"] == bytes && status["backlog_byte"] != 0
        })
    });
    // The kernel resets connections with unread data.
    drop(unread);
    close(listener);
    let received = serve(server);
    relays.wait_until_delivered();
    let all = received.lock().unwrap();
    let found: BTreeSet<Vec<u8>> = all
        .iter()
        .filter(|received| received.is_complete && received.offset == 0)
        .map(|received| received.data.clone())
        .collect();
    assert_eq!(found, lines);
    let status = relays.ask(Role::Head, "/status").unwrap();
    assert_eq!(
        (&status["server_unconfirmed_byte"], &status["server_at_risk_byte"]),
        (&0.into(), &0.into())
    );
}

#[test]
fn data_after_fin_of_a_server_that_dies_unread_is_sent_to_the_next_one() {
    for replies in [false, true] {
        let server = free_address();
        let listener = TcpListener::bind(server).unwrap();
        let mut relays = relays("local", replies, server);
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let mut socket = connect(&relays);
        socket.write_all(b"first\n").unwrap();
        let (mut closed, _) = listener.accept().unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"first\n") {
            let mut buffer = [0; 1_000];
            let length = closed.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..length]);
        }
        let wait_until_unconfirmed = |relays: &mut Relays, bytes: u64| {
            relays.wait_until("the bytes that the server has not confirmed", |relays| {
                let status = relays.ask(Role::Head, "/status");
                status.is_some_and(|status| status["server_unconfirmed_byte"] == bytes)
            });
        };
        // FIN of the server would also confirm data that is sent before the head reads it.
        wait_until_unconfirmed(&mut relays, 6);
        closed.shutdown(Shutdown::Write).unwrap();
        wait_until_unconfirmed(&mut relays, 0);
        // The kernel acknowledges this whether the server reads it or not.
        socket.write_all(b"later\n").unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        // Without replies, FIN is answered when it is stored; with them, FIN of the server arrives,
        // and the failure of the server may reset the meter before its own FIN is stored.
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
        let mut later = [0; 6];
        while closed.peek(&mut later).unwrap() < later.len() {}
        drop(closed);
        close(listener);
        let received = serve(server);
        relays.wait_until_delivered();
        let all = received.lock().unwrap();
        let is_ended = |received: &&Received| received.is_complete || replies;
        let later = all.iter().filter(is_ended).find(|received| received.offset == 6);
        assert_eq!(later.map(|received| &*received.data), Some(&b"later\n"[..]), "{all:?}");
    }
}

#[test]
fn a_reset_of_the_meter_is_a_reset_at_the_server() {
    let server = free_address();
    let received = serve(server);
    let mut relays = relays("memory", true, server);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let socket = socket2::Socket::from(connect(&relays));
    (&socket).write_all(b"partial").unwrap();
    relays.wait_until("the data has arrived", |_| {
        received.lock().unwrap().first().is_some_and(|received| received.data == b"partial")
    });
    socket.set_linger(Some(Duration::ZERO)).unwrap();
    drop(socket);
    relays.wait_until("the server is reset", |_| received.lock().unwrap()[0].is_reset);
    assert!(
        !received.lock().unwrap()[0].is_complete,
        "FIN would state that the stream is complete"
    );
}

#[test]
fn a_server_that_resets_a_connection_resets_the_meter() {
    let server = free_address();
    let listener = TcpListener::bind(server).unwrap();
    let mut relays = relays("local", true, server);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut socket = connect(&relays);
    socket.write_all(b"request\n").unwrap();
    let (mut first, _) = listener.accept().unwrap();
    first.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut received = Vec::new();
    while !received.ends_with(b"request\n") {
        let mut buffer = [0; 1_000];
        let length = first.read(&mut buffer).unwrap();
        received.extend_from_slice(&buffer[..length]);
    }
    let first = socket2::Socket::from(first);
    first.set_linger(Some(Duration::ZERO)).unwrap();
    drop(first);
    let error = socket.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

#[test]
fn a_killed_head_continues_every_stream_without_a_gap() {
    let server = free_address();
    let received = serve(server);
    let mut relays = relays("local", false, server);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let mut sockets: Vec<TcpStream> = (0..8).map(|_| connect(&relays)).collect();
    let mut sent: BTreeMap<SocketAddr, Vec<u8>> = BTreeMap::new();
    for round in 0..30 {
        for (index, socket) in sockets.iter_mut().enumerate() {
            let line = format!("meter {index} round {round}\n");
            socket.write_all(line.as_bytes()).unwrap();
            let all = sent.entry(socket.local_addr().unwrap()).or_default();
            all.extend_from_slice(line.as_bytes());
        }
        if round % 10 == 5 {
            relays.kill(Role::Head);
            relays.start(Role::Head);
        }
        thread::sleep(Duration::from_millis(10));
    }
    for mut socket in sockets {
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0);
    }
    relays.wait_until_delivered();
    let all = received.lock().unwrap();
    for (peer, expected) in &sent {
        let mut covered = 0;
        let mut pieces: Vec<&Received> =
            all.iter().filter(|received| received.peer == Some(*peer)).collect();
        pieces.sort_by_key(|received| received.offset);
        for piece in pieces {
            let (start, end) = (piece.offset as usize, piece.offset as usize + piece.data.len());
            assert!(start <= covered, "a gap from {covered} to {start}");
            assert_eq!(piece.data, expected[start..end], "the bytes of this position");
            assert!(
                start == 0 || expected[start - 1] == b'\n',
                "a connection begins with a message, not at {start}"
            );
            covered = covered.max(end);
        }
        assert_eq!(covered, expected.len());
        assert!(all.iter().any(|received| received.peer == Some(*peer) && received.is_complete));
    }
}

#[test]
fn a_meter_that_connects_and_resets_keeps_nothing_of_the_next_one() {
    let server = free_address();
    let received = serve(server);
    let mut relays = relays("local", false, server);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    for number in 0..20 {
        let reset = socket2::Socket::from(connect(&relays));
        reset.set_linger(Some(Duration::ZERO)).unwrap();
        drop(reset);
        let mut socket = connect(&relays);
        socket.write_all(format!("reading {number}\n").as_bytes()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(socket.read(&mut [0; 1]).unwrap(), 0, "stored, so FIN is answered");
    }
    relays.wait_until_delivered();
    let all = received.lock().unwrap();
    let lines: BTreeSet<Vec<u8>> = all
        .iter()
        .filter(|received| received.is_complete)
        .map(|received| received.data.clone())
        .collect();
    let expected = (0..20).map(|number| format!("reading {number}\n").into_bytes()).collect();
    assert_eq!(lines, expected);
}

#[test]
fn a_head_without_servers_refuses_collectors_that_wait_for_replies() {
    let mut relays = Relays::new("memory", "replies = true");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    relays.wait_until("the head has refused", |relays| {
        let status = relays.ask(Role::Collector, "/status");
        status.is_some_and(|status| status["upstream_failures_count"].as_u64() > Some(0))
    });
}
