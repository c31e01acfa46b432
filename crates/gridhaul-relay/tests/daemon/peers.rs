//! Kills of this relay and of comparable programs while the server does not read: bytes that TCP has acknowledged and
//! that are lost, and bytes that are lost although they were reported as stored.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gridhaul_linux::TcpInfo;
use rustix::process::Signal;
use socket2::SockRef;

use crate::ledger;
use crate::meters::{connect_with_ethernet_mss, message};
use crate::relays::{Relays, Role, free_address};

/// Connections for each kill, and bytes that each offers.
const STREAMS: u64 = 16;
const OFFERED: u64 = 20_000_000;

/// Messages between two pauses of 2 ms: at most 1 MB/s for each connection.
const BURST: u64 = 10;

/// Receive buffer of the server, so that bytes wait in the relay.
const SERVER_BUFFER: usize = 8 * 1024;

/// Kills of each program.
const CYCLES: u32 = 3;

/// Lost bytes of all kills of a program.
#[derive(Debug, Default)]
struct Lost {
    acknowledged: u64,
    reported: u64,
    largest: u64,
}

impl Lost {
    fn add(&mut self, acknowledged: u64, reported: u64) {
        self.acknowledged += acknowledged;
        self.reported += reported;
        self.largest = self.largest.max(acknowledged);
    }
}

/// Starts connections that send as fast as they can. Each thread returns its stream and the bytes that TCP has
/// acknowledged when the connection has failed.
fn send_until_killed(address: SocketAddr) -> Vec<JoinHandle<(u64, u64)>> {
    let play = move |stream| {
        let mut socket = connect_with_ethernet_mss(address);
        let (mut sent, mut number) = (0, 0);
        while sent < OFFERED {
            let text = message(stream, number);
            if socket.write_all(text.as_bytes()).is_err() {
                break;
            }
            (sent, number) = (sent + text.len() as u64, number + 1);
            if number.is_multiple_of(BURST) {
                thread::sleep(Duration::from_millis(2));
            }
        }
        // RST, or FIN of a program that has lost data.
        let _ = socket.read(&mut [0; 1]);
        // SYN counts as a byte.
        let acknowledged = TcpInfo::of(&socket).unwrap().bytes_acknowledged.saturating_sub(1);
        (stream, acknowledged.min(sent))
    };
    (0..STREAMS).map(|stream| thread::spawn(move || play(stream))).collect()
}

fn join(meters: Vec<JoinHandle<(u64, u64)>>) -> BTreeMap<u64, u64> {
    meters.into_iter().map(|meter| meter.join().unwrap()).collect()
}

/// A server that reads nothing until it is released.
struct Server {
    address: SocketAddr,
    is_released: Arc<AtomicBool>,
    /// Bytes of each stream, and whether it has ended with FIN.
    received: Arc<Mutex<BTreeMap<u64, (u64, bool)>>>,
    readers: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        SockRef::from(&listener).set_recv_buffer_size(SERVER_BUFFER).unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            is_released: Arc::default(),
            received: Arc::default(),
            readers: Arc::default(),
        };
        let (is_released, received) =
            (Arc::clone(&server.is_released), Arc::clone(&server.received));
        let readers = Arc::clone(&server.readers);
        thread::spawn(move || {
            for socket in listener.incoming().take(STREAMS as usize + 1) {
                let (is_released, received) = (Arc::clone(&is_released), Arc::clone(&received));
                let mut socket = socket.unwrap();
                readers.lock().unwrap().push(thread::spawn(move || {
                    while !is_released.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(10));
                    }
                    let mut bytes = Vec::new();
                    let is_ended = socket.read_to_end(&mut bytes).is_ok();
                    let text = String::from_utf8_lossy(&bytes);
                    let Some(stream) = text.split(' ').next().and_then(|it| it.parse().ok()) else {
                        return;
                    };
                    received.lock().unwrap().insert(stream, (bytes.len() as u64, is_ended));
                }));
            }
        });
        server
    }

    fn drain(&self) -> BTreeMap<u64, (u64, bool)> {
        self.is_released.store(true, Ordering::Relaxed);
        let readers = std::mem::take(&mut *self.readers.lock().unwrap());
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        self.received.lock().unwrap().clone()
    }
}

/// Starts a program that listens at the first address and connects to the second.
type Start = fn(SocketAddr, SocketAddr) -> Child;

/// Time in which the buffers between a meter and a server that does not read become full.
const FILL: Duration = Duration::from_secs(2);

fn kill_peer(start: impl Fn(SocketAddr, SocketAddr) -> Child) -> (u64, u64) {
    let server = Server::start();
    let address = free_address();
    let mut relay = start(address, server.address);
    let begun = Instant::now();
    // The attempt itself is a connection to the server of which nothing is expected.
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(10), "the relay does not listen");
        thread::sleep(Duration::from_millis(20));
    }
    let meters = send_until_killed(address);
    thread::sleep(FILL);
    relay.kill().unwrap();
    relay.wait().unwrap();
    let received = server.drain();
    let (mut acknowledged, mut reported) = (0, 0);
    for (stream, bytes) in join(meters) {
        let (length, is_ended) = received.get(&stream).copied().unwrap_or((0, false));
        let lost = bytes.saturating_sub(length);
        acknowledged += lost;
        // FIN states to the server that the stream is complete.
        reported += if is_ended { lost } else { 0 };
    }
    (acknowledged, reported)
}

