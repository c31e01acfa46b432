//! CPU time of bulk data through a proxy.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

use gridhaul_linux::available_congestion_control;
use rustix::net::{RecvFlags, recv};
use rustix::pipe::{SpliceFlags, fcntl_setpipe_size, pipe, splice};

use crate::Result;
use crate::process::{cpu_s, used_by_this_thread, wake_ups, with_children};
use crate::proxies::{Kind, Proxy, listen};
use crate::{peers, relay};

/// Bytes of a round.
const BYTES: usize = 2_000_000_000;

const ROUNDS: usize = 5;

/// Size of the pipe of the loop that only moves data.
const PIPE: usize = 1 << 20;

/// Measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A proxy with keys of its configuration.
    Proxy(Kind, &'static str),
    /// A loop of splice(2) on two sockets that block: what the kernel needs for its work on both
    /// connections, which it does for the most part in the system calls of the proxy.
    Loop,
}

/// A round.
#[derive(Debug, Clone, Copy)]
struct Round {
    cpu_s: f64,
    wake_ups: u64,
    /// Duration of the transfer.
    seconds: f64,
}

impl Round {
    fn cpu_s_per_gb(&self) -> f64 {
        self.cpu_s / (BYTES as f64 / 1e9)
    }
}

pub(crate) fn run() -> Vec<Result> {
    eprintln!(
        "\nbulk data: CPU time of the proxy for 1 GB, rate, data for each wake-up (median of \
         {ROUNDS} rounds)"
    );
    let mut subjects = vec![
        Subject::Proxy(Kind::Split, ""),
        Subject::Proxy(Kind::Split, "pipes = 0"),
        Subject::Loop,
    ];
    if available_congestion_control().iter().any(|name| name == "bbr") {
        subjects.push(Subject::Proxy(Kind::Split, "server.congestion_control = \"bbr\""));
    }
    subjects.extend(peers().into_iter().map(|kind| Subject::Proxy(kind, "")));
    let mut rounds = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for (subject, found) in subjects.iter().zip(&mut rounds) {
            found.push(subject.measure());
        }
    }
    let mut split = 0.0;
    for (subject, found) in subjects.iter().zip(&mut rounds) {
        found.sort_by(|a, b| a.cpu_s.total_cmp(&b.cpu_s));
        let round = found[ROUNDS / 2];
        let cpu = round.cpu_s_per_gb();
        if split == 0.0 {
            split = cpu;
        }
        let (low, high) = (found[0].cpu_s_per_gb(), found[ROUNDS - 1].cpu_s_per_gb());
        let rate = BYTES as f64 * 8e-9 / round.seconds;
        let kilobytes = BYTES as f64 / 1e3 / round.wake_ups.max(1) as f64;
        eprintln!(
            "  {:<38}{cpu:>8.3} s/GB ({low:.3} to {high:.3}) {rate:>6.1} Gbit/s {kilobytes:>7.0} \
             kB  {:.1} times split",
            subject.name(),
            cpu / split
        );
    }
    vec![Result { name: "bulk-split".to_owned(), value: split, unit: "s/GB", limit: 0.15 }]
}

impl Subject {
    fn name(self) -> String {
        match self {
            Self::Proxy(kind, "") => kind.name().to_owned(),
            Self::Proxy(kind, keys) => format!("{}, {}", kind.name(), keys.replace('"', "")),
            Self::Loop => "loop of splice(2)".to_owned(),
        }
    }

    fn measure(self) -> Round {
        let server = listen();
        match self {
            Self::Proxy(kind, keys) => {
                let proxy = Proxy::start(kind, &relay(), server.local_addr().unwrap(), keys);
                let processes = || with_children(proxy.child.id()).into_iter();
                let cpu = || processes().map(cpu_s).sum::<f64>();
                let woken = || processes().map(wake_ups).sum::<u64>();
                let mut before = (0.0, 0);
                let seconds = transfer(proxy.clients, &server, || before = (cpu(), woken()));
                Round { cpu_s: cpu() - before.0, wake_ups: woken() - before.1, seconds }
            }
            Self::Loop => {
                let (clients, target) = (listen(), server.local_addr().unwrap());
                let address = clients.local_addr().unwrap();
                let thread = thread::spawn(move || move_all(&clients, target));
                let seconds = transfer(address, &server, || {});
                let (cpu_s, wake_ups) = thread.join().unwrap();
                Round { cpu_s, wake_ups, seconds }
            }
        }
    }
}

/// Sends bulk data, after a call when both connections are open. Returns the duration in seconds.
fn transfer(clients: SocketAddr, server: &TcpListener, opened: impl FnOnce()) -> f64 {
    let mut client = TcpStream::connect(clients).unwrap();
    client.write_all(b"?").unwrap();
    let (mut accepted, _) = server.accept().unwrap();
    accepted.read_exact(&mut [0]).unwrap();
    opened();
    let begun = Instant::now();
    let writer = thread::spawn(move || {
        let block = vec![b'x'; 256 << 10];
        let mut sent = 0;
        while sent < BYTES {
            sent += client.write(&block[..block.len().min(BYTES - sent)]).unwrap();
        }
        // What waits for more data must not wait for ever.
        client.shutdown(Shutdown::Write).unwrap();
        client
    });
    let mut buffer = vec![0; 1 << 20];
    let mut received = 0;
    while received < BYTES {
        // The receiver discards: it must not compete for the processors.
        received += recv(&accepted, &mut buffer[..], RecvFlags::TRUNC).unwrap().1;
    }
    let _client = writer.join().unwrap();
    begun.elapsed().as_secs_f64()
}

/// Moves the data of one client to the server, until FIN. Returns CPU seconds and wake-ups of this
/// thread.
fn move_all(clients: &TcpListener, server: SocketAddr) -> (f64, u64) {
    let (client, _) = clients.accept().unwrap();
    let server = TcpStream::connect(server).unwrap();
    let (read, write) = pipe().unwrap();
    fcntl_setpipe_size(&write, PIPE).unwrap();
    let move_some = || {
        let length = splice(&client, None, &write, None, PIPE, SpliceFlags::MOVE).unwrap();
        let mut rest = length;
        while rest > 0 {
            rest -= splice(&read, None, &server, None, rest, SpliceFlags::MOVE).unwrap();
        }
        length
    };
    // The first byte is not bulk data.
    move_some();
    let before = used_by_this_thread();
    while move_some() > 0 {}
    let after = used_by_this_thread();
    (after.0 - before.0, after.1 - before.1)
}
