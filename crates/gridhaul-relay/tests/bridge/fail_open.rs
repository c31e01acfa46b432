//! The bridge of the kernel takes over when the relay is killed or hangs.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use gridhaul_testing::has_tool;
use rustix::process::Signal;
use socket2::{Domain, Socket};

use crate::network::{Devices, Network, address, is_possible, run, server_address, wait_until};
use crate::transfer::{Ends, pattern};

const RULE: &str = "[bridge.rule.all]\nmode = \"reflect\"\nbuffer = \"200 kB\"\n";

/// Longest time until the kernel forwards.
const TAKEOVER: Duration = Duration::from_secs(3);

fn bridged() -> Option<Network> {
    bridged_by(RULE)
}

/// A bridge that works with the kernel's bridge, if the kernel permits it.
pub(crate) fn bridged_by(rule: &str) -> Option<Network> {
    if !is_possible() {
        return None;
    }
    let mut network = Network::new(Devices { is_bridged: true, ..Devices::default() });
    let reports = network.try_start(rule).err();
    let is_refused = reports.as_ref().is_some_and(|text| text.contains("fail_open"));
    assert!(reports.is_none() || is_refused, "{reports:?}");
    has_tool(!is_refused, "the right to attach programs to network devices").then_some(network)
}

fn ends(network: &Network) -> Ends<'_> {
    let address = server_address(false, 2);
    Ends { client: &network.left, server: &network.right, address }
}

fn exchange(client: &mut TcpStream, server: &mut TcpStream) -> Duration {
    let begun = Instant::now();
    client.write_all(b"request").unwrap();
    server.read_exact(&mut [0; 7]).unwrap();
    server.write_all(b"reply").unwrap();
    client.read_exact(&mut [0; 5]).unwrap();
    begun.elapsed()
}

#[test]
fn connections_continue_when_the_relay_is_killed() {
    let Some(mut network) = bridged() else { return };
    ends(&network).transfer([500_000, 500_000]);
    let (mut client, mut server) = ends(&network).connect();
    exchange(&mut client, &mut server);
    network.wait_for_renewal();
    let status = network.document("/status");
    assert_eq!(status["opened_count"]["reflect"], 2, "{status}");
    assert!(status["withheld_count"].as_u64().unwrap() > 50, "{status}");
    network.signal(Signal::KILL);
    network.wait();
    let outage = exchange(&mut client, &mut server);
    assert!(outage < TAKEOVER, "{outage:?}");
    // New connections pass the kernel's bridge, and the relay can start again.
    ends(&network).transfer([100_000, 100_000]);
    network.start(RULE);
    ends(&network).transfer([100_000, 100_000]);
    exchange(&mut client, &mut server);
}

#[test]
fn connections_continue_when_the_relay_hangs() {
    let Some(network) = bridged() else { return };
    let (mut client, mut server) = ends(&network).connect();
    exchange(&mut client, &mut server);
    network.wait_for_renewal();
    network.signal(Signal::STOP);
    let outage = exchange(&mut client, &mut server);
    assert!(outage < TAKEOVER, "{outage:?}");
    network.signal(Signal::CONT);
    wait_until("the relay has noticed it", || network.reports().contains("in time"));
    exchange(&mut client, &mut server);
}

/// The first fragment of a TCP packet, with the header of IP, from the client to the server.
fn fragment(is_v6: bool) -> Vec<u8> {
    const TCP: u8 = 6;
    let (source, destination) = (address(is_v6, 1), address(is_v6, 2));
    let mut bytes = match is_v6 {
        false => vec![0x45, 0, 0, 44, 0, 1, 0x20, 0, 64, TCP, 0, 0],
        true => vec![0x60, 0, 0, 0, 0, 32, 44, 64],
    };
    for address in [source, destination] {
        match address {
            IpAddr::V4(address) => bytes.extend(address.octets()),
            IpAddr::V6(address) => bytes.extend(address.octets()),
        }
    }
    if is_v6 {
        bytes.extend([TCP, 0, 0, 1, 0, 0, 0, 1]);
    }
    bytes.extend([0; 24]);
    bytes
}

#[test]
fn fragments_that_the_kernel_forwards_are_counted() {
    let Some(network) = bridged() else { return };
    // raw(7): packets with their headers.
    const RAW: (i32, i32) = (3, 255);
    for (count, is_v6) in [(1, false), (2, true)] {
        let domain = if is_v6 { Domain::IPV6 } else { Domain::IPV4 };
        let socket = || Socket::new(domain, RAW.0.into(), Some(RAW.1.into())).unwrap();
        let socket = network.left.enter(socket).unwrap();
        let server = SocketAddr::new(address(is_v6, 2), 0);
        socket.send_to(&fragment(is_v6), &server.into()).unwrap();
        wait_until("the fragment is counted", || {
            network.document("/status")["untouched_count"]["fragment"] == count
        });
    }
}

#[test]
fn bytes_at_risk_of_a_killed_relay_are_reset() {
    let Some(mut network) = bridged() else { return };
    let (mut client, mut server) = ends(&network).connect();
    exchange(&mut client, &mut server);
    run(&network.right, "ip link set eth0 down");
    client.write_all(&pattern(100_000, 3)).unwrap();
    wait_until("bytes are at risk", || {
        network.document("/status")["bytes_at_risk_byte"].as_u64().unwrap() >= 100_000
    });
    network.signal(Signal::KILL);
    network.wait();
    run(&network.right, "ip link set eth0 up");
    // The host sends nothing more: the next relay probes it.
    network.start(RULE);
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
