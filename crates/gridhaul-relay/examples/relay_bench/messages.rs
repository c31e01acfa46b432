//! CPU time of small messages from many meters, and durable acknowledgements under this load.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gridhaul_linux::{EventFlags, Poll};
use rustix::net::{RecvFlags, recv};

use crate::Result;
use crate::aggregation::{Aggregation, Options};
use crate::process::cpu_s;
use crate::proxies::{Kind, Proxy, listen, wait_until};
use crate::{peers, relay};

pub(crate) const METERS: usize = 4_000;
pub(crate) const RATE: u64 = 20_000;
const MESSAGES: u64 = 100_000;
pub(crate) const MESSAGE: [u8; 200] = [b'x'; 200];

/// Messages of each meter before the measurement.
const WARM_UP: u64 = 2;

/// Least time of fdatasync(2) on the slow disk, in ms.
const SLOW_SYNC_MS: f64 = 4.0;

/// Results of a tier.
struct Tier {
    cpu_us: f64,
    rate: f64,
    /// Delays of acknowledgements in ms, sorted.
    delays: Vec<f64>,
}

pub(crate) fn run() -> Vec<Result> {
    eprintln!("\n{METERS} meters, {MESSAGES} messages of 200 bytes at {RATE} per second");
    let disks = [("memory", false), ("local", false), ("local", true)];
    let [memory, local, slow] = disks.map(|(tier, has_slow_disk)| {
        let found = collector(tier, has_slow_disk);
        let quantile = |part: usize| found.delays[found.delays.len() * part / 100];
        let disk = if has_slow_disk { ", slow disk" } else { "" };
        eprintln!(
            "  {:<27}{:>8.2} us CPU per message {:>8.0} messages/s; FIN answered after {:.1} ms \
             (median), {:.1} ms (95 %)",
            format!("collector, {tier}{disk}"),
            found.cpu_us,
            found.rate,
            quantile(50),
            quantile(95)
        );
        found
    });
    // Otherwise the library has had no effect.
    assert!(slow.delays[0] >= SLOW_SYNC_MS, "FIN was answered after {} ms", slow.delays[0]);
    for kind in [Kind::Split].into_iter().chain(peers()).filter(|kind| *kind != Kind::Socat) {
        let (cpu, rate) = forward(kind);
        let ratio = cpu / memory.cpu_us;
        eprintln!(
            "  {:<27}{cpu:>8.2} us CPU per message {rate:>8.0} messages/s  {ratio:.1} times \
             collector, memory",
            kind.name()
        );
    }
    let result =
        |name: &str, value, unit, limit| Result { name: name.to_owned(), value, unit, limit };
    vec![
        result("message-memory", memory.cpu_us, "us", 8.0),
        result("message-local", local.cpu_us, "us", 10.0),
        result("durable-acknowledgement", local.delays[local.delays.len() / 2], "ms", 10.0),
        result("durable-acknowledgement-slow-disk", slow.delays[slow.delays.len() / 2], "ms", 10.0),
        result("memory-rate-to-local-rate", memory.rate / local.rate, "", 1.05),
        result("memory-rate-to-local-rate-slow-disk", memory.rate / slow.rate, "", 1.05),
    ]
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let meter = TcpStream::connect(address).unwrap();
    meter.set_nodelay(true).unwrap();
    meter
}

/// Sends messages of all meters in turn, on schedule.
pub(crate) fn send(meters: &mut [TcpStream], count: u64, rate: u64) {
    let begun = Instant::now();
    for number in 0..count {
        let due = Duration::from_nanos(number * 1_000_000_000 / rate);
        if let Some(early) = due.checked_sub(begun.elapsed()) {
            thread::sleep(early.max(Duration::from_millis(1)));
        }
        let index = number as usize % meters.len();
        meters[index].write_all(&MESSAGE).unwrap();
    }
}

