//! CPU time of bulk data through a proxy.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Instant;

use rustix::net::{RecvFlags, recv};

use crate::Result;
use crate::process::{cpu_s, with_children};
use crate::proxies::{Kind, Proxy, listen};
use crate::{peers, relay};

/// Bytes of a round.
const BYTES: usize = 2_000_000_000;

const ROUNDS: usize = 3;

pub(crate) fn run() -> Vec<Result> {
    eprintln!("\nbulk data: CPU time of the proxy for 1 GB, and rate (median of {ROUNDS} rounds)");
    let mut subjects = vec![(Kind::Split, ""), (Kind::Split, "pipes = 0")];
    subjects.extend(peers().into_iter().map(|kind| (kind, "")));
    let mut rounds = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for ((kind, keys), found) in subjects.iter().zip(&mut rounds) {
            found.push(transfer(*kind, keys));
        }
    }
    let mut split = 0.0;
    for ((kind, keys), found) in subjects.iter().zip(&mut rounds) {
        found.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (cpu, rate) = found[ROUNDS / 2];
        if split == 0.0 {
            split = cpu;
        }
        let name = format!("{} {keys}", kind.name());
        let (low, high, ratio) = (found[0].0, found[ROUNDS - 1].0, cpu / split);
        eprintln!(
            "  {name:<20}{cpu:>8.3} s/GB ({low:.3} to {high:.3}) {rate:>6.1} Gbit/s  {ratio:.1} times split"
        );
    }
    vec![Result { name: "bulk-split".to_owned(), value: split, unit: "s/GB", limit: 0.15 }]
}

/// CPU seconds per GB, and Gbit/s.
fn transfer(kind: Kind, keys: &str) -> (f64, f64) {
    let server = listen();
    let proxy = Proxy::start(kind, &relay(), server.local_addr().unwrap(), keys);
    let mut client = TcpStream::connect(proxy.clients).unwrap();
    client.write_all(b"?").unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    accepted.read_exact(&mut [0]).unwrap();
    let cpu = || with_children(proxy.child.id()).into_iter().map(cpu_s).sum::<f64>();
    let (before, begun) = (cpu(), Instant::now());
    let writer = thread::spawn(move || {
        let block = vec![b'x'; 256 << 10];
        let mut sent = 0;
        while sent < BYTES {
            sent += client.write(&block[..block.len().min(BYTES - sent)]).unwrap();
        }
        client
    });
    let mut buffer = vec![0; 1 << 20];
    let mut received = 0;
    while received < BYTES {
        // The receiver discards: it must not compete for the processors.
        received += recv(&accepted, &mut buffer[..], RecvFlags::TRUNC).unwrap().1;
    }
    let _client = writer.join().unwrap();
    let gigabytes = BYTES as f64 / 1e9;
    ((cpu() - before) / gigabytes, 8.0 * gigabytes / begun.elapsed().as_secs_f64())
}
