//! Runs on the kernel of this machine. They need root, or user namespaces and /dev/net/tun; where
//! that is missing they say so and pass, but fail where `CI` is set.

mod congestion_control;
mod corruption;
mod link;
mod load;
#[path = "../pair/mod.rs"]
mod pair;
mod shaper;
mod tcp;

use std::sync::{Mutex, PoisonError};

use gridhaul_emu::Emu;
use gridhaul_scenario::answer::{Answer, Metric, Row};
use gridhaul_scenario::backend::{Backend, NoProgress};
use gridhaul_scenario::scenario::Scenario;

/// The answer of the kernel; `None` where this machine does not let us ask it.
fn ask(times: &str, text: &str) -> Option<Answer> {
    asked(&format!("{times}\n{text}"), Emu::default())
}

/// The same with an emulator of one's own.
fn asked(text: &str, emu: Emu) -> Option<Answer> {
    let scenario = Scenario::from_toml(text, "test.toml").expect("a scenario");
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    // Real time is a resource: runs beside each other would disturb each other.
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut tries = 5;
    loop {
        match (emu.run(&scenario, &NoProgress), std::env::var_os("CI")) {
            // Packets were late, or the kernel has not run our congestion control each time: this says nothing
            // about the emulator on a machine that keeps time.
            (Ok(answer), _) if tries > 1 && !is_trustworthy(&answer) => {
                tries -= 1;
                eprintln!("{:?}: once more", answer.warnings);
            }
            (Ok(answer), _) => return Some(answer),
            (Err(error), None) if error.to_string().contains("gridhaul doctor") => {
                eprintln!("passed over, this machine lacks what a run needs: {error}");
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
    row(answer, name).mean(metric).unwrap_or_else(|| panic!("{name} knows {metric:?}"))
}

#[track_caller]
fn close(value: f64, expected: f64, relative: f64) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= relative, "{value} is {:.2} % off {expected}", off * 100.0);
}
