//! Memory of the connections of a bridge, in a process that does nothing else: the proportional set
//! size grows with each connection.

#![cfg(target_os = "linux")]

mod frames;

use std::fs;

use gridhaul_relay::packet::{BridgePort, Engine, EngineSettings, Frame, Handling, Rule};
use gridhaul_scenario::RelayConfig;
use gridhaul_scenario::units::{Duration, Instant};

const CONNECTIONS: u32 = 5_000;

/// Largest memory of an idle connection in each mode.
const LIMITS: [(&str, f64); 4] =
    [("reflect", 1_950.0), ("spoof", 1_450.0), ("snoop", 1_050.0), ("ack", 950.0)];

/// Bytes of this process in memory (proc(5)).
fn memory() -> f64 {
    let text = fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<f64>().unwrap() * 1_024.0
}

fn engine(mode: &str) -> Engine {
    let toward = if matches!(mode, "snoop" | "ack") { "toward = \"right\"\n" } else { "" };
    let text = format!(
        "name = \"test\"\n[bridge]\ninterfaces = [\"left\", \"right\"]\n\
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
    for step in frames::steps() {
        let from = BridgePort::BOTH[step.host];
        let handling = engine.handle_frame(now, from, &Frame::new(&step.frame(number)));
        assert_eq!(handling, Handling::Handled);
        engine.handle_timeout(now);
        engine.outgoing().clear();
    }
    drop((engine.take_newly_at_risk(), engine.take_no_longer_at_risk()));
}

#[test]
fn an_idle_connection_takes_little_memory() {
    // All stay alive: the memory of a discarded engine would be used by the next one.
    let mut engines = LIMITS.map(|(mode, _)| engine(mode));
    for ((mode, limit), engine) in LIMITS.into_iter().zip(&mut engines) {
        open(engine, CONNECTIONS, Instant::ZERO);
        let before = memory();
        for number in 0..CONNECTIONS {
            open(engine, number, Instant::ZERO + Duration::from_millis(number.into()));
        }
        let bytes = (memory() - before) / f64::from(CONNECTIONS);
        println!("{mode}: {bytes:.0} B");
        assert_eq!(engine.totals().connections, CONNECTIONS as usize + 1);
        assert_eq!(engine.totals().at_risk, 0);
        assert!(bytes <= limit, "{mode}: {bytes} B");
    }
}
