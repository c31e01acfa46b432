//! The kernel's bridge takes over from each mode: connections continue, or are reset at both hosts.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use crate::cases::{MODES, left_opens, right_opens, rule};
use crate::fail_open::bridged_by;
use crate::network::{Devices, Network, is_possible, relay, run, wait_until};
use crate::transfer::pattern;

fn network(mode: &str) -> Option<Network> {
    bridged_by(&rule(mode))
}

/// Longest time in which both hosts notice a reset.
const RESET_LIMIT: Duration = Duration::from_secs(20);

/// Sends bytes in both directions of an open connection.
fn exchange([client, server]: &mut [TcpStream; 2], length: usize) {
    let data = pattern(length, 7);
    for _ in 0..2 {
        thread::scope(|scope| {
            scope.spawn(|| client.write_all(&data).unwrap());
            let mut received = vec![0; length];
            server.read_exact(&mut received).unwrap();
            assert!(received == data);
        });
        std::mem::swap(client, server);
    }
}

/// The client sends until nobody accepts more, and the server does not read. Returns the bytes that
/// were accepted.
fn fill(client: &mut TcpStream) -> usize {
    client.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let data = pattern(1 << 16, 7);
    let mut sent = 0;
    while let Ok(written) = client.write(&data) {
        sent += written;
    }
    sent
}

/// Reads until an error, which both hosts must notice as a reset.
fn assert_reset(stream: &mut TcpStream, what: &str) {
    stream.set_read_timeout(Some(RESET_LIMIT)).unwrap();
    let mut space = vec![0; 1 << 16];
    let error = loop {
        match stream.read(&mut space) {
            Ok(0) => panic!("{what}: FIN instead of a reset"),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{what}");
}

fn status(network: &Network, key: &str) -> Value {
    network.document("/status")[key].clone()
}

#[test]
fn every_mode_divides_the_packets_with_the_kernels_bridge() {
    for mode in MODES {
        let Some(network) = network(mode) else { return };
        for is_v6 in [false, true] {
            left_opens(&network, is_v6).transfer([400_000, 200_000]);
            right_opens(&network, is_v6).transfer([1, 100_000]);
        }
        let document = network.document("/status");
        assert!(document["withheld_count"].as_u64() > Some(100), "{mode}: {document}");
        assert_eq!(document["abandoned_resets_count"], 0, "{mode}: {document}");
        assert!(network.metrics().contains("gridhaul_relay_withheld_total "));
    }
}

#[test]
fn connections_without_bytes_at_risk_continue_after_a_kill() {
    for mode in MODES {
        let Some(mut network) = network(mode) else { return };
        let (client, server) = left_opens(&network, false).connect();
        let mut ends = [client, server];
        exchange(&mut ends, 200_000);
        network.wait_for_renewal();
        network.signal(Signal::KILL);
        network.wait();
        let begun = Instant::now();
        if mode == "split" {
            let [client, server] = &mut ends;
            let _ = client.write_all(&[1; 10]);
            assert_reset(client, mode);
            assert_reset(server, mode);
        } else {
            exchange(&mut ends, 200_000);
        }
        println!("{mode}: {:?}", begun.elapsed());
        left_opens(&network, true).transfer([100_000, 100_000]);
    }
}

#[test]
fn connections_with_bytes_at_risk_are_reset_after_a_kill() {
    for mode in ["reflect", "spoof"] {
        let Some(mut network) = network(mode) else { return };
        let (mut client, mut server) = left_opens(&network, false).connect();
        // A busy machine may interrupt the transfer for longer than the client waits.
        wait_until("bytes are at risk", || {
            fill(&mut client);
            status(&network, "bytes_at_risk_byte").as_u64() > Some(0)
        });
        network.signal(Signal::KILL);
        network.wait();
        // The server opens its window, and the probes of the client's kernel are answered.
        server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        assert_reset(&mut server, mode);
        assert_reset(&mut client, mode);
    }
}

#[test]
fn idle_hosts_of_connections_with_bytes_at_risk_are_reset_by_the_next_daemon() {
    let Some(mut network) = network("reflect") else { return };
    let (mut client, mut server) = left_opens(&network, false).connect();
    // The bytes are acknowledged by the proxy, and the server cannot receive them any more.
    run(&network.right, "ip link set eth0 down");
    client.write_all(&pattern(20_000, 3)).unwrap();
    wait_until("the bytes are at risk", || {
        status(&network, "bytes_at_risk_byte").as_u64() >= Some(10_000)
    });
    network.signal(Signal::KILL);
    network.wait();
    run(&network.right, "ip link set eth0 up");
    network.start(&rule("reflect"));
    assert_reset(&mut server, "server");
    assert_reset(&mut client, "client");
    assert!(status(&network, "abandoned_resets_count").as_u64() > Some(0));
}

#[test]
fn the_kernel_takes_over_while_the_daemon_is_stopped() {
    let Some(network) = network("reflect") else { return };
    let (client, server) = left_opens(&network, false).connect();
    let mut ends = [client, server];
    exchange(&mut ends, 200_000);
    network.wait_for_renewal();
    network.signal(Signal::STOP);
    let begun = Instant::now();
    exchange(&mut ends, 200_000);
    left_opens(&network, true).transfer([100_000, 100_000]);
    println!("after SIGSTOP: {:?}", begun.elapsed());
    network.signal(Signal::CONT);
    // The proxy has not seen the segments since: it must not serve the connection any more.
    exchange(&mut ends, 200_000);
    wait_until("the lease has expired", || status(&network, "ended_count")["lease_expired"] == 1);
    right_opens(&network, false).transfer([100_000, 100_000]);
    assert_eq!(status(&network, "opened_count")["reflect"], 2);
}

#[test]
fn connections_survive_an_upgrade_and_a_stop() {
    for mode in ["none", "reflect", "spoof", "snoop", "ack"] {
        let Some(mut network) = network(mode) else { return };
        let (client, server) = left_opens(&network, false).connect();
        let mut ends = [client, server];
        exchange(&mut ends, 100_000);
        network.signal(Signal::USR2);
        wait_until("the next program runs", || network.reports().matches("is ready").count() == 2);
        exchange(&mut ends, 100_000);
        left_opens(&network, false).transfer([10_000, 10_000]);
        // A host acknowledges the last bytes later than its application reads them.
        network.wait_for_renewal();
        network.signal(Signal::TERM);
        assert!(network.wait(), "{}", network.reports());
        exchange(&mut ends, 100_000);
        let attached = || {
            let device = gridhaul_linux::interface_index("left").unwrap();
            gridhaul_linux::bpf::attached(device).unwrap().len()
        };
        assert_eq!(network.between.enter(attached).unwrap(), 0, "{mode}");
    }
}

#[test]
fn without_a_bridge_of_the_kernel_the_commands_that_make_one_are_named() {
    if !is_possible() {
        return;
    }
    let network = Network::new(Devices::default());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("relay.toml");
    std::fs::write(&file, "name = \"test\"\n[bridge]\ninterfaces = [\"left\", \"right\"]\n")
        .unwrap();
    for command in ["check", "run"] {
        let work = || Command::new(relay()).arg(command).arg(&file).output().unwrap();
        let done = network.between.enter(work).unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert!(!done.status.success(), "{command}");
        for part in [
            "bridge.fail_open: left and right: no port of a bridge",
            "ip link set left master br0",
            "or set `fail_open = false`",
        ] {
            assert!(error.contains(part), "{command}: {error}");
        }
    }
}
