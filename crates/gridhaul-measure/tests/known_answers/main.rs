//! Measurements whose results are known in advance: links with a fixed delay or loss, and Nagle's
//! algorithm.
//!
//! They run in real time. A run whose generator was late is repeated, because a busy machine
//! explains its result.

mod capture;
mod cross_traffic;
mod faults;
mod frames;
mod mqtt;
mod systems;
mod udp;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gridhaul_measure::log::LogError;
use gridhaul_measure::method::{Message, Schedule, Summary, findings};
use gridhaul_measure::place::{self, Carrier, LinkCounters, Sites};
use gridhaul_measure::protocol::{Null, Protocol};
use gridhaul_measure::transfer::{Outcome, Plan, measure};
use gridhaul_scenario::backend::RunError;
use gridhaul_scenario::scenario::Scenario;
use gridhaul_scenario::units::Duration;
use gridhaul_testing::{has_program, has_tool};

/// Attempts to measure without lateness of the generator.
const ATTEMPTS: u32 = 5;

/// Runs `work` between the ends of a flow, over links that forward what `carrier` states.
fn on_links<T>(
    scenario: &Scenario,
    flow: &str,
    carrier: Carrier,
    work: impl FnOnce(&Sites<'_>) -> T,
) -> Result<(T, LinkCounters), RunError> {
    place::on_links(scenario, flow, carrier, |_| (), |sites, ()| work(sites))
}

/// The same over links of IP packets, without what they counted.
fn on_network<T>(
    scenario: &Scenario,
    flow: &str,
    work: impl FnOnce(&Sites<'_>) -> T,
) -> Result<T, RunError> {
    on_links(scenario, flow, Carrier::Packets, work).map(|(done, _)| done)
}

/// Two nodes and a link with these keys in both directions.
fn scenario(forward: &str, reverse: &str) -> Scenario {
    let text = format!(
        "title = \"one link\"\nduration = \"60 s\"\n[node]\na = {{}}\nb = {{}}\n[link.wan]\nfrom \
         = \"a\"\nto = \"b\"\n\
         forward = {{ rate = \"100 Mbit/s\", queue = \"1000 packets\", {forward} }}\n\
         reverse = {{ rate = \"100 Mbit/s\", queue = \"1000 packets\", {reverse} }}\n\
         [flow.test]\nfrom = \"a\"\nto = \"b\"\nload = \"bulk\"\n"
    );
    Scenario::from_toml(&text, "one-link.toml").unwrap()
}

fn plan(rate: f64, measured: u64) -> Plan {
    Plan {
        schedule: Schedule::new(rate, measured),
        bytes: 132,
        horizon: Duration::from_secs(2),
        processor: None,
        run: 0x6d65_6173,
        capture: None,
    }
}

/// All messages of a run, and its result.
fn run(plan: &Plan, protocol: &dyn Protocol, sites: &Sites<'_>) -> (Outcome, Vec<Message>) {
    let mut rows = Vec::new();
    let mut log = |message: &Message| {
        rows.push(*message);
        Ok(())
    };
    let outcome =
        measure(plan, protocol, sites, &mut log, &|_| {}, &AtomicBool::new(false)).unwrap();
    assert_eq!(outcome.fault, None);
    (outcome, rows)
}

/// When the log cannot be written, the run ends, and the result says why.
#[test]
fn a_full_disk_ends_the_run_with_a_marked_result() {
    let mut rows = 0;
    let mut log = |message: &Message| {
        rows += 1;
        if message.sequence < 300 {
            return Ok(());
        }
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(LogError::Io { path: "results/messages".into(), source })
    };
    let plan = Plan { horizon: Duration::from_millis(100), ..plan(1_000.0, 5_000) };
    let stop = AtomicBool::new(false);
    let outcome = measure(&plan, &Null, &Sites::loopback(), &mut log, &|_| {}, &stop).unwrap();
    let fault = outcome.fault.unwrap();
    assert!(fault.contains("cannot write results/messages"), "{fault}");
    assert!(rows < 4_000, "the run ended early: {rows}");
    // Messages that were sent until then were not refused.
    assert_eq!((outcome.summary.counts.refused, outcome.refusal), (0, None));
    assert!(!stop.load(Ordering::Relaxed), "the user did not stop it");
}

/// Repeats a run until the generator was on time and the result is `expected`. Other programs on
/// this machine delay links and broker too, and only add to the latency; a defect shows in every
/// attempt.
fn undisturbed(
    expected: impl Fn(&Summary) -> bool,
    mut run: impl FnMut() -> (Outcome, Vec<Message>),
) -> (Outcome, Vec<Message>) {
    let mut last = run();
    for _ in 1..ATTEMPTS {
        if findings(&last.0.summary).is_empty() && expected(&last.0.summary) {
            break;
        }
        last = run();
    }
    last
}

/// The turn of a test, if this machine permits emulated networks and has these programs. Tests that
/// ran at the same time would delay each other.
fn turn(programs: &[&str]) -> Option<MutexGuard<'static, ()>> {
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let network = on_network(&scenario("delay = \"1 ms\"", "delay = \"1 ms\""), "test", |_| ());
    let is_possible =
        has_tool(network.is_ok(), "the right to create network namespaces and TUN devices")
            && programs.iter().all(|program| has_program(program));
    is_possible.then_some(turn)
}

/// The longest time without a message in milliseconds; NaN without messages.
fn longest_gap_ms(summary: &Summary) -> f64 {
    summary.interruption().map_or(f64::NAN, |interruption| millis(interruption.length()))
}

/// Milliseconds of a duration.
fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
