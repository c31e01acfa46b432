//! Runs on the kernel of this machine. They require root, or user namespaces, and /dev/net/tun.
//! Otherwise they report this and pass, but fail with `CI` set.

mod acknowledgements;
mod coap;
mod common_questions;
mod congestion_control;
mod connections;
mod corruption;
mod ecn;
mod fragments;
mod idle_connections;
mod link;
mod link_trace;
mod load;
mod medium;
mod mqtt;
#[path = "../pair/mod.rs"]
mod pair;
mod path_mtu;
mod proxy;
mod radio_links;
mod relay;
mod router;
mod scheduler;
mod shaper;
mod tcp;

use std::sync::{Mutex, PoisonError};

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// Runs a scenario on the kernel; `None` if this machine lacks a prerequisite.
fn run(times: &str, text: &str) -> Option<Answer> {
    run_with(&format!("{times}\n{text}"), Emu::default())
}

/// The same with other options of the emulator.
fn run_with(text: &str, emu: Emu) -> Option<Answer> {
    run_until(text, emu, |_| false)
}

/// The same, repeated until a run is trustworthy or shows what is expected. This is for
/// expectations that late packets can only conceal: a defect then shows in every run.
fn run_until(text: &str, emu: Emu, is_shown: impl Fn(&Answer) -> bool) -> Option<Answer> {
    let scenario = Scenario::from_toml(text, "test.toml").expect("a scenario");
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // Concurrent runs would disturb the timing of each other.
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tries = 5;
    loop {
        match (emu.run(&scenario, &NoProgress), std::env::var_os("CI")) {
            // Packets were late, or the kernel has bypassed the congestion control algorithm: the
            // run is not representative of the emulator on an idle machine.
            (Ok(answer), _) if tries > 1 && !is_trustworthy(&answer) && !is_shown(&answer) => {
                tries -= 1;
                eprintln!("{:?}: trying again", answer.warnings);
            }
            (Ok(answer), _) => return Some(answer),
            (Err(error), None) if error.to_string().contains("gridhaul doctor") => {
                eprintln!("skipped, this machine lacks a prerequisite: {error}");
                return None;
            }
            (Err(error), _) => panic!("{error}"),
        }
    }
}

fn is_trustworthy(answer: &Answer) -> bool {
    !answer.warnings.iter().any(|warning| warning.message.contains("not trustworthy"))
}

fn row<'a>(answer: &'a Answer, name: &str) -> &'a Row {
    let rows = answer.points[0].flows.iter().chain(&answer.points[0].links);
    rows.into_iter().find(|row| row.name == name).expect("a row of this name")
}

fn mean(answer: &Answer, name: &str, metric: Metric) -> f64 {
    row(answer, name).mean(metric).unwrap_or_else(|| panic!("{name} has no {metric:?}"))
}

#[track_caller]
fn close(value: f64, expected: f64, relative: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= relative, "{value} is {:.2} % off {expected}", off * 100.0);
}
