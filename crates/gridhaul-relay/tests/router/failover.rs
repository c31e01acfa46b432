//! Links that die: data of connections continues over the other link.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::network::{Network, Side, is_possible, wait_until};

/// Packets of port 4061 prefer the other link.
const CLASS: &str = "[router.class.steady]\nlinks = [\"gprs\"]\n\
                     packets = { protocol = \"tcp\", ports = [4061] }\n";

/// Messages over a connection, and the longest time between two arrivals.
struct Traffic {
    stop: Arc<AtomicBool>,
    gap: Arc<Mutex<(Instant, Duration)>>,
    threads: Vec<thread::JoinHandle<u64>>,
}

const MESSAGE: usize = 200;

impl Traffic {
    /// Sends a message each 50 ms from the first end to the other.
    fn start([mut from, mut to]: [TcpStream; 2]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let gap = Arc::new(Mutex::new((Instant::now(), Duration::ZERO)));
        from.set_nodelay(true).unwrap();
        let (end, longest) = (Arc::clone(&stop), Arc::clone(&gap));
        let sender = thread::spawn(move || {
            let mut sent = 0;
            while !end.load(Ordering::Relaxed) {
                from.write_all(&[sent as u8; MESSAGE]).unwrap();
                sent += 1;
                thread::sleep(Duration::from_millis(50));
            }
            sent
        });
        let receiver = thread::spawn(move || {
            let (mut received, mut message) = (0_u64, [0; MESSAGE]);
            while to.read_exact(&mut message).is_ok() {
                assert_eq!(message, [received as u8; MESSAGE], "in order");
                received += 1;
                let mut gap = longest.lock().unwrap();
                *gap = (Instant::now(), gap.1.max(gap.0.elapsed()));
            }
            received
        });
        Self { stop, gap, threads: vec![sender, receiver] }
    }

    /// The longest gap since the last call, the present one included.
    fn take_gap(&self) -> Duration {
        let mut gap = self.gap.lock().unwrap();
        let longest = gap.1.max(gap.0.elapsed());
        gap.1 = Duration::ZERO;
        longest
    }

    fn wait_for_arrivals(&self) {
        let begun = Instant::now();
        wait_until("messages arrive", || self.gap.lock().unwrap().0 > begun);
    }

    /// All messages have arrived.
    fn end(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let [sent, received] = [0, 1].map(|_| self.threads.remove(0).join().unwrap());
        assert_eq!(sent, received);
    }
}

#[test]
fn connections_continue_over_the_other_link() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([CLASS, CLASS]);
    network.start_both();
    let traffic = Traffic::start(network.connect(Side::Terminal, 4060));
    let steady = Traffic::start(network.connect(Side::Centre, 4061));
    traffic.wait_for_arrivals();
    let is_on = |network: &Network, link: &str| {
        [Side::Terminal, Side::Centre].iter().all(|side| network.link(*side, None) == link)
    };
    assert!(is_on(&network, "dvbt"));

    network.run(Side::Centre, "ip link set dvbt0 down");
    wait_until("both sides leave the link without carrier", || is_on(&network, "gprs"));
    traffic.wait_for_arrivals();
    println!("carrier lost: longest gap {:?}", traffic.take_gap());
    // The kernel has removed the routes of the device, which the router adds again.
    network.run(Side::Centre, "ip link set dvbt0 up");
    wait_until("both sides use the link again", || is_on(&network, "dvbt"));
    traffic.wait_for_arrivals();

    traffic.take_gap();
    // Packets of the terminal vanish; those of the centre arrive.
    network.run(Side::Centre, "nft add table netdev loss");
    let hook = "{ type filter hook ingress device dvbt0 priority 0; policy drop; }";
    network.run(Side::Centre, &format!("nft add chain netdev loss ingress {hook}"));
    wait_until("the terminal leaves the link", || network.link(Side::Terminal, None) == "gprs");
    traffic.wait_for_arrivals();
    println!("packets vanish in one direction: longest gap {:?}", traffic.take_gap());
    // On a busy machine, probes of links that work are late at times.
    wait_until("the other direction works", || network.link(Side::Centre, None) == "dvbt");
    wait_until("the class uses its link", || {
        network.link(Side::Terminal, Some("steady")) == "gprs"
    });
    wait_until("the link has failed", || {
        let status = network.status(Side::Terminal, "/status").unwrap();
        status["link_error"].as_str().unwrap().starts_with("dvbt: packets do not arrive")
    });
    println!("the connection over the other link: longest gap {:?}", steady.take_gap());
    traffic.end();
    steady.end();
}

