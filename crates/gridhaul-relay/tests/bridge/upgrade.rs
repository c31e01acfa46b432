//! SIGUSR2: the next version of the program takes over while data is being transferred.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use crate::cases::{left_opens, rule};
use crate::fail_open::bridged_by;
use crate::network::{Network, wait_until};
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
    for mode in ["none", "reflect", "spoof", "snoop", "ack"] {
        let Some(network) = bridged_by(&rule(mode)) else { return };
        let received = upgrade_during_a_transfer(&network);
        let received = received.unwrap_or_else(|error| panic!("{mode}: {error}"));
        assert!(received == pattern(BYTES, 3), "{mode}: {} bytes", received.len());
        let status = network.document("/status");
        assert_eq!(status["abandoned_resets_count"], 0, "{mode}: {status}");
        left_opens(&network, true).transfer([10_000, 10_000]);
    }
}

/// `split` has its own sequence numbers on both sides: the hosts cannot continue without it.
#[test]
fn a_transfer_through_split_is_reset_by_an_upgrade() {
    let Some(network) = bridged_by(&rule("split")) else { return };
    let error = upgrade_during_a_transfer(&network).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    left_opens(&network, false).transfer([10_000, 10_000]);
}
