//! A classifier (tcx) on a device in its own namespace: the packets it drops, and its removal when
//! its BPF link is closed.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::process::Command;
use std::time::Duration;

use gridhaul_linux::bpf::{Loader, MapKind, Object, TrafficDirection, map_lookup};
use gridhaul_linux::{Namespace, interface_index, run_batch};

const SECTION: &str = "classifier/discard";

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

/// Whether a datagram to this port of the loopback device arrives.
fn arrives(port: u16) -> bool {
    let receiver = UdpSocket::bind(("127.0.0.1", port)).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    sender.send_to(b"reading", ("127.0.0.1", port)).unwrap();
    receiver.recv(&mut [0; 16]).is_ok()
}

#[test]
fn a_classifier_drops_packets_until_its_link_is_closed() {
    let Some(object) = compile() else { return };
    let inside = || {
        run_batch("ip", "link set lo up\n", "test").unwrap();
        let mut loader = Loader::new("discard", &object).unwrap();
        let size =
            loader.make_map("counters", MapKind::SingleEntry, "counters", "discard_count").unwrap();
        let device = interface_index("lo").unwrap();
        let direction = TrafficDirection::Ingress;
        let link = loader.attach_classifier(SECTION, "discard", device, direction).unwrap();
        assert!(!arrives(9));
        assert!(arrives(10));
        let counters = map_lookup(loader.map("counters").unwrap(), 0, size).unwrap();
        let count = |at: usize| u64::from_le_bytes(counters[at..at + 8].try_into().unwrap());
        assert_eq!((count(0), count(8)), (1, 1), "passed and dropped");
        assert!(link.as_fd().try_clone_to_owned().is_ok());
        drop(link);
        assert!(arrives(9));
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