#[test]
fn a_segment_that_waits_on_a_dead_device_is_sent_over_the_other_link() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new([CLASS, CLASS]);
    network.start_both();
    let [mut own, mut other] = network.connect(Side::Terminal, 4060);
    let mut message = [0; MESSAGE];
    own.write_all(&message).unwrap();
    other.read_exact(&mut message).unwrap();
    // For so long the kernel asks for the address of a neighbour, instead of three seconds.
    network.run(Side::Terminal, "sysctl -q net.ipv4.neigh.dvbt0.mcast_solicit=120");
    // The terminal sends after the loss of the carrier, and before its router has changed marks.
    network.signal(Side::Terminal, "-STOP");
    network.run(Side::Centre, "ip link set dvbt0 down");
    let waiting = || network.run(Side::Terminal, "ip neigh show dev dvbt0 nud incomplete");
    wait_until("a segment waits on the device", || {
        own.write_all(&message).unwrap();
        !waiting().is_empty()
    });
    network.signal(Side::Terminal, "-CONT");
    other.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
    other.read_exact(&mut message).expect("the kernel retransmits within 40 s");
}

#[test]
fn a_link_that_swallows_large_packets_only_is_left() {
    if !is_possible() {
        return;
    }
    let keys = "link.dvbt.probe_size = \"1500 B\"\nlink.gprs.probe_size = \"1500 B\"\n";
    let mut network = Network::new([keys, keys]);
    network.start_both();
    let [mut from, mut to] = network.connect(Side::Terminal, 4060);
    network.run(Side::Centre, "nft add table netdev loss");
    let hook = "{ type filter hook ingress device dvbt0 priority 0; }";
    network.run(Side::Centre, &format!("nft add chain netdev loss ingress {hook}"));
    network.run(Side::Centre, "nft add rule netdev loss ingress meta length > 1000 drop");
    wait_until("the terminal leaves the link", || network.link(Side::Terminal, None) == "gprs");
    // On a busy machine, small probes are late at times as well.
    wait_until("only large packets do not arrive", || {
        let status = network.status(Side::Terminal, "/status").unwrap();
        status["link_error"] == "dvbt: large packets do not arrive at the peer"
    });
    wait_until("the other direction works", || network.link(Side::Centre, None) == "dvbt");
    let sender = thread::spawn(move || from.write_all(&vec![7; 1 << 20]).unwrap());
    let mut received = Vec::new();
    to.read_to_end(&mut received).unwrap();
    assert!(received == vec![7; 1 << 20], "{} bytes", received.len());
    sender.join().unwrap();

    network.run(Side::Centre, "nft delete table netdev loss");
    wait_until("the terminal returns", || network.link(Side::Terminal, None) == "dvbt");
    // A device with a smaller MTU could not send such probes.
    network.stop(Side::Terminal, "-TERM");
    network.run(Side::Terminal, "ip link set dvbt0 mtu 1400");
    let refused = network.relay(Side::Terminal, &[]);
    let error = String::from_utf8_lossy(&refused.stderr);
    let expected = "router.link.dvbt.probe_size: 1500 B exceed the MTU of dvbt0, 1400 B";
    assert!(error.contains(expected), "{error}");
}

#[test]
fn the_packet_filter_is_created_again_after_another_program_has_flushed_it() {
    if !is_possible() {
        return;
    }
    let mut network = Network::new(["", ""]);
    network.start_both();
    network.run(Side::Terminal, "nft flush ruleset");
    network.run(Side::Terminal, "ip link set dvbt0 down");
    wait_until("another link", || network.link(Side::Terminal, None) == "gprs");
    wait_until("the table", || {
        network.run(Side::Terminal, "nft list tables").contains("gridhaul_router")
    });
    let traffic = Traffic::start(network.connect(Side::Terminal, 4060));
    traffic.wait_for_arrivals();
    traffic.end();
}
