//! Many connections: as many meters as a process can have, and meters that write while nothing can
//! be delivered.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_relay::daemon::query;
use serde_json::Value;
use socket2::SockRef;

use crate::Result;
use crate::aggregation::{Aggregation, Options};
use crate::process::pss_byte;
use crate::proxies::{Kind, Proxy, listen, wait_until};
use crate::{relay, storm};

const METERS: usize = 19_000;
const STALLED: usize = 10_000;

/// Sessions of a split proxy with their two ends in this process.
const STALLED_SESSIONS: usize = 4_000;

/// Longest time for which all write.
const FILL: Duration = Duration::from_secs(10);

/// Limits of memory in the configurations of stalled relays.
const MEMORY: f64 = 32e6;
const AT_RISK: f64 = 8e6;

pub(crate) fn run() -> Vec<Result> {
    let mut results = vec![many(), storm::run()];
    results.push(stalled_collector());
    results.push(stalled_split());
    results
}

fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).unwrap()
}

fn many() -> Result {
    let relay = Aggregation::start("local", Options::default());
    let before = pss_byte(relay.collector.id());
    let mut meters: Vec<_> = (0..METERS).map(|_| connect(relay.meters)).collect();
    for meter in &mut meters {
        meter.write_all(&[b'x'; 200]).unwrap();
    }
    relay.wait("received_byte", 200 * METERS as u64);
    relay.wait("backlog_byte", 0);
    let connected = relay.status()["meters_count"].as_f64().unwrap();
    let memory = (pss_byte(relay.collector.id()) - before) / 1e6;
    eprintln!("\n{connected} meters of one collector: {memory:.1} MB in user space");
    let missing = METERS as f64 - connected;
    Result { name: "load-missing-meters".to_owned(), value: missing, unit: "", limit: 0.0 }
}

/// Writes to all sockets in turn until nothing moves for a while, or for some time: send buffers
/// grow for long.
fn fill(sockets: &mut [TcpStream]) -> u64 {
    let block = [b'x'; 16_384];
    let mut sent = 0;
    for socket in sockets.iter() {
        socket.set_nonblocking(true).unwrap();
    }
    let (mut quiet, begun) = (0, Instant::now());
    while quiet < 5 && begun.elapsed() < FILL {
        let before = sent;
        for socket in sockets.iter_mut() {
            if let Ok(length) = socket.write(&block) {
                sent += length as u64;
            }
        }
        quiet = if sent == before { quiet + 1 } else { 0 };
        thread::sleep(Duration::from_millis(50));
    }
    sent
}

fn stalled_collector() -> Result {
    let keys = "memory = \"32 MB\"\nbytes_at_risk = \"8 MB\"\nbytes_at_risk_per_meter = \"64 kB\"";
    let relay =
        Aggregation::start("memory", Options { keys, without_head: true, ..Options::default() });
    let mut meters: Vec<_> = (0..STALLED).map(|_| connect(relay.meters)).collect();
    relay.wait("meters_count", STALLED as u64);
    let before = pss_byte(relay.collector.id());
    let sent = fill(&mut meters) as f64 / 1e6;
    let memory = pss_byte(relay.collector.id()) - before;
    report("collector without a head", STALLED, sent, memory, MEMORY + AT_RISK);
    limited("load-stalled-collector", memory / (MEMORY + AT_RISK))
}

fn stalled_split() -> Result {
    let server = listen();
    // Small buffers of the kernel, so that the proxy must keep data.
    SockRef::from(&server).set_recv_buffer_size(16_384).unwrap();
    let keys =
        "memory = \"32 MB\"\nclient.receive_buffer = \"64 kB\"\nserver.send_buffer = \"16 kB\"";
    let proxy = Proxy::start(Kind::Split, &relay(), server.local_addr().unwrap(), keys);
    let mut accepted = Vec::new();
    let mut clients: Vec<_> = (0..STALLED_SESSIONS)
        .map(|_| {
            let client = connect(proxy.clients);
            accepted.push(server.accept().unwrap().0);
            client
        })
        .collect();
    let before = pss_byte(proxy.child.id());
    let sent = fill(&mut clients) as f64 / 1e6;
    let memory = pss_byte(proxy.child.id()) - before;
    let status = query(&proxy.management.to_string(), "/status").unwrap();
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["connections_count"], STALLED_SESSIONS, "{status}");
    report("split proxy whose servers do not read", STALLED_SESSIONS, sent, memory, MEMORY);
    // A client is served as soon as its server reads.
    accepted[0].set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut found = 0;
    let mut buffer = vec![0; 1 << 20];
    wait_until("a session continues", || {
        found += accepted[0].read(&mut buffer).unwrap();
        found > 65_536
    });
    limited("load-stalled-split", memory / MEMORY)
}

fn report(name: &str, count: usize, sent: f64, memory: f64, limit: f64) {
    let (memory, limit) = (memory / 1e6, limit / 1e6);
    eprintln!(
        "{count} writing connections of a {name}: {sent:.0} MB written, {memory:.1} MB in user \
         space (configured {limit:.0} MB)"
    );
}

fn limited(name: &str, value: f64) -> Result {
    Result { name: name.to_owned(), value, unit: "of the configured memory", limit: 1.1 }
}