fn collector(tier: &str, has_slow_disk: bool) -> Tier {
    let relay = Aggregation::start(tier, Options { has_slow_disk, ..Options::default() });
    let mut meters: Vec<_> = (0..METERS).map(|_| connect(relay.meters)).collect();
    let warm_up = WARM_UP * METERS as u64;
    send(&mut meters, warm_up, RATE);
    relay.wait("received_byte", 200 * warm_up);
    let process = relay.collector.id();
    let (before, begun) = (cpu_s(process), Instant::now());
    send(&mut meters, MESSAGES, RATE);
    relay.wait("received_byte", 200 * (warm_up + MESSAGES));
    relay.wait("backlog_byte", 0);
    let rate = MESSAGES as f64 / begun.elapsed().as_secs_f64();
    let cpu_us = (cpu_s(process) - before) / MESSAGES as f64 * 1e6;
    // Probes under the same load, apart from the measurement of CPU time.
    let stop = Arc::new(AtomicBool::new(false));
    let probes = {
        let (stop, address) = (Arc::clone(&stop), relay.meters);
        thread::spawn(move || {
            let mut delays = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                delays.push(probe(address));
                thread::sleep(Duration::from_millis(10));
            }
            delays.sort_by(f64::total_cmp);
            delays
        })
    };
    send(&mut meters, MESSAGES / 2, RATE);
    stop.store(true, Ordering::Relaxed);
    Tier { cpu_us, rate, delays: probes.join().unwrap() }
}

/// Time in ms until the FIN of a meter is answered: its message has reached the tier.
fn probe(address: SocketAddr) -> f64 {
    let mut meter = TcpStream::connect(address).unwrap();
    let begun = Instant::now();
    meter.write_all(&MESSAGE).unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    assert_eq!(meter.read(&mut [0]).unwrap(), 0);
    begun.elapsed().as_secs_f64() * 1e3
}

/// CPU time in µs per message of a proxy, and messages per second.
fn forward(kind: Kind) -> (f64, f64) {
    let server = listen();
    let proxy = Proxy::start(kind, &relay(), server.local_addr().unwrap(), "");
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    // In turn, because the queue of the listener is short.
    let pair = |_| (connect(proxy.clients), server.accept().unwrap().0);
    let (mut meters, accepted): (Vec<_>, Vec<_>) = (0..METERS).map(pair).unzip();
    let (process, warm_up) = (proxy.child.id(), WARM_UP * METERS as u64);
    let reader = thread::spawn(move || receive(&accepted, &count, 200 * (warm_up + MESSAGES)));
    let wait = |messages: u64| {
        wait_until("the messages arrive", || received.load(Ordering::Relaxed) >= 200 * messages);
    };
    send(&mut meters, warm_up, RATE);
    wait(warm_up);
    let (before, begun) = (cpu_s(process), Instant::now());
    send(&mut meters, MESSAGES, RATE);
    wait(warm_up + MESSAGES);
    let rate = MESSAGES as f64 / begun.elapsed().as_secs_f64();
    reader.join().unwrap();
    ((cpu_s(process) - before) / MESSAGES as f64 * 1e6, rate)
}

/// Receives and discards until all bytes have arrived.
pub(crate) fn receive(sockets: &[TcpStream], count: &AtomicU64, bytes: u64) {
    let mut poll = Poll::new().unwrap();
    for (index, socket) in sockets.iter().enumerate() {
        socket.set_nonblocking(true).unwrap();
        poll.watch(socket, index as u64, EventFlags::IN).unwrap();
    }
    let mut buffer = [0; 65_536];
    while count.load(Ordering::Relaxed) < bytes {
        for event in poll.wait::<256>(Duration::from_millis(100)).unwrap() {
            let data = event.data;
            let socket = &sockets[data.u64() as usize];
            if let Ok((_, length)) = recv(socket, &mut buffer[..], RecvFlags::TRUNC) {
                count.fetch_add(length as u64, Ordering::Relaxed);
            }
        }
    }
}
