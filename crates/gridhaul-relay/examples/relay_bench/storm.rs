//! A reconnect storm: many meters connect within a second, as after an outage of the network.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use gridhaul_linux::{EventFlags, Poll, begin_connect};
use rustix::net::{Shutdown, shutdown};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Result;
use crate::aggregation::{Aggregation, Options};
use crate::kernel::Counters;
use crate::machine::Machine;
use crate::process::cpu_s;

const METERS: usize = 10_000;

/// Repetitions: a single storm depends on what else the machine does.
const ROUNDS: usize = 3;

/// A connection of the storm.
struct Meter {
    socket: Socket,
    begun: Instant,
    is_sent: bool,
}

/// Results at the meters.
#[derive(Default)]
struct Storm {
    failed: usize,
    /// Seconds from the begin of the storm until the last connection was established.
    established_s: f64,
    /// Seconds from the start of each connection until its FIN was answered.
    served_s: Vec<f64>,
    /// Seconds until the last FIN was answered.
    seconds: f64,
}

/// Each meter sends a message and FIN. The result is the longest time of all rounds until the last
/// FIN was answered: everything is stored.
pub(crate) fn run() -> Result {
    let mut longest: f64 = 0.0;
    for _ in 0..ROUNDS {
        let relay = Aggregation::start("local", Options::default());
        let process = relay.collector.id();
        let machine = Machine::observe(File::create(relay.folder.path().join("machine")).unwrap());
        let (cpu, counters, begun) = (cpu_s(process), Counters::read(), Instant::now());
        let mut storm = connect_all(relay.meters);
        let delay = machine.delay_since(begun).as_secs_f64();
        storm.served_s.sort_by(f64::total_cmp);
        let (served, failed) = (storm.served_s.len(), storm.failed);
        eprintln!(
            "{METERS} connections within 1 s: {served} stored and answered, {failed} failed, \
             after {:.2} s",
            storm.seconds
        );
        if served > 0 {
            let [median, most, last] =
                [served / 2, served * 99 / 100, served - 1].map(|index| storm.served_s[index]);
            eprintln!(
                "  a connection took {:.0} ms (median), {:.0} ms (99 %), {:.0} ms (longest); the \
                 last was established after {:.2} s",
                median * 1e3,
                most * 1e3,
                last * 1e3,
                storm.established_s
            );
        }
        eprintln!(
            "  the collector used {:.2} s of CPU time; the machine delayed a sleep and fdatasync \
             of another file by at most {:.0} ms; kernel: {}",
            cpu_s(process) - cpu,
            delay * 1e3,
            Counters::read().since(&counters)
        );
        longest = longest.max(if failed == 0 { storm.seconds } else { f64::INFINITY });
    }
    Result { name: "load-reconnect-storm".to_owned(), value: longest, unit: "s", limit: 3.0 }
}

fn connect_all(address: SocketAddr) -> Storm {
    let mut poll = Poll::new().unwrap();
    let mut meters: BTreeMap<usize, Meter> = BTreeMap::new();
    let mut storm = Storm::default();
    let (begun, mut next) = (Instant::now(), 0);
    while storm.served_s.len() + storm.failed < METERS {
        let due = (begun.elapsed().as_secs_f64() * METERS as f64) as usize;
        while next < METERS.min(due + 1) {
            let socket =
                Socket::new(Domain::IPV4, Type::STREAM.nonblocking(), Some(Protocol::TCP)).unwrap();
            let now = Instant::now();
            begin_connect(&socket, address).unwrap();
            let flags = EventFlags::OUT | EventFlags::IN | EventFlags::ET;
            poll.watch(&socket, next as u64, flags).unwrap();
            meters.insert(next, Meter { socket, begun: now, is_sent: false });
            next += 1;
        }
        for event in poll.wait::<256>(Duration::from_millis(1)).unwrap() {
            let (data, flags) = (event.data, event.flags);
            let index = data.u64() as usize;
            let Some(meter) = meters.get_mut(&index) else { continue };
            if !meter.is_sent && flags.contains(EventFlags::OUT) {
                meter.is_sent = true;
                let sent = meter.socket.write(&[b'x'; 200]).is_ok();
                let _ = shutdown(&meter.socket, Shutdown::Write);
                if sent {
                    storm.established_s = begun.elapsed().as_secs_f64();
                    continue;
                }
            }
            match meter.socket.read(&mut [0]) {
                Ok(0) => storm.served_s.push(meter.begun.elapsed().as_secs_f64()),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
                _ => storm.failed += 1,
            }
            meters.remove(&index);
        }
    }
    storm.seconds = begun.elapsed().as_secs_f64();
    storm
}
