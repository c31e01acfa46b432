//! Protocols with their brokers and other implementations at the other end, on this machine.

mod amqp;
mod direct;
mod endpoints;
mod killed;
mod peers;
mod recorder;
mod wire;
mod xmpp;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gridhaul_measure::method::Schedule;
use gridhaul_measure::place::Sites;
use gridhaul_measure::protocol::Protocol;
use gridhaul_measure::transfer::{Outcome, Plan, measure};
use gridhaul_scenario::units::Duration;

/// Number of the run in every message.
const RUN: u32 = 0x7072_6f74;

/// Messages that a run of `plan(500.0, 50)` sends: its warm-up takes one second.
const MESSAGES: usize = 500 + 50;

fn plan(rate: f64, measured: u64) -> Plan {
    Plan {
        schedule: Schedule::new(rate, measured),
        bytes: 132,
        horizon: Duration::from_secs(5),
        processor: None,
        run: RUN,
        capture: None,
    }
}

/// Runs a protocol on the loopback device.
fn run(plan: &Plan, protocol: &dyn Protocol) -> Outcome {
    let (sites, stop) = (Sites::loopback(), AtomicBool::new(false));
    measure(plan, protocol, &sites, &mut |_| Ok(()), &|_| {}, &stop).unwrap()
}

/// Asserts that every message of a run arrived once, intact and in order.
fn assert_complete(outcome: &Outcome, measured: u64) {
    assert_eq!(outcome.fault, None);
    let counts = outcome.summary.counts;
    let found = (counts.messages, counts.lost, counts.refused, counts.duplicates, counts.reordered);
    assert_eq!(found, (measured, 0, 0, 0, 0), "{:?}", outcome.refusal);
    assert_eq!((counts.corrupt, outcome.arrivals.unidentified), (0, 0));
}

/// The turn of a test that measures: runs at the same time would delay each other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
