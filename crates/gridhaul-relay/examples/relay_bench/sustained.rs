//! Messages of many meters for a long time: memory must not grow.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;
use crate::aggregation::{Aggregation, Options};
use crate::messages::{MESSAGE, METERS, RATE, connect, receive, send};
use crate::process::{cpu_s, pss_byte};
use crate::proxies::listen;

/// Seconds between two samples of memory.
const STEP: u64 = 5;

/// Longest time until the server has everything after the last message.
const DRAIN: Duration = Duration::from_secs(60);

/// User-space memory of both relays, and bytes of their logs.
struct Sample {
    collector: f64,
    head: f64,
    logs: f64,
}

/// Sends messages for some time through a collector (`local`) and a head to a TCP server.
pub(crate) fn run(seconds: u64) -> Vec<Result> {
    let steps = (seconds / STEP).max(4);
    let count = steps * STEP * RATE;
    eprintln!("\n{METERS} meters, {count} messages of 200 bytes at {RATE} per second");
    let server = listen();
    let deliver = format!(
        "deliver.tcp.server = \"{}\"\ndeliver.tcp.identity = \"none\"",
        server.local_addr().unwrap()
    );
    let options = Options { deliver: Some(&deliver), ..Options::default() };
    let relay = Aggregation::start("local", options);
    let received = Arc::new(AtomicU64::new(0));
    let reader = {
        let received = Arc::clone(&received);
        let expected = count * MESSAGE.len() as u64;
        thread::spawn(move || receive(&accept_all(&server), &received, expected))
    };
    let mut meters: Vec<_> = (0..METERS).map(|_| connect(relay.meters)).collect();
    relay.wait("meters_count", METERS as u64);
    let (collector, head) = (relay.collector.id(), relay.head.as_ref().unwrap().id());
    let (cpu, begun) = ([collector, head].map(cpu_s), Instant::now());
    let mut samples = Vec::new();
    for step in 1..=steps {
        send(&mut meters, STEP * RATE, RATE);
        let sample = Sample {
            collector: pss_byte(collector) / 1e6,
            head: pss_byte(head) / 1e6,
            logs: log_byte(&relay) / 1e6,
        };
        if step % (steps / 10).max(1) == 0 {
            let Sample { collector, head, logs } = sample;
            eprintln!(
                "  {:>5} s: collector {collector:.2} MB, head {head:.2} MB, logs {logs:.0} MB",
                step * STEP
            );
        }
        samples.push(sample);
    }
    let elapsed = begun.elapsed().as_secs_f64();
    let used = [collector, head].map(cpu_s);
    let drained = Instant::now();
    while received.load(Ordering::Relaxed) < count * MESSAGE.len() as u64 {
        assert!(drained.elapsed() < DRAIN, "the server has not received everything");
        thread::sleep(Duration::from_millis(20));
    }
    reader.join().unwrap();
    eprintln!(
        "  {:.0} messages/s; all were delivered {:.1} s after the last one was sent; CPU time of \
         a message: collector {:.1} us, head {:.1} us",
        count as f64 / elapsed,
        drained.elapsed().as_secs_f64(),
        (used[0] - cpu[0]) / count as f64 * 1e6,
        (used[1] - cpu[1]) / count as f64 * 1e6,
    );
    let result =
        |name: &str, value, unit, limit| Result { name: name.to_owned(), value, unit, limit };
    vec![
        result(
            "sustained-growth-collector",
            growth(&samples, |sample| sample.collector),
            "MB",
            1.0,
        ),
        result("sustained-growth-head", growth(&samples, |sample| sample.head), "MB", 1.0),
        result("sustained-late", elapsed / (steps * STEP) as f64, "of the planned time", 1.02),
    ]
}

fn accept_all(server: &TcpListener) -> Vec<std::net::TcpStream> {
    (0..METERS).map(|_| server.accept().unwrap().0).collect()
}

/// Difference of the means of the last and of the second quarter: at first, buffers grow to the
/// size that they need.
fn growth(samples: &[Sample], value: impl Fn(&Sample) -> f64) -> f64 {
    let quarter = samples.len() / 4;
    let mean = |part: &[Sample]| part.iter().map(&value).sum::<f64>() / part.len() as f64;
    mean(&samples[samples.len() - quarter..]) - mean(&samples[quarter..2 * quarter])
}

/// Bytes of both logs.
fn log_byte(relay: &Aggregation) -> f64 {
    let folders = ["collector-log", "head-log"].map(|name| relay.folder.path().join(name));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap());
    // Segments are removed meanwhile.
    files.filter_map(|file| Some(file.ok()?.metadata().ok()?.len() as f64)).sum()
}
