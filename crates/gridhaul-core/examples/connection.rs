//! Drives two TCP endpoints over a lossy link without simulator, sockets or clock: the smallest
//! event loop around the state machines of this crate.
//!
//! `cargo run --release -p gridhaul-core --example connection`

use std::sync::Arc;

use gridhaul_core::link::{LinkDirection, LinkRandomStreams, TransitOutcome};
use gridhaul_core::tcp::{Connection, StackParams};
use gridhaul_scenario::scenario::{Direction, Profile, Scenario, Stack};
use gridhaul_scenario::units::Instant;

/// Bytes that the client sends.
const SIZE: u64 = 1_000_000;

/// The link as in a scenario file, which gives its keys their defaults.
const LINK: &str = r#"
title = "one link"
duration = "1 s"
[node]
client = {}
server = {}
[link.line]
from = "client"
to = "server"
both = { rate = "1 Mbit/s", delay = "40 ms", loss = { bernoulli = "2 %" } }
[flow.unused]
from = "client"
to = "server"
load = "bulk"
"#;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = Scenario::from_toml(LINK, "line.toml")?;
    let line = &scenario.link["line"];
    let direction = |keys: Option<&Direction>, name: &str| {
        // Each direction has random streams of its own: the same seed gives the same losses.
        LinkDirection::new(
            keys.expect("the link has both directions"),
            LinkRandomStreams::named(1, 0, name, 0),
        )
    };
    let mut links =
        [direction(line.forward(), "line.forward"), direction(line.reverse(), "line.reverse")];
    let stack = Stack { profile: Profile::Linux, ..Stack::default() };
    let params = Arc::new(StackParams::resolve(&stack));
    let mut ends = [Connection::connect(Arc::clone(&params), 1), Connection::listen(params, 2)];
    ends[0].write(SIZE);
    ends[0].close();

    let mut now = Instant::ZERO;
    while ends[1].receiver().delivered() < SIZE {
        // After every `handle_*` call, an endpoint is polled until it has nothing to send.
        for (end, link) in ends.iter_mut().zip(&mut links) {
            while let Some(segment) = end.poll_transmit(now) {
                // A full queue drops the segment; the endpoint finds out like any sender.
                let _ = link.handle_packet(now, segment.wire_bytes(), (segment, ()));
            }
        }
        // Virtual time jumps to the next event: a packet that leaves a link, or a timer.
        let arrivals = links.iter().map(LinkDirection::next_deadline);
        let timers = ends.iter().map(Connection::next_deadline);
        now = arrivals.chain(timers).min().expect("there are two endpoints").max(now);
        for (from, link) in links.iter_mut().enumerate() {
            while let Some(transit) = link.poll_output(now) {
                if transit.outcome == TransitOutcome::Arrived {
                    ends[1 - from].handle_segment(now, &transit.payload.0);
                }
            }
        }
        for end in &mut ends {
            if end.next_deadline() <= now {
                end.handle_timeout(now);
            }
        }
    }
    let stats = ends[0].sender().expect("the client sends").stats();
    println!(
        "{SIZE} bytes in {:.2} s, {} segments retransmitted",
        now.as_secs_f64(),
        stats.retransmissions
    );
    Ok(())
}
