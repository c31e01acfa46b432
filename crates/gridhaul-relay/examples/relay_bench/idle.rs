//! Memory of an idle connection: the difference of user-space memory, after one message on each
//! connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::Result;
use crate::aggregation::{Aggregation, Options};
use crate::messages::MESSAGE;
use crate::process::{pss_byte, with_children};
use crate::proxies::{Kind, Proxy, listen};
use crate::{peers, relay};

const CONNECTIONS: usize = 4_000;

/// socat has a process for each connection.
const SOCAT_CONNECTIONS: usize = 100;

pub(crate) fn run() -> Vec<Result> {
    eprintln!("\nuser-space memory of an idle connection, after a message of 200 bytes");
    let mut results = Vec::new();
    for tier in ["memory", "local"] {
        let bytes = collector(tier);
        eprintln!("  {:<20}{bytes:>10.0} B", format!("collector, {tier}"));
        results.push(limited(&format!("idle-collector-{tier}"), bytes));
    }
    let split = proxy(Kind::Split, CONNECTIONS);
    eprintln!("  {:<20}{split:>10.0} B", "split");
    for kind in peers() {
        let count = if kind == Kind::Socat { SOCAT_CONNECTIONS } else { CONNECTIONS };
        let bytes = proxy(kind, count);
        let ratio = bytes / split.max(1.0);
        eprintln!("  {:<20}{bytes:>10.0} B  {ratio:.1} times split", kind.name());
    }
    results.push(limited("idle-split", split));
    results
}

fn limited(name: &str, value: f64) -> Result {
    Result { name: name.to_owned(), value, unit: "B", limit: 400.0 }
}

fn collector(tier: &str) -> f64 {
    let relay = Aggregation::start(tier, Options::default());
    let mut one = TcpStream::connect(relay.meters).unwrap();
    one.write_all(&MESSAGE).unwrap();
    relay.wait("received_byte", 200);
    relay.wait("backlog_byte", 0);
    let before = pss_byte(relay.collector.id());
    let meters: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let mut meter = TcpStream::connect(relay.meters).unwrap();
            meter.write_all(&MESSAGE).unwrap();
            meter
        })
        .collect();
    relay.wait("received_byte", 200 * (CONNECTIONS as u64 + 1));
    relay.wait("backlog_byte", 0);
    (pss_byte(relay.collector.id()) - before) / meters.len() as f64
}

fn proxy(kind: Kind, count: usize) -> f64 {
    let server = listen();
    let proxy = Proxy::start(kind, &relay(), server.local_addr().unwrap(), "");
    let connect = || {
        let mut client = TcpStream::connect(proxy.clients).unwrap();
        client.write_all(&MESSAGE).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        accepted.read_exact(&mut MESSAGE.clone()).unwrap();
        (client, accepted)
    };
    let memory = || with_children(proxy.child.id()).into_iter().map(pss_byte).sum::<f64>();
    let _one = connect();
    let before = memory();
    let connections: Vec<_> = (0..count).map(|_| connect()).collect();
    (memory() - before) / connections.len() as f64
}
