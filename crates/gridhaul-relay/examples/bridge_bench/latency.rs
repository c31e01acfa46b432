//! Time of a small request and its response over one connection.

use std::io::{Read, Write};
use std::thread;
use std::time::Instant;

use anyhow::Result;
use serde_json::{Value, json};

use crate::network::Network;
use crate::{ROUNDS, SUBJECTS, medians};

const BYTES: usize = 64;

/// Exchanges before the measurement, and those that are measured.
const WARM_UP: usize = 500;
const EXCHANGES: usize = 5_000;

/// Median and 99th percentile, in µs.
type Row = [f64; 2];

pub(crate) fn run() -> Result<Vec<Value>> {
    eprintln!("\nround trip of a request and a response of {BYTES} bytes");
    let mut rows: [Vec<Row>; SUBJECTS.len()] = Default::default();
    for _ in 0..ROUNDS {
        for (subject, rows) in SUBJECTS.into_iter().zip(&mut rows) {
            rows.push(measure(subject)?);
        }
    }
    let result = |(subject, rows): (&str, &Vec<Row>)| {
        let [p50, p99] = medians(rows);
        eprintln!("  {subject:>8}  {p50:>6.1} µs (median)  {p99:>6.1} µs (99 %)");
        json!({ "subject": subject, "p50_us": p50, "p99_us": p99 })
    };
    Ok(SUBJECTS.into_iter().zip(&rows).map(result).collect())
}

fn measure(subject: &str) -> Result<Row> {
    let network = Network::new(subject, true)?;
    let (mut client, mut server) = network.connect()?;
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
    }
    let echo = thread::spawn(move || {
        let mut message = [0; BYTES];
        while server.read_exact(&mut message).is_ok() && server.write_all(&message).is_ok() {}
    });
    let mut message = [7; BYTES];
    let mut times = Vec::with_capacity(WARM_UP + EXCHANGES);
    for _ in 0..WARM_UP + EXCHANGES {
        let begun = Instant::now();
        client.write_all(&message)?;
        client.read_exact(&mut message)?;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    drop(client);
    echo.join().expect("the server does not panic");
    let times = &mut times[WARM_UP..];
    times.sort_by(f64::total_cmp);
    Ok([times[EXCHANGES / 2], times[EXCHANGES * 99 / 100]])
}
