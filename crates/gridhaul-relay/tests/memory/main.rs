//! Memory of the connections of a bridge, in a process that does nothing else: the proportional set
//! size grows with each connection.

#![cfg(target_os = "linux")]

mod frames;

use std::fs;

use gridhaul_relay::packet::{BridgePort, Engine, EngineSettings, Frame, Handling, Rule};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::units::{Duration, Instant};

use frames::Step;

const CONNECTIONS: u32 = 5_000;

/// Environment variable with another number of connections.
const CONNECTIONS_VARIABLE: &str = "GRIDHAUL_CONNECTIONS";

/// Connections that carry more data after that.
const BUSY: u32 = 1_000;

/// Largest memory of an idle connection in each mode.
const LIMITS: [(&str, f64); 4] =
    [("reflect", 1_500.0), ("spoof", 1_250.0), ("snoop", 900.0), ("ack", 800.0)];

/// Largest memory of an idle connection that data in the other direction adds, and a bulk transfer.
const REPLY_LIMIT: f64 = 700.0;
const TRANSFER_LIMIT: f64 = 250.0;

/// Bytes of this process in memory (proc(5)).
fn memory() -> f64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1_024.0
}

fn engine(mode: &str) -> Engine {
    let toward = if matches!(mode, "snoop" | "ack") { "toward = \"right\"\n" } else { "" };
    let text = format!(
        "name = \"test\"\n[bridge]\ninterfaces = [\"left\", \"right\"]\nconnections = 1000000\n\
         [bridge.rule.all]\nmode = \"{mode}\"\n{toward}"
    );
    let config = RelayConfig::from_toml(&text, "relay.toml").unwrap().bridge.unwrap();
    let settings = EngineSettings {
        rules: Rule::all(&config),
        connections: config.connections as usize,
        memory: config.memory,
        idle_timeout: config.idle_timeout,
        mtus: [1_500; 2],
        detects_losses: false,
    };
    Engine::new(settings, || 7)
}

fn open(engine: &mut Engine, number: u32, now: Instant) {
    handle(engine, number, now, frames::steps());
}

fn handle(engine: &mut Engine, number: u32, now: Instant, steps: impl IntoIterator<Item = Step>) {
    for step in steps {
        let from = BridgePort::BOTH[step.host];
        let handling = engine.handle_frame(now, from, &Frame::new(&step.frame(number)));
        assert_eq!(handling, Handling::Handled);
        engine.handle_timeout(now);
        engine.outgoing().clear();
    }
    drop((engine.take_newly_at_risk(), engine.take_no_longer_at_risk()));
}

/// Memory that a connection needs longer than it carries these segments.
fn added_by<S: IntoIterator<Item = Step>>(
    engine: &mut Engine,
    time: Duration,
    steps: impl Fn() -> S,
) -> f64 {
    let before = memory();
    for number in 0..BUSY {
        handle(engine, number, Instant::ZERO + time, steps());
    }
    assert_eq!((engine.totals().at_risk, engine.totals().memory), (0, 0));
    (memory() - before) / f64::from(BUSY)
}

#[test]
fn an_idle_connection_takes_little_memory() {
    let variable = std::env::var(CONNECTIONS_VARIABLE);
    let connections = variable.map_or(CONNECTIONS, |number| number.parse().unwrap());
    // All stay alive: the memory of a discarded engine would be used by the next one.
    let mut engines = LIMITS.map(|(mode, _)| engine(mode));
    for ((mode, limit), engine) in LIMITS.into_iter().zip(&mut engines) {
        open(engine, connections, Instant::ZERO);
        let before = memory();
        for number in 0..connections {
            open(engine, number, Instant::ZERO + Duration::from_millis(number.into()));
        }
        let bytes = (memory() - before) / f64::from(connections);
        println!("{mode}: {bytes:.0} B");
        assert_eq!(engine.totals().connections, connections as usize + 1);
        assert_eq!(engine.totals().at_risk, 0);
        assert!(bytes <= limit, "{mode}: {bytes} B");
        let bytes = added_by(engine, Duration::from_secs(10), frames::reply);
        println!("{mode}, with data in both directions: {bytes:.0} B more");
        assert!(bytes <= REPLY_LIMIT, "{mode}: {bytes} B more");
        let bytes = added_by(engine, Duration::from_secs(20), frames::transfer);
        println!("{mode}, after a bulk transfer: {bytes:.0} B more");
        assert!(bytes <= TRANSFER_LIMIT, "{mode}: {bytes} B more");
    }
}
