//! The matrix of ends of connections, limits of memory and files, time limits, names, and servers
//! that are down.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use gridhaul_relay::daemon::query;
use gridhaul_testing::{ReservedPort, close};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::matrix::{self, CASES, Case};
use crate::proxies::{Kind, Proxy, is_listening, listen, wait_until};
use crate::relay;

fn start(keys: &str) -> (Proxy, TcpListener) {
    let server = listen();
    let proxy = Proxy::start(Kind::Split, relay(), server.local_addr().unwrap(), keys);
    (proxy, server)
}

fn status(proxy: &Proxy) -> Value {
    serde_json::from_str(&query(&proxy.management.to_string(), "/status").unwrap()).unwrap()
}

fn connect(proxy: &Proxy) -> TcpStream {
    let client = TcpStream::connect(proxy.clients).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client
}

fn pass_matrix(keys: &'static str) {
    let cases = CASES.map(|case| {
        thread::spawn(move || {
            let (proxy, server) = start(keys);
            matrix::run(case, proxy.clients, Some(server))
                .map_err(|error| format!("{case}: {error}"))?;
            if case != Case::UpstreamDown {
                wait_until("the session has ended", || status(&proxy)["connections_count"] == 0);
                let status = status(&proxy);
                let resets: u64 = status["resets_count"]
                    .as_object()
                    .unwrap()
                    .values()
                    .filter_map(Value::as_u64)
                    .sum();
                assert_eq!(
                    resets,
                    u64::from(matches!(case, Case::Reset(..) | Case::ResetAfterFin(_))),
                    "{case}: {status}"
                );
                assert_eq!(
                    (&status["memory_byte"], &status["pipes_count"]),
                    (&0.into(), &0.into()),
                    "{case}"
                );
            }
            Ok::<_, String>(())
        })
    });
    let failures: Vec<_> =
        cases.into_iter().filter_map(|case| case.join().unwrap().err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn every_end_of_a_connection_is_forwarded() {
    pass_matrix("");
}

#[test]
fn every_end_is_forwarded_without_pipes() {
    pass_matrix("pipes = 0");
}

#[test]
fn every_end_is_forwarded_without_memory() {
    // Less than two reads: after the first remainder, data stays in the receive buffers.
    pass_matrix("pipes = 0\nmemory = \"64 KiB\"");
}

/// Clients send to servers that do not read.
fn stall(proxy: &Proxy, server: &TcpListener, count: usize) -> Vec<(TcpStream, TcpStream, usize)> {
    (0..count)
        .map(|_| {
            let mut client = connect(proxy);
            let (accepted, _) = server.accept().unwrap();
            client.set_write_timeout(Some(Duration::from_millis(50))).unwrap();
            let mut sent = 0;
            while let Ok(length) = client.write(&[b'x'; 65_536]) {
                sent += length;
            }
            (client, accepted, sent)
        })
        .collect()
}

#[test]
fn memory_is_bounded_and_nothing_is_lost() {
    let (proxy, server) = start("memory = \"128 KiB\"\npipes = 2\npipe_size = \"64 KiB\"");
    let stalled = stall(&proxy, &server, 20);
    let found = status(&proxy);
    assert!(found["memory_byte"].as_u64().unwrap() <= 128 << 10, "{found}");
    assert!(found["pipes_count"].as_u64().unwrap() <= 2, "{found}");
    // A session whose server reads is served although the memory is in use.
    let mut client = connect(&proxy);
    let (mut accepted, _) = server.accept().unwrap();
    client.write_all(b"reading").unwrap();
    accepted.read_exact(&mut [0; 7]).unwrap();
    for (client, mut accepted, sent) in stalled {
        client.shutdown(Shutdown::Write).unwrap();
        assert_eq!(std::io::copy(&mut accepted, &mut std::io::sink()).unwrap(), sent as u64);
    }
    wait_until("memory and pipes are returned", || {
        let status = status(&proxy);
        status["memory_byte"] == 0 && status["pipes_count"] == 0
    });
}

#[test]
fn bulk_data_uses_pipes_and_returns_them() {
    let (proxy, server) = start("");
    let mut client = connect(&proxy);
    let (mut accepted, _) = server.accept().unwrap();
    let bytes: Vec<u8> = (0..30_000_000_u32).map(|index| (index / 255) as u8).collect();
    let expected = bytes.clone();
    let writer = thread::spawn(move || {
        client.write_all(&bytes).unwrap();
        client
    });
    let mut found = vec![0; expected.len()];
    accepted.read_exact(&mut found[..expected.len() / 2]).unwrap();
    // The reader waits: the next bytes fill the buffers, and wait in the pipe.
    wait_until("a pipe is in use", || status(&proxy)["pipes_count"] == 1);
    accepted.read_exact(&mut found[expected.len() / 2..]).unwrap();
    assert!(found == expected, "the data has changed");
    let _client = writer.join().unwrap();
    wait_until("the pipe is returned", || status(&proxy)["pipes_count"] == 0);
    assert_eq!(status(&proxy)["connections_count"], 1);
}

#[test]
fn a_half_closed_connection_has_a_time_limit() {
    let (proxy, server) = start("half_close_timeout = \"300 ms\"");
    let mut client = connect(&proxy);
    let (mut accepted, _) = server.accept().unwrap();
    client.shutdown(Shutdown::Write).unwrap();
    assert_eq!(accepted.read(&mut [0]).unwrap(), 0);
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    // After FIN, a reset is seen by a writer only.
    wait_until("the server is reset", || accepted.write(b"late").is_err());
    assert_eq!(status(&proxy)["resets_count"]["half_close"], 1);
}

#[test]
fn an_idle_connection_has_a_time_limit_of_its_own() {
    let (proxy, server) = start("half_close_timeout = \"100 ms\"\nidle_timeout = \"3 s\"");
    let mut client = connect(&proxy);
    let (mut accepted, _) = server.accept().unwrap();
    // The other limit does not apply.
    thread::sleep(Duration::from_millis(300));
    client.write_all(b"data").unwrap();
    accepted.read_exact(&mut [0; 4]).unwrap();
    assert_eq!(client.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(status(&proxy)["resets_count"]["idle"], 1);
}

#[test]
fn clients_above_the_limit_wait() {
    let (proxy, server) = start("connections = 2");
    let first: Vec<_> = (0..2).map(|_| (connect(&proxy), server.accept().unwrap().0)).collect();
    let mut third = connect(&proxy);
    third.write_all(b"late").unwrap();
    server.set_nonblocking(true).unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(status(&proxy)["connections_count"], 2);
    server.set_nonblocking(false).unwrap();
    drop(first);
    let (mut accepted, _) = server.accept().unwrap();
    let mut found = [0; 4];
    accepted.read_exact(&mut found).unwrap();
    assert_eq!(&found, b"late");
}

#[test]
fn a_listener_opens_only_while_the_server_accepts() {
    let reserved = ReservedPort::new();
    let server = reserved.address();
    // A host name, which is resolved again after a failure.
    let listener = format!("upstream = \"localhost:{}\"\nconnect_first = true", server.port());
    let proxy = Proxy::start_with(Kind::Split, relay(), &listener, server, "");
    wait_until("the relay runs", || query(&proxy.management.to_string(), "/status").is_ok());
    assert!(!is_listening(proxy.clients));
    proxy.wait_for_report("not before their servers answer listen: meters");
    let accept = |server: &TcpListener, request: &[u8]| {
        wait_until("the proxy listens", || is_listening(proxy.clients));
        let mut client = connect(&proxy);
        client.write_all(request).unwrap();
        // The first connections are probes of the proxy.
        loop {
            let (mut accepted, _) = server.accept().unwrap();
            let mut found = vec![0; request.len()];
            if accepted.read_exact(&mut found).is_ok() {
                assert_eq!(found, request);
                return;
            }
        }
    };
    let running = TcpListener::bind(server).unwrap();
    accept(&running, b"first");
    close(running);
    let error = connect(&proxy).read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    wait_until("the proxy has closed its listener", || !is_listening(proxy.clients));
    assert_eq!(TcpStream::connect(proxy.clients).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let running = TcpListener::bind(server).unwrap();
    accept(&running, b"second");
}

#[test]
fn a_kill_resets_both_ends() {
    let (mut proxy, server) = start("");
    let mut client = connect(&proxy);
    let (mut accepted, _) = server.accept().unwrap();
    client.write_all(b"data").unwrap();
    accepted.read_exact(&mut [0; 4]).unwrap();
    // SIGKILL.
    proxy.child.kill().unwrap();
    proxy.child.wait().unwrap();
    for end in [&mut client, &mut accepted] {
        assert_eq!(end.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
}

#[test]
fn many_sessions_transfer_at_the_same_time() {
    let (proxy, server) = start("pipes = 3\nmemory = \"256 KiB\"");
    let echo = thread::spawn(move || {
        let sessions: Vec<_> = (0..40)
            .map(|_| {
                let (mut accepted, _) = server.accept().unwrap();
                thread::spawn(move || {
                    let mut copy = accepted.try_clone().unwrap();
                    std::io::copy(&mut accepted, &mut copy).unwrap();
                    copy.shutdown(Shutdown::Write).unwrap();
                })
            })
            .collect();
        sessions.into_iter().for_each(|session| session.join().unwrap());
    });
    let clients: Vec<_> = (0..40_u32)
        .map(|number| {
            let address: SocketAddr = proxy.clients;
            thread::spawn(move || {
                let bytes: Vec<u8> = (0..400_000 + number * 20_000)
                    .map(|index| (index / 253 + number) as u8)
                    .collect();
                let mut client = TcpStream::connect(address).unwrap();
                let (mut copy, sent) = (client.try_clone().unwrap(), bytes.clone());
                let writer = thread::spawn(move || {
                    sent.chunks(1 + 997 * number as usize)
                        .for_each(|part| copy.write_all(part).unwrap());
                    copy.shutdown(Shutdown::Write).unwrap();
                });
                let mut found = Vec::new();
                client.read_to_end(&mut found).unwrap();
                writer.join().unwrap();
                assert!(found == bytes, "the data has changed");
            })
        })
        .collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    echo.join().unwrap();
}

#[test]
fn the_example_is_that_of_the_guide() {
    let folder = env!("CARGO_MANIFEST_DIR");
    let guide = format!("{folder}/../../docs/guides/split-proxy.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let example = format!("{folder}/examples/split.toml");
    assert!(guide.contains(&std::fs::read_to_string(&example).unwrap()));
    let blocks = guide.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    assert_eq!(blocks.clone().count(), 2);
    for block in blocks {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), block).unwrap();
        let done = std::process::Command::new(relay()).arg("check").arg(file.path()).output();
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn an_upgrade_serves_open_clients_first_and_refuses_none() {
    let (proxy, server) = start("");
    let mut first = connect(&proxy);
    let (mut to_first, _) = server.accept().unwrap();
    let process = Pid::from_child(&proxy.child);
    kill_process(process, Signal::USR2).unwrap();
    thread::sleep(Duration::from_millis(300));
    // This client waits in the queue of the listener.
    let mut second = connect(&proxy);
    second.write_all(b"second").unwrap();
    first.write_all(b"first").unwrap();
    let mut text = [0; 5];
    to_first.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"first", "open clients are served");
    drop((first, to_first));
    let (mut to_second, _) = server.accept().unwrap();
    let mut text = [0; 6];
    to_second.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"second");
    drop((second, to_second));
    wait_until("the new program has its own counters", || {
        let answer = query(&proxy.management.to_string(), "/status");
        let status = answer.ok().and_then(|text| serde_json::from_str::<Value>(&text).ok());
        status.is_some_and(|status| status["accepted_count"].as_u64() < Some(2))
    });
}

#[test]
fn a_reload_changes_the_server_of_later_clients() {
    let (proxy, server) = start("");
    let mut first = connect(&proxy);
    let (mut to_first, _) = server.accept().unwrap();
    let other = listen();
    let addresses = [&server, &other].map(|listener| listener.local_addr().unwrap().to_string());
    proxy.reload("[split]", "[split]\nconnectionz = 5");
    proxy.wait_for_report("the present configuration stays in use");
    proxy.reload("connectionz = 5", "connections = 5");
    let message = "the configuration was read again";
    proxy.wait_for_report(message);
    wait_until("the limit has changed", || status(&proxy)["connections_max_count"] == 5);
    proxy.reload(&addresses[0], &addresses[1]);
    wait_until("the server has changed", || proxy.reports().matches(message).count() == 2);
    let mut second = connect(&proxy);
    let (mut to_second, _) = other.accept().unwrap();
    let mut text = [0; 3];
    second.write_all(b"two").unwrap();
    to_second.read_exact(&mut text).unwrap();
    first.write_all(b"one").unwrap();
    to_first.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"one", "open sessions continue");
}

#[test]
fn a_connection_that_returns_to_the_relay_is_reset() {
    let server = listen();
    let proxy = Proxy::start(Kind::Split, relay(), server.local_addr().unwrap(), "");
    // The name service reads a number as the address (inet_aton(3)), which no check of the text can
    // know.
    let IpAddr::V4(ip) = proxy.clients.ip() else { panic!("IPv4") };
    let own = format!("{}:{}", ip.to_bits(), proxy.clients.port());
    proxy.reload(&server.local_addr().unwrap().to_string(), &own);
    proxy.wait_for_report("the configuration was read again");
    wait_until("a client is reset", || {
        let mut client = connect(&proxy);
        let _ = client.write_all(b"6 byte");
        let is_reset = client.read(&mut [0; 1]).is_err();
        is_reset && status(&proxy)["refused_count"].as_u64() > Some(0)
    });
    wait_until("no session is left", || status(&proxy)["connections_count"] == 0);
    let status = status(&proxy);
    assert!(status["accepted_count"].as_u64() <= Some(100), "{status}");
}
