//! Meters whose data is acknowledged when it is durable: the kernel's TCP as the meter, and the
//! collector's on a TUN device. kill -9 loses no byte that TCP has acknowledged.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gridhaul_linux::{Namespace, TcpInfo};
use gridhaul_testing::{has_program, has_tool};
use rustix::process::Signal;

use crate::ledger;
use crate::meters::message;
use crate::relays::{Relays, Role};

/// Address of the listener: routed to the device, and of no machine (RFC 5737).
const ADDRESS: &str = "192.0.2.10:4059";

/// A persistent device, the route to it, and an address of the meters.
const NETWORK: [&str; 5] = [
    "ip link set lo up",
    "ip address add 198.18.0.1/32 dev lo",
    "ip tuntap add dev gridhaul0 mode tun",
    "ip link set gridhaul0 up",
    "ip route add 192.0.2.10/32 dev gridhaul0 src 198.18.0.1",
];

/// Kills of the collector in the tests of a change; `GRIDHAUL_KILL_CYCLES` sets another number.
const CYCLES: u64 = 5;

/// Meters at the same time.
const METERS: u64 = 4;

/// Runs a test in a network namespace with the device, if this machine permits it.
fn in_network(test: impl FnOnce() + Send) {
    let is_possible = has_program("ip")
        && has_tool(Namespace::new().is_ok(), "the right to create network namespaces")
        && has_tool(gridhaul_linux::may_open_tun(), "access to /dev/net/tun");
    if !is_possible {
        return;
    }
    let run = || {
        for words in NETWORK {
            let done = command(words);
            assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
        }
        // On a busy machine, meters that have sent while the collector was down would retransmit
        // after a minute: once a second instead, until the collector is up. Kernels before 6.15
        // have no such limit.
        if fs::write("/proc/sys/net/ipv4/tcp_rto_max_ms", "1000").is_ok() {
            fs::write("/proc/sys/net/ipv4/tcp_syn_retries", "100").unwrap();
            fs::write("/proc/sys/net/ipv4/tcp_retries2", "100").unwrap();
        }
        test();
    };
    Namespace::new().unwrap().enter(run).unwrap();
}

fn command(words: &str) -> Output {
    let words: Vec<_> = words.split(' ').collect();
    Command::new(words[0]).args(&words[1..]).output().unwrap()
}

/// A collector with a listener on the device, and its head.
fn relays(keys: &str) -> Relays {
    let mut relays = Relays::new("local", &format!("tun = \"gridhaul0\"\n{keys}"));
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(&relays.meters.to_string(), ADDRESS)).unwrap();
    relays.configure(Role::Collector, "ack = \"durable\"");
    relays.meters = ADDRESS.parse().unwrap();
    relays
}

/// Relays that run, a meter that has connected, and its address.
fn running_with_a_meter() -> (Relays, TcpStream, String) {
    let mut relays = relays("");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let socket = TcpStream::connect(relays.meters).unwrap();
    let peer = socket.local_addr().unwrap().to_string();
    (relays, socket, peer)
}

/// Bytes that TCP has acknowledged; SYN counts as one.
fn acknowledged(socket: &TcpStream) -> u64 {
    TcpInfo::of(socket).unwrap().bytes_acknowledged.saturating_sub(1)
}

/// Messages between two pauses of a sender: more than the window of the collector.
const BURST: u64 = 100;

/// Connects a meter. If other programs keep the kernel from updating the state of links, the device
/// has no carrier for a minute after a restart of the collector.
fn connect(address: SocketAddr) -> TcpStream {
    let attempts = std::iter::repeat_with(|| TcpStream::connect(address)).take(5);
    attempts.flatten().next().expect("a listener")
}

/// Sends messages of a stream until the connection fails or `stop` is set. Returns the bytes that
/// TCP has acknowledged, and whether FIN was answered.
fn send(stream: u64, address: SocketAddr, stop: &AtomicBool) -> (u64, bool) {
    let mut socket = connect(address);
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let mut is_closed = false;
    for number in 0.. {
        let text = message(stream, number);
        if socket.write_all(text.as_bytes()).is_err() {
            break;
        }
        if number % BURST == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        if stop.load(Ordering::Relaxed) {
            is_closed = socket.shutdown(Shutdown::Write).is_ok();
            break;
        }
    }
    // After a write has reported the failure, reading ends without another one.
    let is_answered = is_closed && matches!(socket.read(&mut [0; 1]), Ok(0));
    // FIN counts as a byte, like SYN.
    (acknowledged(&socket) - u64::from(is_answered), is_answered)
}

/// Results of streams: bytes that TCP has acknowledged, and whether FIN was answered.
type Streams = BTreeMap<u64, (u64, bool)>;

struct Senders {
    threads: Vec<(u64, JoinHandle<(u64, bool)>)>,
    stop: Arc<AtomicBool>,
}

