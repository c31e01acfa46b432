//! Controllers that an agent refuses, and agents that a controller refuses.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{thread, time};

use crate::{Agent, PROGRAM, TOKEN, await_folder, error};

#[test]
fn a_wrong_token_and_a_wrong_fingerprint_are_refused() {
    let agent = Agent::start();
    let wrong = agent
        .controller("latency udp")
        .env("GRIDHAUL_AGENT_TOKEN", TOKEN.replace('f', "e"))
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2), "{}", error(&wrong));
    assert!(error(&wrong).contains("the token is wrong"), "{}", error(&wrong));
    assert!(!error(&wrong).contains("0123456789"), "a token is not printed");
    let (rest, fingerprint) = agent.arguments.split_once("sha256:").unwrap();
    let turned: String = fingerprint.chars().rev().collect();
    let other = Command::new(PROGRAM)
        .args(["latency", "udp", "--no-floor", "-q"])
        .args(format!("{rest}sha256:{turned}").split(' '))
        .env("GRIDHAUL_AGENT_TOKEN", TOKEN)
        .output()
        .unwrap();
    assert_eq!(other.status.code(), Some(2));
    let text = error(&other);
    assert!(text.contains(fingerprint) && text.contains("not the one of --fingerprint"), "{text}");
    // The token was not sent to the agent with the unexpected key.
    assert!(!agent.log().contains(": connected"), "{}", agent.log());
    // Neither harmed the agent.
    assert!(agent.run("latency udp --rate 1000 --messages 10").status.success());
}

#[test]
fn invalid_arguments_name_what_is_expected() {
    let agent = Agent::start();
    for (arguments, expected) in [
        ("latency sv", "add --interface DEVICE here"),
        ("latency sv --interface lo", "the agent was started without --interface"),
        ("latency sv --interface nodevice", "device nodevice"),
        ("latency udp --interface lo", "--interface has no effect with udp"),
        ("latency null", "choose a protocol over UDP, TCP or Ethernet"),
        ("latency udp --system gprs", "--system has no effect with --agent"),
        ("latency mqtt --connections 1", "--connections has no effect with --agent"),
        ("latency udp --repetitions 2", "cannot be used with"),
        ("rate goose", "add --interface DEVICE here"),
        ("outage udp --of links", "interrupt the network yourself"),
        ("outage mqtt --of broker", "interrupt the network yourself"),
        ("outage udp --start 1s", "--start has no effect with --of observed"),
        ("outage udp --length 20min", "at most 15 min with an agent"),
        ("latency udp --agent-address 192.0.2.1", "192.0.2.1"),
        ("latency mqtt --broker 127.0.0.1:1", "127.0.0.1:1"),
    ] {
        let done = agent.run(arguments);
        assert_eq!(done.status.code(), Some(2), "{arguments}: {}", error(&done));
        assert!(error(&done).contains(expected), "{arguments}: {}", error(&done));
    }
    let unset =
        agent.controller("latency udp").env_remove("GRIDHAUL_AGENT_TOKEN").output().unwrap();
    assert!(error(&unset).contains("openssl rand"), "{}", error(&unset));
    fs::set_permissions(agent.desk.path().join("token"), fs::Permissions::from_mode(0o644))
        .unwrap();
    assert!(error(&agent.run("latency udp")).contains("chmod 600"));
    let address = agent.arguments.split(' ').nth(1).unwrap().to_owned();
    let (arguments, key) = agent.arguments.split_once(&address).unwrap();
    let closed = format!("latency udp {arguments}127.0.0.1:1{key}");
    let done = Command::new(PROGRAM)
        .args(closed.split(' '))
        .env("GRIDHAUL_AGENT_TOKEN", TOKEN)
        .output()
        .unwrap();
    assert!(error(&done).contains("gridhaul measure agent"), "{}", error(&done));
    let taken = Command::new(PROGRAM)
        .args(["agent", "--listen", &address])
        .env("GRIDHAUL_AGENT_TOKEN", TOKEN)
        .output()
        .unwrap();
    assert!(
        taken.status.code() == Some(2) && error(&taken).contains(&address),
        "{}",
        error(&taken)
    );
}

