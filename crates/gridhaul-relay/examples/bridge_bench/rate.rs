//! Rate and CPU time of one bulk transfer.
//!
//! Packets are counted without offloads, where each frame is a packet of the MTU or an
//! acknowledgement. The kernel charges the processing of a virtual link to the thread that sends:
//! the CPU time of all threads therefore includes the TCP of both hosts, for each subject alike.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::network::Network;
use crate::process::cpu_s;
use crate::{ROUNDS, SUBJECTS, medians};

/// Time until windows have their final size, and time of the measurement.
const WARM_UP: Duration = Duration::from_millis(500);
const DURATION: Duration = Duration::from_millis(1_500);

/// Rate in Mbit/s, packets per second, and CPU seconds of the relay and of all threads, each in a
/// second of the transfer.
type Row = [f64; 4];

pub(crate) fn run() -> Result<Vec<Value>> {
    let mut results = Vec::new();
    for has_offloads in [true, false] {
        eprintln!("\n{}, one connection", if has_offloads { "offloads" } else { "no offloads" });
        let mut rows: [Vec<Row>; SUBJECTS.len()] = Default::default();
        for _ in 0..ROUNDS {
            for (subject, rows) in SUBJECTS.into_iter().zip(&mut rows) {
                rows.push(measure(subject, has_offloads)?);
            }
        }
        for (subject, rows) in SUBJECTS.into_iter().zip(&rows) {
            results.push(result(subject, has_offloads, medians(rows)));
        }
    }
    Ok(results)
}

fn result(subject: &str, has_offloads: bool, [rate, packets, relay, all]: Row) -> Value {
    let byte_per_s = rate * 1e6 / 8.0;
    let [relay_gb, all_gb] = [relay, all].map(|cpu| cpu / byte_per_s * 1e9);
    eprint!(
        "  {subject:>8}  {rate:>6.0} Mbit/s  CPU s/GB: relay {relay_gb:>5.2}, all {all_gb:>5.2}"
    );
    // The kernel's bridge has no thread of its own.
    let has_packets = !has_offloads && relay > 0.0;
    let packet_us = has_packets.then(|| relay / packets * 1e6);
    match packet_us {
        Some(us) => eprintln!("  {us:>5.2} µs per packet, {:>7.0} packets/s and core", 1e6 / us),
        None => eprintln!(),
    }
    json!({
        "subject": subject,
        "has_offloads": has_offloads,
        "rate_mbit_per_s": rate,
        "relay_cpu_s_per_gb": relay_gb,
        "all_cpu_s_per_gb": all_gb,
        "packet_cpu_us": packet_us,
    })
}

fn measure(subject: &str, has_offloads: bool) -> Result<Row> {
    let network = Network::new(subject, has_offloads)?;
    let (mut client, mut server) = network.connect()?;
    let received = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&received);
    let receiver = thread::spawn(move || {
        let mut buffer = vec![0; 1 << 20];
        while let Ok(length @ 1..) = server.read(&mut buffer) {
            count.fetch_add(length as u64, Ordering::Relaxed);
        }
    });
    let stop = client.try_clone()?;
    let sender = thread::spawn(move || {
        let data = vec![7; 1 << 18];
        while client.write_all(&data).is_ok() {}
    });
    thread::sleep(WARM_UP);
    let own = std::process::id();
    let state = || -> Result<[f64; 4]> {
        let bytes = received.load(Ordering::Relaxed) as f64;
        let relay = network.relay_cpu_s();
        Ok([bytes, network.frames()? as f64, relay, relay + cpu_s(own)])
    };
    let (before, begun) = (state()?, Instant::now());
    thread::sleep(DURATION);
    let (after, seconds) = (state()?, begun.elapsed().as_secs_f64());
    stop.shutdown(std::net::Shutdown::Both)?;
    sender.join().expect("the sender does not panic");
    // The receiver ends with FIN, or with the network.
    drop(network);
    drop(receiver);
    let [bytes, frames, relay, all] =
        std::array::from_fn(|index| (after[index] - before[index]) / seconds);
    ensure!(bytes > 0.0, "{subject}: no bytes arrive");
    Ok([bytes * 8.0 / 1e6, frames, relay, all])
}
