//! A classifier (tcx) on a device in its own namespace: the packets it drops, and its removal when
//! its BPF link is closed.

#![expect(clippy::disallowed_methods, reason = "waits for the kernel in real time")]

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_linux::bpf::{Loader, MapKind, Object, TrafficDirection, map_lookup};
use gridhaul_linux::{Namespace, interface_index, run_batch};

const SECTION: &str = "classifier/discard";

/// Longest time in which a datagram arrives, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(20);

/// Compiles `classifier.c`; `None` without clang, which in CI is an error.
fn compile() -> Option<Object> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/integration/classifier.c");
    let arguments = ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-c", source, "-o", "-"];
    if !gridhaul_testing::has_program("clang") {
        return None;
    }
    let output = Command::new("clang").args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Object::parse(&output.stdout).unwrap())
}

/// A receiver at this port of the loopback device.
fn receiver(port: u16) -> UdpSocket {
    let receiver = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    receiver
}

fn send(receiver: &UdpSocket) {
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"reading", receiver.local_addr().unwrap()).unwrap();
}

pub(crate) fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_met() {
        assert!(Instant::now() < end, "not in {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_classifier_drops_packets_until_its_link_is_closed() {
    let Some(object) = compile() else { return };
    let inside = || {
        run_batch("ip", "link set lo up\n", "test").unwrap();
        // Both remain open: a program that another thread starts meanwhile has their file
        // descriptors until it begins, and would keep their ports in use.
        let [discarded, passed] = [9, 10].map(receiver);
        let mut loader = Loader::new("discard", &object).unwrap();
        let size =
            loader.make_map("counters", MapKind::SingleEntry, "counters", "discard_count").unwrap();
        let device = interface_index("lo").unwrap();
        let direction = TrafficDirection::Ingress;
        let link = loader.attach_classifier(SECTION, "discard", device, direction).unwrap();
        let counts = || {
            let counters = map_lookup(loader.map("counters").unwrap(), 0, size).unwrap();
            [0, 8].map(|at| u64::from_le_bytes(counters[at..at + 8].try_into().unwrap()))
        };
        send(&discarded);
        send(&passed);
        passed.recv(&mut [0; 16]).unwrap();
        wait_until("the other datagram is dropped", || counts()[1] != 0);
        assert_eq!(counts(), [1, 1], "passed and dropped");
        discarded.set_nonblocking(true).unwrap();
        let kind = discarded.recv(&mut [0; 16]).unwrap_err().kind();
        assert_eq!(kind, ErrorKind::WouldBlock);
        assert!(link.as_fd().try_clone_to_owned().is_ok());
        // Such a program has the file descriptor of the link as well.
        drop(link);
        wait_until("a datagram passes", || {
            send(&discarded);
            discarded.recv(&mut [0; 16]).is_ok()
        });
    };
    Namespace::new().expect("the kernel tests run as root").enter(inside).unwrap();
}

#[test]
fn an_unknown_section_is_named() {
    let Some(object) = compile() else { return };
    let loader = Loader::new("discard", &object).unwrap();
    let attached =
        loader.attach_classifier("classifier/absent", "absent", 1, TrafficDirection::Egress);
    let error = attached.unwrap_err().to_string();
    assert!(error.contains("no section classifier/absent"), "{error}");
}
