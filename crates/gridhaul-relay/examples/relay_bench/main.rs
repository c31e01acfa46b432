//! Measurements of the relay beside comparable programs, on loopback: `cargo xtask bench relay`.
//!
//! The only argument is a list of measurements, separated by commas; `sustained` takes its duration
//! in seconds (`sustained=600`). Tables go to standard error, results with a limit to standard
//! output: one JSON array with `line` and `passed`. The program of the relay is in the environment
//! variable `GRIDHAUL_RELAY`, and a library that makes fdatasync(2) take 4 ms
//! (`bench/relay/slow_disk.c`) in `GRIDHAUL_SLOW_DISK`.

#![expect(clippy::disallowed_methods, reason = "programs are measured in real time")]

mod aggregation;
mod bulk;
#[path = "../../tests/daemon/certificates.rs"]
mod certificates;
mod idle;
mod idle_tls;
mod kernel;
mod load;
#[path = "../../tests/daemon/machine.rs"]
mod machine;
mod messages;
mod network;
mod process;
#[path = "../../tests/split/proxies.rs"]
#[expect(dead_code, reason = "tests also reload proxies")]
mod proxies;

mod storm;
mod sustained;

use std::path::PathBuf;

use proxies::Kind;
use serde_json::{Value, json};

/// A measured value with its limit.
pub(crate) struct Result {
    pub name: String,
    pub value: f64,
    pub unit: &'static str,
    pub limit: f64,
}

/// The program of the relay.
pub(crate) fn relay() -> PathBuf {
    PathBuf::from(std::env::var_os("GRIDHAUL_RELAY").expect("GRIDHAUL_RELAY is the program"))
}

/// The peers that are installed; others are named.
pub(crate) fn peers() -> Vec<Kind> {
    let peers = [Kind::Haproxy, Kind::Nginx, Kind::Socat];
    for missing in peers.iter().filter(|kind| !kind.is_installed()) {
        eprintln!("{} is not installed", missing.name());
    }
    peers.into_iter().filter(|kind| kind.is_installed()).collect()
}

fn main() {
    gridhaul_linux::raise_open_file_limit();
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let results = network::run(|| wanted.split(',').flat_map(measure).collect::<Vec<_>>());
    let results: Vec<Value> = results
        .iter()
        .map(|result| {
            let Result { name, value, unit, limit } = result;
            let line = format!("relay-{name}: {value:.3} {unit} (limit {limit} {unit})");
            json!({ "line": line, "passed": value <= limit })
        })
        .collect();
    println!("{}", Value::from(results));
}

/// Makes a measurement. `sustained` has its duration in seconds after `=`.
fn measure(measurement: &str) -> Vec<Result> {
    let (name, seconds) = measurement.split_once('=').unwrap_or((measurement, ""));
    match name {
        "idle" => idle::run(),
        "idle-tls" => idle_tls::run(),
        "messages" => messages::run(),
        "bulk" => bulk::run(),
        "load" => load::run(),
        "storm" => vec![storm::run()],
        "sustained" => sustained::run(seconds.parse().expect("a duration in seconds")),
        _ => panic!("there is no measurement {name:?}"),
    }
}