impl Senders {
    fn start(first: u64, address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |stream| {
            let stop = Arc::clone(&stop);
            (stream, thread::spawn(move || send(stream, address, &stop)))
        };
        Self { threads: (first..first + METERS).map(start).collect(), stop }
    }

    fn join(self) -> Streams {
        self.threads.into_iter().map(|(stream, thread)| (stream, thread.join().unwrap())).collect()
    }
}

/// Bytes that TCP has acknowledged and that were not delivered.
fn lost(relays: &Relays, streams: &Streams) -> u64 {
    let mut numbers: BTreeMap<ledger::Key, u64> = BTreeMap::new();
    let delivered = ledger::read(&relays.messages(), |key, offset, text| {
        let first = || text.split(' ').next().unwrap().parse().unwrap();
        let stream = *numbers.entry(key.clone()).or_insert_with(first);
        let length = message(0, 0).len() as u64;
        let expected = &message(stream, offset / length)[(offset % length) as usize..];
        assert!(expected.starts_with(text), "stream {stream}: {text:?}");
    });
    let found: BTreeMap<u64, &ledger::Delivered> =
        numbers.iter().map(|(key, stream)| (*stream, &delivered[key])).collect();
    let lost = streams.iter().map(|(stream, (acknowledged, is_answered))| {
        let found = found.get(stream);
        assert!(!is_answered || found.is_some_and(|found| found.is_ended), "stream {stream}");
        acknowledged.saturating_sub(found.map_or(0, |found| found.length))
    });
    lost.sum()
}

fn cycles() -> u64 {
    let text = std::env::var("GRIDHAUL_KILL_CYCLES").ok();
    text.and_then(|text| text.parse().ok()).unwrap_or(CYCLES)
}

#[test]
fn a_kill_loses_no_byte_that_tcp_has_acknowledged() {
    in_network(|| {
        let mut relays = relays("");
        relays.start(Role::Head);
        relays.start(Role::Collector);
        let mut streams = Streams::new();
        let cycles = cycles();
        for cycle in 0..cycles {
            let senders = Senders::start(cycle * METERS, relays.meters);
            thread::sleep(Duration::from_millis(150 + cycle * 37 % 200));
            relays.kill(Role::Collector);
            relays.start(Role::Collector);
            // A meter whose SYN was answered by the new collector was not reset.
            senders.stop.store(true, Ordering::Relaxed);
            streams.extend(senders.join());
        }
        // The last streams end with FIN.
        let senders = Senders::start(cycles * METERS, relays.meters);
        // Whatever a collector has received of a stream with an answered FIN, it has acknowledged.
        relays.wait_until("the collector has received enough", |relays| {
            let status = relays.ask(Role::Collector, "/status").unwrap();
            status["received_byte"].as_u64() > Some(100_000)
        });
        let status = relays.ask(Role::Collector, "/status").unwrap();
        senders.stop.store(true, Ordering::Relaxed);
        let last = senders.join();
        assert!(last.values().all(|(_, is_answered)| *is_answered), "{last:?}");
        streams.extend(last);
        relays.wait_until_delivered();
        let bytes: u64 = streams.values().map(|(acknowledged, _)| acknowledged).sum();
        eprintln!(
            "{cycles} kills: {bytes} bytes acknowledged; delay {} s, longest {} s, \
             {} retransmissions before data was durable",
            status["durable_delay_s"],
            status["durable_delay_max_s"],
            status["durable_retransmissions_count"],
        );
        assert_eq!(lost(&relays, &streams), 0);
        assert!(bytes > 100_000, "{bytes} bytes were acknowledged");
        assert_eq!(status["bytes_at_risk_limit_byte"], 0);
        assert!(relays.metrics(Role::Collector).contains("gridhaul_relay_durable_withheld_bytes"));
    });
}

#[test]
fn while_the_log_is_full_the_meter_waits_with_a_closed_window() {
    in_network(|| {
        let mut relays = relays("");
        let path = relays.path("collector.toml");
        let text = fs::read_to_string(&path).unwrap();
        let segment = "log.segment = \"2 MB\"";
        let limit = format!("{segment}\nlog.limit = \"4 MB\"");
        fs::write(&path, text.replace(segment, &limit)).unwrap();
        relays.start(Role::Collector);
        let senders = Senders::start(0, relays.meters);
        relays.wait_until("the log is full", |relays| {
            let status = relays.ask(Role::Collector, "/status");
            status.is_some_and(|status| status["backlog_byte"].as_u64() > Some(3_500_000))
        });
        thread::sleep(Duration::from_millis(300));
        relays.start(Role::Head);
        thread::sleep(Duration::from_millis(300));
        senders.stop.store(true, Ordering::Relaxed);
        let streams = senders.join();
        assert!(streams.values().all(|(_, is_answered)| *is_answered), "{streams:?}");
        relays.wait_until_delivered();
        assert_eq!(lost(&relays, &streams), 0);
    });
}

