//! Kills of this relay and of comparable programs while the server does not read: bytes that TCP
//! has acknowledged and that are lost, and bytes that are lost although they were reported as
//! stored.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use gridhaul_linux::TcpInfo;
use rustix::process::Signal;
use serde_json::{Value, json};
use socket2::SockRef;

use gridhaul_testing::free_address;

use crate::ledger::{self, Delivered};
use crate::meters::{connect_with_ethernet_mss, message};
use crate::relays::{Relays, Role};

/// Connections for each kill, and bytes that each offers: more than all buffers between a meter and
/// the server hold.
const STREAMS: u64 = 16;
const OFFERED: u64 = 64_000_000;

/// Largest size of undelivered records: this relay stops reading as well.
const LOG: &str = "16 MB";

/// All connections count as blocked when so few bytes were sent in this time.
const BLOCKED: (u64, Duration) = (64_000, Duration::from_secs(1));

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

/// Connections that send as fast as they can. Each thread returns its stream and the bytes that TCP
/// has acknowledged when the connection has failed.
struct Senders {
    threads: Vec<JoinHandle<(u64, u64)>>,
    /// Bytes that the kernel has accepted from all of them.
    sent: Arc<AtomicU64>,
}

impl Senders {
    fn start(address: SocketAddr) -> Self {
        let sent = Arc::new(AtomicU64::new(0));
        let start = |stream| {
            let all = Arc::clone(&sent);
            thread::spawn(move || (stream, send_until_killed(address, stream, &all)))
        };
        Self { threads: (0..STREAMS).map(start).collect(), sent }
    }

    /// Waits until all buffers between the meters and the server are full.
    fn wait_until_blocked(&self) {
        let begun = Instant::now();
        let mut before = 0;
        loop {
            thread::sleep(BLOCKED.1);
            let sent = self.sent.load(Ordering::Relaxed);
            assert!(sent < STREAMS * OFFERED, "the buffers hold everything: offer more");
            if sent > 0 && sent - before < BLOCKED.0 {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the buffers do not become full");
            before = sent;
        }
    }

    /// Bytes that TCP has acknowledged, by stream.
    fn join(self) -> BTreeMap<u64, u64> {
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

fn send_until_killed(address: SocketAddr, stream: u64, all: &AtomicU64) -> u64 {
    let mut socket = connect_with_ethernet_mss(address);
    let (mut sent, mut number) = (0, 0);
    while sent < OFFERED {
        let text = message(stream, number);
        if socket.write_all(text.as_bytes()).is_err() {
            break;
        }
        (sent, number) = (sent + text.len() as u64, number + 1);
        all.fetch_add(text.len() as u64, Ordering::Relaxed);
    }
    // RST, or FIN of a program that has lost data.
    let _ = socket.read(&mut [0; 1]);
    // SYN counts as a byte.
    TcpInfo::of(&socket).unwrap().bytes_acknowledged.saturating_sub(1)
}

/// A server that reads nothing until it is released. It writes the records that the head of this
/// relay writes: open, data, end or reset of each connection.
struct Server {
    address: SocketAddr,
    is_released: Arc<AtomicBool>,
    folder: tempfile::TempDir,
    readers: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// The file with the records, and the number of the next one.
struct Records(File, u64);

impl Records {
    fn add(&mut self, meter: u64, event: &str, offset: u64, text: &str) {
        let record = json!({
            "epoch": "server", "shard": 0, "sequence": self.1, "event": event,
            "meter": meter, "offset": offset,
            "text": text,
        });
        self.1 += 1;
        self.0.write_all(format!("{record}\n").as_bytes()).unwrap();
    }
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        SockRef::from(&listener).set_recv_buffer_size(SERVER_BUFFER).unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            is_released: Arc::default(),
            folder: tempfile::tempdir().unwrap(),
            readers: Arc::default(),
        };
        let records = Arc::new(Mutex::new(Records(File::create(server.messages()).unwrap(), 0)));
        let is_released = Arc::clone(&server.is_released);
        let readers = Arc::clone(&server.readers);
        thread::spawn(move || {
            for (meter, socket) in (0..=STREAMS).zip(listener.incoming()) {
                let (is_released, records) = (Arc::clone(&is_released), Arc::clone(&records));
                let socket = socket.unwrap();
                readers.lock().unwrap().push(thread::spawn(move || {
                    while !is_released.load(Ordering::Relaxed) {
                        thread::sleep(Duration::from_millis(10));
                    }
                    record(socket, meter, &records);
                }));
            }
        });
        server
    }

    fn messages(&self) -> PathBuf {
        self.folder.path().join("messages.jsonl")
    }

    /// Reads what has arrived, until all connections have ended.
    fn drain(&self) {
        self.is_released.store(true, Ordering::Relaxed);
        let readers = std::mem::take(&mut *self.readers.lock().unwrap());
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    }
}

fn record(mut socket: TcpStream, meter: u64, records: &Mutex<Records>) {
    let add = |event: &str, offset, text: &str| {
        records.lock().unwrap().add(meter, event, offset, text);
    };
    add("open", 0, "");
    let (mut buffer, mut offset) = (vec![0; 256 * 1024], 0);
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return add("eof", offset, ""),
            Ok(length) => {
                add("data", offset, std::str::from_utf8(&buffer[..length]).unwrap());
                offset += length as u64;
            }
            Err(_) => return add("reset", offset, ""),
        }
    }
}