/// Lost bytes of a kill, and the limit that the relay states.
fn kill_relay(tier: &str) -> (u64, u64, u64) {
    let mut relays = Relays::new(tier, "");
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let meters = send_until_killed(relays.meters);
    thread::sleep(Duration::from_millis(200));
    relays.signal(Role::Head, Signal::STOP);
    thread::sleep(FILL);
    let status = relays.ask(Role::Collector, "/status").unwrap();
    let limit = status["bytes_at_risk_limit_byte"].as_u64().unwrap();
    let answer = relays.ask(Role::Collector, "/meters").unwrap();
    relays.kill(Role::Collector);
    relays.signal(Role::Head, Signal::CONT);
    relays.start(Role::Collector);
    let acknowledged_bytes = join(meters);
    relays.wait_until_delivered();
    let mut streams: BTreeMap<ledger::Key, u64> = BTreeMap::new();
    let delivered = ledger::read(&relays.messages(), |key, offset, text| {
        if offset == 0 {
            streams.insert(key.clone(), text.split(' ').next().unwrap().parse().unwrap());
        }
    });
    let lengths: BTreeMap<u64, u64> =
        streams.iter().map(|(key, stream)| (*stream, delivered[key].length)).collect();
    let length = |stream: &u64| lengths.get(stream).copied().unwrap_or(0);
    let acknowledged =
        acknowledged_bytes.iter().map(|(stream, bytes)| bytes.saturating_sub(length(stream))).sum();
    let epoch = answer["epoch"].as_str().unwrap();
    let reported = answer["meters"].as_array().unwrap().iter().map(|meter| {
        let key = (epoch.to_owned(), meter["meter"].as_u64().unwrap());
        let delivered = delivered.get(&key).map_or(0, |meter| meter.length);
        meter["durable_byte"].as_u64().unwrap().saturating_sub(delivered)
    });
    (acknowledged, reported.sum(), limit)
}

fn start_haproxy(listen: SocketAddr, server: SocketAddr) -> Child {
    let text = format!(
        "defaults\n mode tcp\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n\
         listen meters\n bind {listen}\n server head {server}\n"
    );
    start("haproxy", &text, &["-db", "-f"])
}

fn start_nginx(listen: SocketAddr, server: SocketAddr) -> Child {
    let text = format!(
        "load_module /usr/lib/nginx/modules/ngx_stream_module.so;\n\
         daemon off;\nmaster_process off;\npid /dev/null;\nerror_log /dev/null;\nevents {{}}\n\
         stream {{ server {{ listen {listen}; proxy_pass {server}; }} }}\n"
    );
    start("nginx", &text, &["-c"])
}

/// Starts a program with a configuration file, which the program has read when it listens.
fn start(program: &str, configuration: &str, arguments: &[&str]) -> Child {
    let folder = tempfile::tempdir().unwrap().keep();
    let path = folder.join("configuration");
    fs::write(&path, configuration).unwrap();
    let mut command = Command::new(program);
    command.args(arguments).arg(&path).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap_or_else(|error| {
        panic!("{program}: {error}; install the Debian packages haproxy and libnginx-mod-stream")
    });
    thread::sleep(Duration::from_millis(300));
    fs::remove_dir_all(folder).unwrap();
    child
}

#[test]
#[ignore = "takes a minute, and needs HAProxy and nginx: cargo xtask soak relay --peers"]
fn bytes_lost_beside_other_relays() {
    println!("| relay | TCP-acknowledged bytes lost, all kills | largest | reported bytes lost |");
    println!("|---|---|---|---|");
    let row = |name: &str, lost: &Lost| {
        println!("| {name} | {} | {} | {} |", lost.acknowledged, lost.largest, lost.reported);
    };
    for tier in ["local", "server"] {
        let mut lost = Lost::default();
        for _ in 0..CYCLES {
            let (acknowledged, reported, limit) = kill_relay(tier);
            assert!(
                acknowledged <= limit,
                "{acknowledged} bytes lost, the stated limit is {limit}"
            );
            lost.add(acknowledged, reported);
        }
        row(&format!("gridhaul, tier {tier}"), &lost);
        assert_eq!(lost.reported, 0, "{tier}");
    }
    let peers: [(&str, Start); 2] = [("HAProxy", start_haproxy), ("nginx", start_nginx)];
    for (name, start) in peers {
        let mut lost = Lost::default();
        for _ in 0..CYCLES {
            let (acknowledged, reported) = kill_peer(start);
            lost.add(acknowledged, reported);
        }
        row(name, &lost);
    }
}
