//! Connections of the kernel through each mode.

use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

use gridhaul_linux::Namespace;
use rustix::process::Signal;
use socket2::SockRef;

use crate::network::{Devices, Network, is_possible, run, server_address, wait_until};
use crate::transfer::{Ends, pattern};

pub(crate) const MODES: [&str; 6] = ["none", "reflect", "spoof", "snoop", "ack", "split"];

pub(crate) fn rule(mode: &str) -> String {
    let served = if matches!(mode, "snoop" | "ack") { "toward = \"right\"\n" } else { "" };
    format!("[bridge.rule.all]\nmode = \"{mode}\"\n{served}")
}

pub(crate) fn left_opens(network: &Network, is_v6: bool) -> Ends<'_> {
    let address = server_address(is_v6, 2);
    Ends { client: &network.left, server: &network.right, address }
}

pub(crate) fn right_opens(network: &Network, is_v6: bool) -> Ends<'_> {
    let address = server_address(is_v6, 1);
    Ends { client: &network.right, server: &network.left, address }
}

/// No frame was lost by the bridge itself.
fn assert_nothing_dropped(network: &Network, context: &str) {
    let status = network.document("/status");
    let dropped = status["dropped_count"].as_object().unwrap();
    assert!(dropped.values().all(|count| count == 0), "{context}: {dropped:?}");
    assert_eq!(status["lost_byte"], 0, "{context}");
}

#[test]
fn every_mode_serves_connections_of_both_sides_with_offloads() {
    if !is_possible() {
        return;
    }
    for mode in MODES {
        let mut network = Network::new(Devices::default());
        network.start(&rule(mode));
        for is_v6 in [false, true] {
            left_opens(&network, is_v6).transfer([700_000, 300_000]);
            right_opens(&network, is_v6).transfer([1, 100_000]);
        }
        assert_nothing_dropped(&network, mode);
        let status = network.document("/status");
        if mode == "none" {
            assert_eq!(status["untouched_count"]["mode_none"], 4);
        } else {
            assert_eq!(status["opened_count"][mode], 4, "{status}");
        }
        assert!(network.metrics().contains("gridhaul_relay_opened_total{mode=\"reflect\"}"));
    }
}

#[test]
fn every_mode_serves_connections_without_offloads() {
    if !is_possible() {
        return;
    }
    for mode in MODES {
        let mut network = Network::new(Devices { without_offloads: true, ..Devices::default() });
        network.start(&rule(mode));
        left_opens(&network, false).transfer([300_000, 300_000]);
        assert_nothing_dropped(&network, mode);
        if mode != "none" {
            let status = network.document("/status");
            assert_eq!(status["opened_count"][mode], 1, "{status}");
        }
    }
}

#[test]
fn segments_fit_a_host_with_a_small_mtu() {
    if !is_possible() {
        return;
    }
    for (mode, mtu) in [("reflect", 576), ("spoof", 576), ("split", 576), ("reflect", 296)] {
        let mut network = Network::new(Devices { right_mtu: Some(mtu), ..Devices::default() });
        network.start(&rule(mode));
        left_opens(&network, false).transfer([200_000, 200_000]);
        right_opens(&network, false).transfer([50_000, 50_000]);
        // The last acknowledgement of a host may be delayed.
        wait_until("all bytes are delivered", || {
            network.document("/status")["bytes_at_risk_byte"] == 0
        });
    }
}

#[test]
fn a_reset_is_forwarded() {
    if !is_possible() {
        return;
    }
    for mode in MODES {
        let mut network = Network::new(Devices::default());
        network.start(&rule(mode));
        let (mut client, mut server) = left_opens(&network, false).connect();
        client.write_all(b"request").unwrap();
        server.read_exact(&mut [0; 7]).unwrap();
        // A close without lingering sends RST.
        SockRef::from(&client).set_linger(Some(Duration::ZERO)).unwrap();
        drop(client);
        let error = server.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{mode}");
    }
}

#[test]
fn what_is_not_tcp_passes() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(&rule("reflect"));
    let socket = |host: &Namespace, number| {
        let bind = || std::net::UdpSocket::bind(server_address(false, number)).unwrap();
        host.enter(bind).unwrap()
    };
    let (left, right) = (socket(&network.left, 1), socket(&network.right, 2));
    right.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // ARP passes as well. A datagram of 20 kB is sent in fragments.
    for size in [10, 20_000] {
        left.send_to(&vec![1; size], server_address(false, 2)).unwrap();
        assert_eq!(right.recv(&mut [0; 30_000]).unwrap(), size);
    }
}

#[test]
fn a_stopped_bridge_resets_bytes_at_risk() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(&format!("{}buffer = \"200 kB\"\n", rule("reflect")));
    let (mut client, mut server) = left_opens(&network, false).connect();
    client.write_all(b"hello").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    // The bridge acknowledges data that the other host cannot receive.
    run(&network.right, "ip link set eth0 down");
    client.write_all(&pattern(100_000, 3)).unwrap();
    wait_until("bytes are at risk", || {
        network.document("/status")["bytes_at_risk_byte"].as_u64().unwrap() >= 100_000
    });
    run(&network.right, "ip link set eth0 up");
    network.signal(Signal::TERM);
    assert!(network.wait(), "{}", network.reports());
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}
