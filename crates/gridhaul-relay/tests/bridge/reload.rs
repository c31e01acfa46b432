//! SIGHUP: another configuration for later connections.

use std::io::{Read, Write};

use rustix::process::Signal;

use crate::cases::{left_opens, rule};
use crate::network::{Devices, Network, is_possible, wait_until};

const MESSAGE: &str = "the configuration was read again";

#[test]
fn rules_and_limits_of_a_reload_apply_to_later_connections() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(&rule("reflect"));
    let (mut client, mut server) = left_opens(&network, false).connect();
    client.write_all(b"before").unwrap();
    server.read_exact(&mut [0; 6]).unwrap();
    network.configure(&format!("connections = 7\n{}", rule("spoof")));
    network.signal(Signal::HUP);
    wait_until("the configuration is read", || network.reports().contains(MESSAGE));
    // The present connection keeps its proxy.
    client.write_all(b"after").unwrap();
    server.read_exact(&mut [0; 5]).unwrap();
    left_opens(&network, true).transfer([10_000, 10_000]);
    let status = network.document("/status");
    assert_eq!(status["connections_max_count"], 7, "{status}");
    assert_eq!(status["opened_count"]["reflect"], 1, "{status}");
    assert_eq!(status["opened_count"]["spoof"], 1, "{status}");
}

#[test]
fn a_configuration_with_an_error_is_not_applied() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(&rule("reflect"));
    network.configure("[bridge.rule.all]\nmode = \"snoop\"\n");
    network.signal(Signal::HUP);
    let message = "the present configuration stays in use";
    wait_until("the error is reported", || network.reports().contains(message));
    let reports = network.reports();
    assert!(reports.contains("bridge.rule.all.toward"), "{reports}");
    left_opens(&network, false).transfer([10_000, 10_000]);
    assert_eq!(network.document("/status")["opened_count"]["reflect"], 1);
}

#[test]
fn other_interfaces_need_a_restart() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(&rule("reflect"));
    let file = network.configure(&rule("reflect"));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("[\"left\", \"right\"]", "[\"left\", \"lo\"]")).unwrap();
    network.signal(Signal::HUP);
    let message = "the present configuration stays in use";
    wait_until("the error is reported", || network.reports().contains(message));
    let reports = network.reports();
    assert!(reports.contains("bridge.interfaces"), "{reports}");
    left_opens(&network, false).transfer([10_000, 10_000]);
}
