//! Measurements whose results are known in advance: links with a fixed delay or loss, and Nagle's
//! algorithm.
//!
//! They run in real time. A run whose generator was late is repeated, because a busy machine
//! explains its result. Where other programs can disturb every attempt, a test requires of a
//! disturbed run only what holds on a busy machine as well.

mod capture;
mod cross_traffic;
mod faults;
mod frames;
mod mqtt;
mod systems;
mod udp;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, time};

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
    run: impl FnMut() -> (Outcome, Vec<Message>),
) -> (Outcome, Vec<Message>) {
    let Measured { outcome, rows, .. } = repeated(expected, run);
    (outcome, rows)
}

/// The last of several runs.
struct Measured {
    outcome: Outcome,
    rows: Vec<Message>,
    /// Other programs disturbed all runs: none of them shows a defect.
    is_disturbed: bool,
}

/// Runs as [`undisturbed`] does, and whether the machine was busy all the time.
fn repeated(
    expected: impl Fn(&Summary) -> bool,
    mut run: impl FnMut() -> (Outcome, Vec<Message>),
) -> Measured {
    let mut is_disturbed = true;
    let mut attempt = || {
        let before = Pressure::now();
        let (outcome, rows) = run();
        let is_late = !findings(&outcome.summary).is_empty();
        is_disturbed &= is_late || before.is_exceeded();
        let is_shown = !is_late && expected(&outcome.summary);
        (is_shown, Measured { outcome, rows, is_disturbed })
    };
    for _ in 1..ATTEMPTS {
        if let (true, measured) = attempt() {
            return measured;
        }
    }
    attempt().1
}

/// Time for which any process of this machine was ready and waited for a processor so far (Linux,
/// Documentation/accounting/psi.rst), and the time of the observation.
struct Pressure {
    waited_us: Option<u64>,
    at: time::Instant,
}

impl Pressure {
    /// Share of the time that disturbs a run: links, broker and receiver of a message are processes
    /// and threads of usual priority.
    const DISTURBING: f64 = 0.1;

    #[expect(clippy::disallowed_methods, reason = "the load of the machine during a run")]
    fn now() -> Self {
        let text = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        let total = text.lines().next().and_then(|some| some.rsplit_once("total="));
        let waited_us = total.and_then(|(_, micros)| micros.parse().ok());
        Self { waited_us, at: time::Instant::now() }
    }

    /// Whether processes waited for too long since then; `false` if the kernel does not count it.
    fn is_exceeded(&self) -> bool {
        let now = Self::now();
        let elapsed_us = now.at.duration_since(self.at).as_micros() as f64;
        let waited_us = now.waited_us.zip(self.waited_us).map_or(0, |(now, then)| now - then);
        waited_us as f64 > Self::DISTURBING * elapsed_us
    }
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

/// Median latency from the send time in milliseconds; NaN without messages.
fn median(summary: &Summary) -> f64 {
    summary.from_send.quantile(0.5).map_or(f64::NAN, |quantile| millis(quantile.value))
}

/// The longest time without a message in milliseconds; NaN without messages.
fn longest_gap_ms(summary: &Summary) -> f64 {
    summary.interruption().map_or(f64::NAN, |interruption| millis(interruption.length()))
}

/// Milliseconds of a duration.
fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
