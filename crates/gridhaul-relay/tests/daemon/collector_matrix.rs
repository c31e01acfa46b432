//! The matrix of ends of connections between a meter and a TCP server, with a collector and a head
//! between both.
//!
//! The cases are those of `split`, with two differences. A collector with a durability tier accepts
//! data while the server is down, so that the meter is not reset: the data arrives when the server
//! is back. And data that has reached the tier before the meter resets its connection arrives
//! before the reset.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener};
use std::thread;
use std::time::Duration;

use gridhaul_testing::free_address;

use crate::cases::connect;
use crate::matrix::{self, CASES, Case};
use crate::relays::{Relays, Role};

fn relays(tier: &str, server: std::net::SocketAddr) -> Relays {
    let deliver = format!("deliver.tcp.server = \"{server}\"\ndeliver.tcp.identity = \"none\"");
    let mut relays = Relays::with_delivery(tier, "replies = true", &deliver);
    relays.start(Role::Head);
    relays.start(Role::Collector);
    relays
}

fn pass(tier: &str, case: Case) -> Result<(), String> {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let relays = relays(tier, server.local_addr().unwrap());
    // After a reset of the server, the head may deliver the last bytes over another connection.
    let listener = server.try_clone().unwrap();
    matrix::run(case, relays.meters, Some(listener))
        .map_err(|error| format!("{tier}: {case}: {error}"))?;
    relays.wait_until("both relays have forgotten the meter", |relays| {
        relays.ask(Role::Collector, "/status").is_some_and(|status| status["meters_count"] == 0)
    });
    relays.wait_until_delivered();
    Ok(())
}

#[test]
fn every_end_passes_collector_and_head() {
    let mut failures = Vec::new();
    for tier in ["memory", "local", "server"] {
        let cases = CASES.into_iter().filter(|case| *case != Case::UpstreamDown);
        let threads: Vec<_> = cases.map(|case| thread::spawn(move || pass(tier, case))).collect();
        failures.extend(threads.into_iter().filter_map(|case| case.join().unwrap().err()));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn a_meter_that_closes_while_the_server_is_down_loses_nothing() {
    for tier in ["memory", "local", "server"] {
        let address = free_address();
        let relays = relays(tier, address);
        let mut meter = connect(&relays);
        let text = "line\n".repeat(16_000);
        meter.write_all(text.as_bytes()).unwrap();
        meter.shutdown(Shutdown::Write).unwrap();
        relays.wait_until_received(text.len() as u64);
        // No FIN: the server has not ended its direction.
        meter.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
        let kind = meter.read(&mut [0]).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut), "{tier}: {kind:?}");
        let server = TcpListener::bind(address).unwrap();
        let (mut accepted, _) = server.accept().unwrap();
        let mut found = String::new();
        accepted.read_to_string(&mut found).unwrap();
        assert!(found == text, "{tier}: {} of {} bytes", found.len(), text.len());
        accepted.write_all(b"reply\n").unwrap();
        drop(accepted);
        meter.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut reply = String::new();
        meter.read_to_string(&mut reply).unwrap();
        assert_eq!(reply, "reply\n", "{tier}");
    }
}

#[test]
fn a_pause_after_fin_ends_no_message() {
    let mut relays = Relays::new("server", "");
    let path = relays.path("collector.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("framing.delimiter.byte = 10", "framing.idle_gap = \"20 ms\""),
    )
    .unwrap();
    relays.start(Role::Collector);
    let mut meter = connect(&relays);
    meter.write_all(b"message").unwrap();
    meter.shutdown(Shutdown::Write).unwrap();
    relays.wait_until_received(7);
    // FIN is not answered before the head has the data: the pause passes meanwhile.
    thread::sleep(Duration::from_millis(200));
    relays.start(Role::Head);
    assert_eq!(meter.read(&mut [0]).unwrap(), 0);
    relays.wait_until_delivered();
    let lines = std::fs::read_to_string(relays.messages()).unwrap();
    let last = lines.lines().last().unwrap();
    assert!(last.contains("\"event\":\"eof\""), "nothing follows the end of the stream:\n{lines}");
}
