//! A second relay on the interfaces of a running one, and interfaces that are removed.

use std::fs;
use std::process::{Command, Stdio};

use crate::fail_open::bridged_by;
use crate::network::{Devices, Network, is_possible, relay, run, server_address, wait_until};
use crate::transfer::Ends;

const RULE: &str = "[bridge.rule.all]\nmode = \"split\"\nbuffer = \"200 kB\"\n";

/// Runs a second relay, with the interfaces of the running one in the other order. Returns its
/// messages at its end.
fn run_second(network: &Network) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (file, errors) = (folder.path().join("second.toml"), folder.path().join("errors"));
    let text = fs::read_to_string(network.configure(RULE)).unwrap();
    let text = text.replace("name = \"test\"", "name = \"second\"");
    let text = text.replace("\"left\", \"right\"", "\"right\", \"left\"");
    fs::write(&file, text.replace("127.0.0.1:9180", "127.0.0.1:9181")).unwrap();
    let stderr = fs::File::create(&errors).unwrap();
    let start = || {
        let mut command = Command::new(relay());
        command.arg("run").arg(&file).stdin(Stdio::null()).stderr(stderr).spawn().unwrap()
    };
    let mut child = network.between.enter(start).unwrap();
    wait_until("the second relay is ready or has ended", || {
        let is_ready = fs::read_to_string(&errors).unwrap().contains("ready");
        is_ready || child.try_wait().unwrap().is_some()
    });
    let _ = child.kill();
    child.wait().unwrap();
    fs::read_to_string(&errors).unwrap()
}

fn refuse_second(mut network: Network) {
    let address = server_address(false, 2);
    let ends = Ends { client: &network.left, server: &network.right, address };
    let error = run_second(&network);
    assert!(error.contains("another relay has the interface right"), "{error}");
    ends.transfer([300_000, 300_000]);
    network.signal(rustix::process::Signal::TERM);
    assert!(network.wait());
}

#[test]
fn a_second_relay_is_refused() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(Devices::default());
    network.start(RULE);
    refuse_second(network);
}

#[test]
fn a_second_relay_is_refused_with_a_bridge_of_the_kernel() {
    let Some(network) = bridged_by(RULE) else { return };
    refuse_second(network);
}

#[test]
fn an_interface_that_is_removed_is_named() {
    let Some(mut network) = bridged_by(RULE) else { return };
    run(&network.between, "ip link del left");
    assert!(!network.wait());
    let reports = network.reports();
    assert!(reports.contains("bridge.interfaces: left: No such device"), "{reports}");
    assert!(reports.contains("was the interface removed?"), "{reports}");
}