#[test]
fn a_second_controller_learns_that_the_agent_is_busy() {
    let agent = Agent::start();
    let mut first = agent.controller("latency udp --rate 100 --messages 100000 --out first");
    first.args(["--token-file", "token"]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut first = first.spawn().unwrap();
    // The log is created after the token was accepted.
    await_folder(&agent.desk.path().join("first/messages"));
    let second = agent.run("latency udp");
    assert_eq!(second.status.code(), Some(2));
    assert!(error(&second).contains("busy"), "{}", error(&second));
    first.kill().unwrap();
    first.wait().unwrap();
}

#[test]
fn a_peer_without_tls_is_disconnected() {
    let agent = Agent::start();
    let address = agent.arguments.split(' ').nth(1).unwrap();
    let mut peer = TcpStream::connect(address).unwrap();
    peer.set_read_timeout(Some(time::Duration::from_secs(30))).unwrap();
    peer.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // An alert of TLS, then the end; a reset is one as well.
    let ended = peer.read_to_end(&mut answer);
    let is_reset = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(ended.as_ref().err().is_none_or(is_reset), "{ended:?}");
    assert!(answer.len() < 16, "{answer:?}");
    assert!(agent.run("latency udp --rate 1000 --messages 10").status.success());
}

/// Peers without a token, each of which sends a byte of an incomplete TLS record now and then.
/// Returns how long each was connected.
#[expect(clippy::disallowed_methods, reason = "peers send in real time")]
fn slow_peers(address: &str, is_over: &AtomicBool) -> Vec<time::Duration> {
    let slow = || {
        let begin = time::Instant::now();
        let mut peer = TcpStream::connect(address).unwrap();
        let mut record = [0x16, 3, 1, 0x40, 0].into_iter().chain([0].into_iter().cycle());
        while !is_over.load(Ordering::Relaxed) {
            let byte = record.next().unwrap();
            if peer.write_all(&[byte]).is_err() || begin.elapsed() > time::Duration::from_secs(60) {
                break;
            }
            thread::sleep(time::Duration::from_millis(50));
        }
        begin.elapsed()
    };
    thread::scope(|scope| {
        let peers: Vec<_> = (0..8).map(|_| scope.spawn(slow)).collect();
        peers.into_iter().map(|peer| peer.join().unwrap()).collect()
    })
}

/// Waits until the agent refuses a controller because of the connections of others, and returns the
/// message.
fn refused(agent: &Agent) -> String {
    let text = |_| error(&agent.run("latency udp --rate 1000 --messages 10"));
    (0..20).map(text).find(|text| text.contains("8 connections are open")).unwrap()
}

#[test]
fn peers_that_send_a_byte_now_and_then_are_disconnected_after_ten_seconds() {
    let agent = Agent::start();
    let address = agent.arguments.split(' ').nth(1).unwrap();
    let connected = thread::scope(|scope| {
        let peers = scope.spawn(|| slow_peers(address, &AtomicBool::new(false)));
        let text = refused(&agent);
        assert!(text.contains("try again"), "{text}");
        peers.join().unwrap()
    });
    let seconds = connected.iter().map(time::Duration::as_secs);
    assert!(seconds.clone().all(|second| (9..40).contains(&second)), "{connected:?}");
    assert!(agent.run("latency udp --rate 1000 --messages 10").status.success());
    assert!(agent.log().contains("refused, 8 connections are open"), "{}", agent.log());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the end of the agent is awaited in real time")]
fn an_agent_ends_at_once_while_peers_send_a_byte_now_and_then() {
    let mut agent = Agent::start();
    let address = agent.arguments.split(' ').nth(1).unwrap().to_owned();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| slow_peers(&address, &is_over));
        refused(&agent);
        let signal = Command::new("kill").arg(agent.process.id().to_string()).status().unwrap();
        assert!(signal.success());
        let begin = time::Instant::now();
        while agent.process.try_wait().unwrap().is_none() {
            let waited = begin.elapsed();
            is_over.store(waited > time::Duration::from_secs(5), Ordering::Relaxed);
            assert!(waited < time::Duration::from_secs(5), "the agent has not ended");
            thread::sleep(time::Duration::from_millis(20));
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