/// Bytes that TCP has acknowledged and that were not delivered, of all streams and of those that
/// ended with FIN: FIN states that the stream is complete.
fn lost_bytes(messages: &Path, acknowledged: &BTreeMap<u64, u64>) -> (u64, u64) {
    let mut streams: BTreeMap<ledger::Key, u64> = BTreeMap::new();
    let delivered = ledger::read(messages, |key, offset, text| {
        if offset == 0 {
            streams.insert(key.clone(), text.split(' ').next().unwrap().parse().unwrap());
        }
    });
    let found: BTreeMap<u64, &Delivered> =
        streams.iter().map(|(key, stream)| (*stream, &delivered[key])).collect();
    let (mut all, mut ended) = (0, 0);
    for (stream, bytes) in acknowledged {
        let delivered = found.get(stream);
        let lost = bytes.saturating_sub(delivered.map_or(0, |stream| stream.length));
        all += lost;
        ended += if delivered.is_some_and(|stream| stream.is_ended) { lost } else { 0 };
    }
    (all, ended)
}

/// Starts a program that listens at the first address and connects to the second.
type Start = fn(SocketAddr, SocketAddr) -> Child;

/// Lost bytes of a kill: acknowledged by TCP, and reported as complete.
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
    let meters = Senders::start(address);
    meters.wait_until_blocked();
    relay.kill().unwrap();
    relay.wait().unwrap();
    server.drain();
    lost_bytes(&server.messages(), &meters.join())
}

/// Relays that stop reading when a small log is full, as the others do when their buffers are full.
fn relays_with_small_log(tier: &str) -> Relays {
    let relays = match tier {
        "local" => Relays::new(tier, ""),
        _ => Relays::new(tier, &format!("memory = \"{LOG}\"")),
    };
    let path = relays.path("collector.toml");
    let text = fs::read_to_string(&path).unwrap();
    let segment = "log.segment = \"2 MB\"";
    fs::write(&path, text.replace(segment, &format!("{segment}\nlog.limit = \"{LOG}\""))).unwrap();
    relays
}

/// Lost bytes of a kill, and the limit that the relay states.
fn kill_relay(tier: &str) -> (u64, u64, u64) {
    let mut relays = relays_with_small_log(tier);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    let meters = Senders::start(relays.meters);
    thread::sleep(Duration::from_millis(200));
    relays.signal(Role::Head, Signal::STOP);
    meters.wait_until_blocked();
    let status = relays.ask(Role::Collector, "/status").unwrap();
    let limit = status["bytes_at_risk_limit_byte"].as_u64().unwrap();
    let answer = relays.ask(Role::Collector, "/details").unwrap();
    relays.kill(Role::Collector);
    relays.signal(Role::Head, Signal::CONT);
    relays.start(Role::Collector);
    let acknowledged = meters.join();
    relays.wait_until_delivered();
    let (lost, ended) = lost_bytes(&relays.messages(), &acknowledged);
    (lost, ended + durable_and_lost(&answer, &relays.messages()), limit)
}

/// Bytes that a collector has reported as durable and that were not delivered.
fn durable_and_lost(answer: &Value, messages: &Path) -> u64 {
    let delivered = ledger::read(messages, |_, _, _| {});
    let epoch = answer["epoch"].as_str().unwrap();
    let lost = answer["meters"].as_array().unwrap().iter().map(|meter| {
        let key = (epoch.to_owned(), meter["meter"].as_u64().unwrap());
        let delivered = delivered.get(&key).map_or(0, |meter| meter.length);
        meter["durable_byte"].as_u64().unwrap().saturating_sub(delivered)
    });
    lost.sum()
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
    println!("\n{STREAMS} meters, all buffers full, {CYCLES} kills of each relay\n");
    println!(
        "| relay | TCP-acknowledged bytes lost, all kills | in the worst kill | stated limit of a \
         kill | reported bytes lost |"
    );
    println!("|---|--:|--:|--:|--:|");
    let row = |name: &str, lost: &Lost, limit: &str| {
        let Lost { acknowledged, largest, reported } = lost;
        println!("| {name} | {acknowledged} | {largest} | {limit} | {reported} |");
    };
    for tier in ["local", "server"] {
        let (mut lost, mut limit) = (Lost::default(), 0);
        for _ in 0..CYCLES {
            let (acknowledged, reported, stated) = kill_relay(tier);
            limit = stated;
            assert!(
                acknowledged <= limit,
                "{acknowledged} bytes lost, the stated limit is {limit}"
            );
            lost.add(acknowledged, reported);
        }
        row(&format!("gridhaul, tier {tier}"), &lost, &limit.to_string());
        assert_eq!(lost.reported, 0, "{tier}");
    }
    let peers: [(&str, Start); 2] = [("HAProxy", start_haproxy), ("nginx", start_nginx)];
    for (name, start) in peers {
        let mut lost = Lost::default();
        for _ in 0..CYCLES {
            let (acknowledged, reported) = kill_peer(start);
            lost.add(acknowledged, reported);
        }
        row(name, &lost, "none");
    }
}