#[test]
fn a_stop_acknowledges_what_is_durable_and_resets_the_meters() {
    in_network(|| {
        let (mut relays, mut socket, peer) = running_with_a_meter();
        socket.write_all(message(0, 0).as_bytes()).unwrap();
        let length = message(0, 0).len() as u64;
        relays.wait_until_durable(&peer, length);
        relays.signal(Role::Collector, Signal::TERM);
        relays.wait_for_end(Role::Collector);
        let begun = Instant::now();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let error = socket.read(&mut [0; 1]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        assert!(begun.elapsed() < Duration::from_secs(5));
        assert_eq!(acknowledged(&socket), length);
    });
}

#[test]
fn a_device_that_is_down_for_a_while_loses_packets_only() {
    in_network(|| {
        let (relays, mut socket, peer) = running_with_a_meter();
        let length = message(0, 0).len() as u64;
        // The collector reads the message, and acknowledges it, while the device is down.
        relays.signal(Role::Collector, Signal::STOP);
        socket.write_all(message(0, 0).as_bytes()).unwrap();
        assert!(command("ip link set gridhaul0 down").status.success());
        relays.signal(Role::Collector, Signal::CONT);
        relays.wait_until_durable(&peer, length);
        assert_eq!(acknowledged(&socket), 0);
        // The route has gone with the device.
        assert!(NETWORK[3..].iter().all(|words| command(words).status.success()));
        relays.wait_until("the meter has retransmitted", |_| acknowledged(&socket) == length);
    });
}

#[test]
fn a_missing_device_and_an_address_of_the_machine_are_errors() {
    in_network(|| {
        let relays = relays("");
        let check = || {
            let done = relays.command(&["check", "collector.toml"]).output().unwrap();
            (done.status.success(), String::from_utf8_lossy(&done.stderr).into_owned())
        };
        assert_eq!(check(), (true, String::new()));
        let example = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/durable.toml");
        let done = relays.command(&["check", example]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(command("ip address add 192.0.2.10/32 dev lo").status.success());
        let (_, text) = check();
        assert!(text.contains("collector.listener.meters.address: this machine has"), "{text}");
        assert!(text.contains("help: remove it from the machine"), "{text}");
        assert!(command("ip address del 192.0.2.10/32 dev lo").status.success());
        assert!(command("ip link del gridhaul0").status.success());
        let (is_accepted, text) = check();
        assert!(!is_accepted && text.contains("no such persistent TUN device"), "{text}");
        assert!(text.contains("ip tuntap add dev gridhaul0 mode tun"), "{text}");
    });
}

/// Shortest times between commits that are measured, in milliseconds.
const COMMIT_INTERVALS: [u64; 6] = [2, 20, 50, 100, 200, 400];

/// Time of each measurement.
const MEASUREMENT: Duration = Duration::from_secs(6);

#[test]
#[ignore = "takes a minute and prints a table: cargo test -p gridhaul-relay --test daemon \
            acknowledgement_delay -- --ignored --nocapture"]
fn acknowledgement_delay_and_retransmissions_by_commit_interval() {
    in_network(|| {
        println!(
            "| commit interval | delay, smoothed | longest | meter | goodput | smoothed RTT | \
             RTO | timeouts | retransmitted of sent segments |"
        );
        println!("|--:|--:|--:|---|--:|--:|--:|--:|--:|");
        COMMIT_INTERVALS.into_iter().for_each(measure);
    });
}

fn measure(interval: u64) {
    let mut relays = relays(&format!("batch_delay = \"{interval} ms\""));
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let address = relays.meters;
    let play = |stream: u64, pause: Duration| {
        thread::spawn(move || {
            let mut socket = TcpStream::connect(address).unwrap();
            let begun = Instant::now();
            for number in (0..).take_while(|_| begun.elapsed() < MEASUREMENT) {
                socket.write_all(message(stream, number).as_bytes()).unwrap();
                thread::sleep(pause);
            }
            (acknowledged(&socket), TcpInfo::of(&socket).unwrap())
        })
    };
    let meters = [
        ("streams", play(1, Duration::ZERO)),
        ("200 B each 500 ms", play(2, Duration::from_millis(500))),
    ];
    let results = meters.map(|(name, meter)| (name, meter.join().unwrap()));
    let status = relays.ask(Role::Collector, "/status").unwrap();
    let ms = |key: &str| status[key].as_f64().unwrap_or(f64::NAN) * 1e3;
    for (name, (bytes, info)) in results {
        println!(
            "| {interval} ms | {:.1} ms | {:.1} ms | {name} | {:.0} kB/s | {:.1} ms | {:.0} ms | \
             {} | {} of {} |",
            ms("durable_delay_s"),
            ms("durable_delay_max_s"),
            bytes as f64 / 1e3 / MEASUREMENT.as_secs_f64(),
            info.srtt.as_secs_f64() * 1e3,
            info.rto.as_secs_f64() * 1e3,
            info.timeouts,
            info.retransmissions,
            info.data_segments_sent,
        );
    }
}
