//! Memory of an idle connection, of 100,000 of them, after 200 bytes in one direction.
//!
//! The hosts are frames that this program writes: as many connections of the kernel would take
//! several times the memory that is measured. `split` needs hosts that read its sequence numbers.

use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use gridhaul_core::wire::EtherType;
use gridhaul_linux::PacketSocket;
use serde_json::{Value, json};

use crate::frames;
use crate::network::Network;
use crate::process::pss_byte;

const MODES: [&str; 4] = ["reflect", "spoof", "snoop", "ack"];

const CONNECTIONS: u32 = 100_000;

/// Connections whose frames are sent without a pause, and the pause. The buffer of the bridge holds
/// some thousand frames.
const GROUP: u32 = 1_000;
const PAUSE: Duration = Duration::from_millis(25);

/// Longest time until the bridge has handled all frames.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<Vec<Value>> {
    eprintln!("\nuser-space memory of an idle connection, of {CONNECTIONS}");
    let mut results = Vec::new();
    for mode in MODES {
        let byte = measure(mode)?;
        eprintln!("  {mode:>8}  {byte:>6.0} B");
        results.push(json!({ "subject": mode, "connections": CONNECTIONS, "idle_byte": byte }));
    }
    Ok(results)
}

fn measure(mode: &str) -> Result<f64> {
    let network = Network::new(mode, true)?;
    let open = || PacketSocket::open("eth0", EtherType::IPV4.0);
    let hosts = [network.left.enter(open)??, network.right.enter(open)??];
    let process = network.relay_process().context("the subject is a relay")?;
    // Buffers and tables get their first memory.
    open_all(&hosts, 0..GROUP)?;
    await_all(&network, GROUP)?;
    let before = pss_byte(process);
    for first in (GROUP..CONNECTIONS + GROUP).step_by(GROUP as usize) {
        open_all(&hosts, first..first + GROUP)?;
    }
    await_all(&network, CONNECTIONS + GROUP)?;
    Ok((pss_byte(process) - before) / f64::from(CONNECTIONS))
}

/// Opens connections, sends data over each of them, and acknowledges the data.
fn open_all(hosts: &[PacketSocket; 2], connections: Range<u32>) -> Result<()> {
    for step in frames::steps() {
        let frames: Vec<_> = connections.clone().map(|number| step.frame(number)).collect();
        let mut frames: Vec<_> = frames.iter().map(Vec::as_slice).collect();
        while !frames.is_empty() {
            let sent = hosts[step.host].send(&frames)?;
            frames.drain(..sent);
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

/// Waits until the bridge has this number of connections, of which none has bytes at risk.
fn await_all(network: &Network, connections: u32) -> Result<()> {
    let begun = Instant::now();
    loop {
        let status = network.status()?;
        let count = |key: &str| status[key].as_u64();
        if count("connections_count") == Some(u64::from(connections))
            && count("bytes_at_risk_byte") == Some(0)
        {
            let dropped = status["dropped_count"].as_object().context("no dropped_count")?;
            ensure!(dropped.values().all(|count| count == 0), "frames were dropped: {dropped:?}");
            return Ok(());
        }
        ensure!(begun.elapsed() < LIMIT, "the bridge does not serve all connections: {status}");
        thread::sleep(Duration::from_millis(20));
    }
}
