//! A reconnection storm of meters with TLS at a real collector, over a network that
//! `gridhaul emu up` has built: `cargo xtask bench storm`.
//!
//! The program runs in the namespace of the meters, which have consecutive addresses, and starts
//! the collector in the namespace of the head. One line of JSON on standard output has the results.

#![expect(clippy::disallowed_methods, reason = "connections are measured in real time")]

#[path = "../../tests/daemon/certificates.rs"]
mod certificates;
mod collector;
mod meter;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use gridhaul_linux::{EventFlags, Poll};
use serde_json::json;

use collector::Collector;
use meter::{Meter, Progress};

/// Time between two looks at the reports that have arrived: no event notifies of an
/// acknowledgement.
const LOOK: Duration = Duration::from_millis(20);

/// Pauses of a device after failed attempts: the defaults of `reconnect` in scenarios.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

#[derive(Parser)]
struct Arguments {
    /// Program of the relay
    relay: String,
    /// Namespace of the collector
    namespace: String,
    /// Address of the collector in it
    server: Ipv4Addr,
    /// Address of the first meter
    first: Ipv4Addr,
    /// Number of meters
    count: u32,
    /// Time in which all connect, in seconds
    spread: f64,
    /// Repetitions: a single storm depends on which packets find the queue full
    rounds: u32,
}

/// Results at the meters, in seconds since the first connected.
#[derive(Default)]
struct Storm {
    arrived_s: Vec<f64>,
    failed: u32,
}

fn main() {
    gridhaul_linux::raise_open_file_limit();
    let arguments = Arguments::parse();
    let rounds: Vec<_> = (0..arguments.rounds)
        .map(|_| {
            let collector =
                Collector::start(&arguments.relay, &arguments.namespace, arguments.server);
            let mut storm = run(&arguments, &collector);
            storm.arrived_s.sort_by(f64::total_cmp);
            let last = storm.arrived_s.last().copied();
            json!({ "last_s": last, "failed": storm.failed, "cpu_s": collector.cpu_s(),
                    "certificate_byte": collector.certificate_byte })
        })
        .collect();
    println!("{}", json!(rounds));
}

/// Connects the meters at equal intervals, until the report of the last has arrived.
fn run(arguments: &Arguments, collector: &Collector) -> Storm {
    let mut poll = Poll::new().unwrap();
    let mut meters: BTreeMap<u32, Meter> = BTreeMap::new();
    // Attempts that are due, by time and meter, with the next pause.
    let mut due: BTreeMap<(Duration, u32), Duration> = (0..arguments.count)
        .map(|number| {
            let share = f64::from(number) / f64::from(arguments.count);
            ((Duration::from_secs_f64(arguments.spread * share), number), PAUSE)
        })
        .collect();
    let mut storm = Storm::default();
    let mut looked_at = Duration::ZERO;
    let begun = Instant::now();
    while storm.arrived_s.len() < arguments.count as usize {
        while let Some(next) = due.first_entry().filter(|next| next.key().0 <= begun.elapsed()) {
            let ((_, number), pause) = next.remove_entry();
            let own = Ipv4Addr::from_bits(arguments.first.to_bits() + number);
            let server = SocketAddr::new(arguments.server.into(), collector::PORT);
            let meter = Meter::connect(own, server, Arc::clone(&collector.client), pause);
            let flags = EventFlags::OUT | EventFlags::IN | EventFlags::ET;
            poll.watch(&meter.socket, number.into(), flags).unwrap();
            meters.insert(number, meter);
        }
        if begun.elapsed() - looked_at > LOOK {
            looked_at = begun.elapsed();
            let arrived = meters.values_mut().filter_map(|meter| meter.arrives().then_some(()));
            storm.arrived_s.extend(arrived.map(|()| looked_at.as_secs_f64()));
        }
        for event in poll.wait::<256>(Duration::from_millis(1)).unwrap() {
            let number = event.data.u64() as u32;
            let Some(meter) = meters.get_mut(&number) else { continue };
            match meter.advance() {
                Progress::Waits => continue,
                Progress::Closed if meter.has_arrived => {}
                Progress::Closed => storm.arrived_s.push(begun.elapsed().as_secs_f64()),
                // The report has arrived: its answer is lost.
                Progress::Failed if meter.has_arrived => {}
                Progress::Failed => {
                    storm.failed += 1;
                    let pause = meter.pause;
                    due.insert((begun.elapsed() + pause, number), (pause * 2).min(PAUSE_MAX));
                }
            }
            meters.remove(&number);
        }
    }
    storm
}
