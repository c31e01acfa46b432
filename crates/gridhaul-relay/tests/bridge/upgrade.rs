//! SIGUSR2: the next version of the program takes over while data is being transferred.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::cases::{MODES, left_opens, rule};
use crate::fail_open::bridged_by;
use crate::network::{Devices, Network, is_possible, wait_until};
use crate::transfer::pattern;

/// Bytes of a transfer: several times what is transferred before the upgrade.
const BYTES: usize = 24_000_000;

/// The receiver pauses after this many bytes, so that the proxy always has bytes at risk.
const BLOCK: usize = 64_000;
const PAUSE: Duration = Duration::from_millis(3);

/// Receives all bytes at the pace of a slow reader; the error of a reset otherwise.
fn receive(server: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let (mut received, mut block) = (Vec::new(), vec![0; BLOCK]);
    loop {
        match server.read(&mut block)? {
            0 => return Ok(received),
            count => received.extend_from_slice(&block[..count]),
        }
        thread::sleep(PAUSE);
    }
}

/// Upgrades the relay during a transfer from left to right. Returns what has arrived.
fn upgrade_during_a_transfer(network: &Network) -> std::io::Result<Vec<u8>> {
    let (mut client, mut server) = left_opens(network, false).connect();
    let sender = thread::spawn(move || client.write_all(&pattern(BYTES, 3)).is_ok());
    let receiver = thread::spawn(move || receive(&mut server));
    thread::sleep(Duration::from_millis(150));
    network.signal(Signal::USR2);
    wait_until("the next program runs", || network.reports().matches("is ready").count() == 2);
    let received = receiver.join().unwrap();
    assert_eq!(sender.join().unwrap(), received.is_ok());
    received
}

#[test]
fn a_bulk_transfer_survives_an_upgrade() {
    for mode in MODES {
        let Some(network) = bridged_by(&rule(mode)) else { return };
        let received = upgrade_during_a_transfer(&network);
        let received = received.unwrap_or_else(|error| panic!("{mode}: {error}"));
        assert!(received == pattern(BYTES, 3), "{mode}: {} bytes", received.len());
        let status = network.document("/status");
        assert_eq!(status["abandoned_resets_count"], 0, "{mode}: {status}");
        left_opens(&network, true).transfer([10_000, 10_000]);
    }
}

fn upgrade(network: &Network, number: usize) {
    network.signal(Signal::USR2);
    wait_until("the next program runs", || {
        network.reports().matches("is ready").count() == number + 1
    });
}

/// `split` has its own sequence numbers on both sides: the hosts need the next programs.
#[test]
fn a_connection_through_split_survives_upgrades_until_the_relay_stops() {
    let Some(mut network) = bridged_by(&rule("split")) else { return };
    let (mut client, mut server) = left_opens(&network, false).connect();
    let mut exchange = || {
        client.write_all(b"request").unwrap();
        server.read_exact(&mut [0; 7]).unwrap();
        server.write_all(b"reply").unwrap();
        client.read_exact(&mut [0; 5]).unwrap();
    };
    exchange();
    for number in 1..=3 {
        upgrade(&network, number);
        // The hosts of the second upgrade are idle until the third one.
        if number != 2 {
            exchange();
        }
        assert_eq!(network.document("/status")["connections_count"], 1);
    }
    network.signal(Signal::TERM);
    network.wait();
    let error = client.read_exact(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Without the lease, the kernel connects nothing while the relay is replaced.
#[test]
fn a_transfer_through_split_survives_an_upgrade_without_the_bridge_of_the_kernel() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(&rule("split"));
    let received = upgrade_during_a_transfer(&network).unwrap();
    assert!(received == pattern(BYTES, 3), "{} bytes", received.len());
}
